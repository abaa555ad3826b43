# SPDX-License-Identifier: GPL-2.0-or-later
"""A runner whose runs are done elsewhere: what ends there comes as a whole folder (played)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.synthetic_results.make import write_run
from errors import Exit
from run.arguments import parse
from run.campaign import Campaign
from run.jobs.job import Job
from run.jobs.workers import Ended
from run.live import Display
from run.main import exit_status
from run.preparation import PreparedVariant
from run.runner import Outcome, Oversight, Runner
from tests.run.test_campaign import kernel
from vm.guest import Guest, Hardware, Timing
from vm.qemu import GUEST


class Elsewhere:
    """Workers that end each job as `states` says, attempt by attempt; completed beyond that."""

    attempts = 3
    here = False

    def __init__(self, slots: int = 2, **states: str) -> None:
        self.slots, self.left = slots, 0
        self.begun: list[str] = []
        self.most = 0
        self._states = {name: states[name].split() for name in states}
        self._busy: list[tuple[Job, Path]] = []

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        assert not run.exists()
        self.begun.append(f"{job.label}/{job.number}")
        self._busy.append((job, run))
        self.most = max(self.most, len(self._busy))

    def look(self, wait_s: float) -> list[Ended]:
        job, run = self._busy.pop(0)
        left = self._states.get(f"run{job.number}", [])
        state = left.pop(0) if left else "completed"
        write_run(run, {"events.jsonl": ""}, state)
        return [Ended(job, run, state, "as played")]

    def cancel(self, job: Job) -> None:
        pass

    def shown(self) -> None:
        pass

    def end(self) -> None:
        assert not self._busy


class Overseen(Oversight):
    """An oversight that has each run of `misfits` repeated, once."""

    def __init__(self, *misfits: int) -> None:
        self._misfits = list(misfits)
        self.ended: list[int] = []

    def misfits(self, label: str, run: Path) -> bool:
        number = int(run.name)
        if run.exists() and number in self._misfits:
            self._misfits.remove(number)
            return True
        return False

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        self.ended.append(number)


def go(
    folder: Path, workers: Elsewhere, runs: int, oversight: Overseen | None = None
) -> tuple[Outcome, Campaign]:
    """A campaign of one variant, to its end."""
    argv = ["--kernel", "debian:6.1", "--runs", str(runs), "--profile", "quick"]
    options = parse([*argv, "--out", str(folder)])
    campaign = Campaign(options, argv)
    found = kernel("6.1")
    guest = SimpleNamespace(
        accel="tcg",
        timing=Timing(GUEST, ""),
        kernel=found,
        hardware=Hardware(memory=options.memory, cpus=1),
    )
    (variant,) = campaign.enter([(options.variants[0], found)])
    ready: Mapping[str, Any] = {"6.1": PreparedVariant(variant, cast(Guest, guest))}
    runner = Runner(options, campaign, ready, workers, lambda: False, oversight)
    return runner.go(), campaign


def test_so_many_are_under_way_and_each_is_done_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workers = Elsewhere(3)
    outcome, campaign = go(tmp_path / "c", workers, 7)
    assert workers.begun == [f"6.1/{n}" for n in range(1, 8)] and workers.most == 3
    assert outcome.states == ["completed"] * 7 and campaign.left() == []
    said = capsys.readouterr().out
    assert "(7 of 7)" in said and "(8 of 7)" not in said and "one run at a time" not in said


def test_what_is_cut_short_is_repeated_twice(tmp_path: Path) -> None:
    workers = Elsewhere(1, run1="aborted aborted", run2="hung")
    outcome, _ = go(tmp_path / "c", workers, 2)
    assert workers.begun == ["6.1/1"] * 3 + ["6.1/2"]
    assert exit_status(outcome, False) is Exit.KERNEL_LOST and not outcome.left
    assert (tmp_path / "c/6.1/1.cut-2/status.json").exists()


def test_then_its_variant_is_given_up(tmp_path: Path) -> None:
    workers = Elsewhere(1, run1="aborted aborted aborted")
    outcome, _ = go(tmp_path / "c", workers, 2)
    assert workers.begun == ["6.1/1"] * 3
    assert outcome.left == "given up after a run was cut short 3 times: 6.1"


def test_a_whole_run_with_another_memory_is_repeated(tmp_path: Path) -> None:
    """Elsewhere nobody can see it before it is over."""
    overseen = Overseen(2)
    workers = Elsewhere(1)
    outcome, _ = go(tmp_path / "c", workers, 2, overseen)
    assert workers.begun == ["6.1/1", "6.1/2", "6.1/2"]
    assert overseen.ended == [1, 2] and outcome.states == ["completed"] * 2
    assert (tmp_path / "c/6.1/2.cut-1").exists()
