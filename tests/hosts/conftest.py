# SPDX-License-Identifier: GPL-2.0-or-later
"""The fresh hosts that all tests here share: every job that a selected test needs begins early."""

import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from setup import cache
from tests.support.fleet import Fleet
from tests.support.fresh_host import ROOT, USER
from tests.support.vms import nothing_left

KIND, PLACE = "hosts", Path("/var/tmp")  # on a real disk, as a host's files are
# In the order in which they begin; the argument of the marker `jobs` names some of them.
JOBS: dict[str, Callable[[Fleet], object]] = {
    "12 root": functools.partial(Fleet.main_job, debian="12", user=ROOT),
    "13 user": functools.partial(Fleet.main_job, debian="13", user=USER),
    "kvm": Fleet.under_kvm,
    "container": Fleet.container,
    "12 user": functools.partial(Fleet.main_job, debian="12", user=USER),
    "13 root": functools.partial(Fleet.main_job, debian="13", user=ROOT),
    "tests": Fleet.own_tests,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fresh roots are made and entered by root only."""
    if os.geteuid() != 0:
        pytest.skip("fresh root file systems are made and entered by root")


@pytest.fixture(scope="session")
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Fresh hosts; nothing of them is mounted, running or on disk after the tests."""
    marks = (mark for item in request.session.items for mark in item.iter_markers("jobs"))
    wanted = {name for mark in marks for name in mark.args}
    # Not pytest's own folder, which stays: these are gigabytes. What killed tests left goes, too.
    cache.sweep(KIND, PLACE)
    with nothing_left(), cache.scratch(KIND, PLACE) as folder:
        made = Fleet(folder)
        try:
            for name, begin in JOBS.items():
                if name in wanted:
                    begin(made)
            yield made
        finally:
            made.end()
