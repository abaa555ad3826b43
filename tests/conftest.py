# SPDX-License-Identifier: GPL-2.0-or-later
"""Order of the tests: fast ones first, those that boot a kernel last."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests marked vm behind all others, each group in its own order."""
    items.sort(key=lambda item: item.get_closest_marker("vm") is not None)
