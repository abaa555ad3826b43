# SPDX-License-Identifier: GPL-2.0-or-later
"""Which tests, in which order, and what is told of those that were tried again."""

import os
import tempfile

import pytest
from hypothesis import settings

# The tests' own, which their processes inherit: another's run on this machine is in nobody's way.
if "DESKTOP_FREEZE_LOCKS" not in os.environ:
    LOCKS = tempfile.TemporaryDirectory(prefix="desktop-freeze-locks-")
    os.environ["DESKTOP_FREEZE_LOCKS"] = LOCKS.name

MEASURED = "measured"  # a property that a test records: figures that no test asserts

# The same examples each time, however slow the machine: a red test means a change, not luck.
# `--hypothesis-profile=search` looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """--all: also the slow ones."""
    parser.addoption("--all", action="store_true", help="also the tests marked slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Move the tests marked vm behind all others; those of the host's clock may be tried again."""
    if not config.getoption("--all"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if item.get_closest_marker("clock"):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=["."]))
    items.sort(key=lambda item: item.get_closest_marker("vm") is not None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why each test that was tried again had failed before, and what was measured."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)
    reports = (one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind))
    measured = [value for one in reports for name, value in one.user_properties if name == MEASURED]
    if measured:
        terminalreporter.section("measured")
    for line in measured:
        terminalreporter.line(str(line))
