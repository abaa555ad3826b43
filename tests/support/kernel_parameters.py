# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels the tests in VMs run on."""

import os
from typing import Any

import pytest


def kernels(variable: str, *newest: str, more: tuple[str, ...] = ()) -> list[Any]:
    """A fixture's parameters: the kernels that the variable of the environment names, in their
    place the newest, and with `tests/run.sh --all` more of them.
    """
    named = os.environ.get(variable, "").split()
    slow = [] if named else [pytest.param(each, marks=pytest.mark.slow) for each in more]
    return [*(named or newest), *slow]
