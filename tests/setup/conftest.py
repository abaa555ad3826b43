# SPDX-License-Identifier: GPL-2.0-or-later
"""What several tests of set-up need: a key to sign a mirror with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kernel_packages import signing_key


@pytest.fixture(scope="session")
def gnupg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a key that is made once."""
    # A socket's path may have 107 letters: the agent's is in here.
    folder = tmp_path_factory.mktemp("g") / "h"
    with signing_key(folder):
        yield folder
