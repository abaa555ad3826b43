# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache of a test's own, which has the machine's QEMU and compilers: they take long to make."""

from pathlib import Path

import pytest

from setup import cache
from setup.userland import tools


def with_tools(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the cache is in place; all but the tools is still to be made."""
    root = tools.root()
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    (cache.root() / root.parent.name).symlink_to(root.parent)
