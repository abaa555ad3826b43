# SPDX-License-Identifier: GPL-2.0-or-later
"""Real runs of real kernels (tests/pack_run.py packs them): what the causes of their stalls are."""

import tarfile
from pathlib import Path

import numpy as np
import pytest

from analysis.reading.evidence_tables import read_trace
from analysis.reading.load import load_campaign
from analysis.stall_causes.causes import BY_KEY, RunCauses
from analysis.stall_causes.run_causes import causes_between, run_causes
from analysis.text.causes import card_lines

RUNS = sorted(Path(__file__).parents[1].glob("golden/causes/*.tar.xz"))
# What a sleeping task waits for, one way or another; the two sources differ in which.
DISK = ("swap_in", "file_read", "file_write", "dm_crypt", "reclaim_writeback")


def causes_of(golden: Path, folder: Path, without: tuple[str, ...] = ()) -> RunCauses:
    with tarfile.open(golden) as archive:
        archive.extractall(folder)
    for name in without:
        for path in folder.glob(f"*/*/{name}"):
            path.unlink()
    found = run_causes(load_campaign(folder).runs[0])
    assert found is not None
    return found


@pytest.mark.parametrize("golden", RUNS, ids=lambda path: path.name)
def test_a_real_runs_stalls_are_explained(golden: Path, tmp_path: Path) -> None:
    found = causes_of(golden, tmp_path)
    assert found.cards and found.total > 10
    assert found.unexplained <= 0.1
    for card in found.cards:
        assert sum(card.seconds.values()) == pytest.approx(card.stall.length)
        assert set(card.seconds) <= set(BY_KEY)
        assert card_lines(card)
    assert all(BY_KEY[key] and seconds >= 0 for key, seconds in found.seconds.items())
    assert any(found.seconds.get(key, 0.0) > 0.05 * found.total for key in DISK)
    assert any("MB/s swap-in" in clause for clause in found.cards[0].machine)
    assert any("disk" in clause for clause in found.cards[0].machine) == found.apart


@pytest.mark.parametrize("golden", RUNS, ids=lambda path: path.name)
def test_second_by_second_the_causes_are_the_same(golden: Path, tmp_path: Path) -> None:
    found = causes_of(golden, tmp_path)
    run = load_campaign(tmp_path).runs[0]
    seconds = causes_between(run, np.arange(0.0, run.last_sent + 1).tolist())
    assert seconds is not None
    cards = [*found.cards, *found.others]
    assert sum(sum(one.values()) for one in seconds) == pytest.approx(
        sum(card.stall.length for card in cards), abs=0.01
    )
    for key in BY_KEY:
        whole = sum(card.seconds.get(key, 0.0) for card in cards)
        by_second = sum(one.get(key, 0.0) for one in seconds)
        # Where a span begins and ends moves what a look between two spans stands for.
        assert by_second == pytest.approx(whole, abs=0.03 * found.total), key


@pytest.mark.parametrize("golden", RUNS, ids=lambda path: path.name)
def test_clocks_and_stacks_of_a_real_run_agree(golden: Path, tmp_path: Path) -> None:
    """Each source alone finds about the same share of sleep in all of the run's stalls."""
    clocks = causes_of(golden, tmp_path / "clocks", without=("blocked.tsv",))
    stacks = causes_of(golden, tmp_path / "stacks", without=("tasks.tsv",))

    def awake(found: RunCauses) -> float:
        keys = ("cpu_running", "cpu_starved", "reclaim_scan", "compaction")
        return sum(found.seconds.get(key, 0.0) for key in keys) / found.total

    assert awake(clocks) == pytest.approx(awake(stacks), abs=0.25)


@pytest.mark.parametrize("golden", RUNS, ids=lambda path: path.name)
def test_a_device_that_ended_reads_was_busy(golden: Path, tmp_path: Path) -> None:
    causes_of(golden, tmp_path)
    trace = read_trace(load_campaign(tmp_path).runs[0].path, [])
    assert trace is not None
    reads, busy = trace.get("crypt_reads"), trace.get("crypt_busy_us")
    assert reads is not None and busy is not None
    assert not np.any((np.diff(reads) >= 20) & (np.diff(busy) <= 0))


def test_there_are_real_runs_of_old_and_new_kernels() -> None:
    assert {path.name.split(".tar")[0] for path in RUNS} >= {"5.10", "6.1", "6.12", "7.2", "7.3"}
