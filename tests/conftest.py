# SPDX-License-Identifier: GPL-2.0-or-later
"""Order of the tests: fast ones first, those that boot a kernel last."""

import pytest
from hypothesis import settings

# The same examples each time, however slow the machine: a red test means a change, not luck.
# `--hypothesis-profile=search` looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests marked vm behind all others, each group in its own order."""
    items.sort(key=lambda item: item.get_closest_marker("vm") is not None)
