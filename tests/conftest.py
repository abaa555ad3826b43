# SPDX-License-Identifier: GPL-2.0-or-later
"""Selects and orders the tests, and reports why tests were tried again."""

import os
from collections import Counter

import pytest
from hypothesis import settings

from analysis.reading.archive import remove_unpacked

MEASURED = "measured"  # a property in which tests record figures that no test asserts

# The same examples each time, however slow the machine is: a failing test means a change, not luck.
# `--hypothesis-profile=search` looks for new ones.
settings.register_profile("suite", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --all: also the slow tests."""
    parser.addoption("--all", action="store_true", help="also the tests marked slow")


@pytest.fixture(scope="session", autouse=True)
def locks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests' own locks, which child processes inherit: runs of others do not disturb.

    All workers of xdist share them. pytest removes the folder, even if this session is killed.
    """
    if "DESKTOP_FREEZE_LOCKS" in os.environ:
        return
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "locks").mkdir(exist_ok=True)
    os.environ["DESKTOP_FREEZE_LOCKS"] = str(folder / "locks")


def pytest_sessionfinish() -> None:
    """Remove unpacked bundles here: a worker of xdist ends without its atexit functions."""
    remove_unpacked()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the tests; those marked clock are tried again if they fail.

    Those marked vm come behind all others. Workers share them by file, and none shall wait for a
    long file at the end: files with slow tests come first, then those with many tests.
    """
    if not config.getoption("--all"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if item.get_closest_marker("clock"):
            item.add_marker(pytest.mark.flaky(reruns=2, only_rerun=["."]))
    count = Counter(item.path for item in items)
    slow_files = {item.path for item in items if item.get_closest_marker("slow")}

    def place(item: pytest.Item) -> tuple[int, int]:
        if item.get_closest_marker("vm") is None:
            return 0, 0
        many = count[item.path]
        return (1, many) if item.path in slow_files else (2, -many)

    items.sort(key=place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why each test that was tried again had failed before, and the measured figures."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)
    kinds = ("passed", "failed")
    reports = (report for kind in kinds for report in terminalreporter.getreports(kind))
    properties = (item for report in reports for item in report.user_properties)
    measured = [value for name, value in properties if name == MEASURED]
    if measured:
        terminalreporter.section("measured")
    for line in measured:
        terminalreporter.line(str(line))
