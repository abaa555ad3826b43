# SPDX-License-Identifier: GPL-2.0-or-later
"""One small campaign with real VMs on this machine, by ssh and by Slurm: the same bytes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conftest import MEASURED
from tests.support import real_fleet
from tests.support.real_fleet import KillsOneQemu

RUNS = 2
SMALL = ("--kernel", "debian:6.12", "--profile", "quick", "--commits", "1500", "--gitk", "2")
WITHIN_S = 3000.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.vm,
    pytest.mark.own_clock,
    pytest.mark.timeout(2 * WITHIN_S + 600),
]


def go(
    folder: Path,
    more: Sequence[str],
    environment: Mapping[str, str],
    meanwhile: Callable[[str], None] = lambda printed: None,
) -> tuple[str, float]:
    """What the campaign printed, and its seconds."""
    arguments = [*SMALL, "--runs", str(RUNS), *more]
    return real_fleet.campaign(
        folder, arguments, environment, within_s=WITHIN_S, meanwhile=meanwhile
    )


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The folder of the campaign on this machine, and how long its command took, in seconds."""
    folder = tmp_path_factory.mktemp("local")
    return folder, go(folder, ["--jobs", "2"], {})[1]


def check(
    folder: Path,
    local: tuple[Path, float],
    more: Sequence[str],
    environment: Mapping[str, str],
    note: Callable[[str, object], None],
) -> None:
    """Its runs are the same as here, although one VM is killed and its run is repeated."""
    kills = KillsOneQemu(folder)
    printed, seconds = go(folder, more, environment, kills)
    assert kills.killed and real_fleet.REPEATED in printed
    files, different = real_fleet.compare_runs(local[0], folder)
    assert different == []
    note(
        MEASURED,
        f"{RUNS} runs, two at a time: {local[1]:.0f} s here; {seconds:.0f} s with {more[1]}, where "
        f"a VM was killed; {files} files equal",
    )
    assert real_fleet.qemus_of(folder) == []


def test_by_ssh_on_two_hosts_with_caches_of_their_own(
    tmp_path: Path, local: tuple[Path, float], record_property: Callable[[str, object], None]
) -> None:
    with real_fleet.by_ssh(tmp_path) as environment:
        check(tmp_path, local, real_fleet.SSH, environment, record_property)


def test_by_slurm_on_two_nodes(
    tmp_path: Path, local: tuple[Path, float], record_property: Callable[[str, object], None]
) -> None:
    with real_fleet.by_slurm(tmp_path) as environment:
        check(tmp_path, local, real_fleet.SLURM, environment, record_property)
