# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm's queue as the driver sees it; the queue and the nodes are played, no Slurm is needed."""

import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet import played_jobs
from contract.run_record import write_status
from errors import UserError
from run.hosts import sending
from run.jobs import elsewhere, run_copies
from run.jobs.job import Job
from run.jobs.programs import NoAnswer
from run.jobs.workers import Ended
from run.slurm import arrays, options, slurm_workers, submission
from run.slurm.controller import Controller, QueuedTask, QueueFull
from run.slurm.slurm_workers import SlurmWorkers
from run.slurm.submission import TaskFolder


class PlayedQueue(Controller):
    """A queue of tasks, each in a state that a test sets; away: why nobody answers."""

    def __init__(self, folder: Path, most: int = 1000, array: int = 1000) -> None:
        self._folder, self._most, self._array = folder, most, array
        self.known: dict[tuple[str, int], QueuedTask] = {}
        self.words: list[Sequence[str]] = []
        self.sizes: list[int] = []
        self.cancelled: list[str] = []
        self.away = self.away_after = ""

    def max_array(self) -> int:
        return self._array

    def submit(self, name: str, comment: str, tasks: int, words: Sequence[str]) -> None:
        self._answer()
        waiting = sum(one.state in ("PENDING", "RUNNING") for one in self.known.values())
        if waiting + tasks > self._most:
            raise QueueFull("Job violates accounting/QOS policy")
        self.words.append(words)
        self.sizes.append(tasks)
        for index in range(tasks):
            job_id = f"{len(self.sizes)}_{index}"
            self.known[comment, index] = QueuedTask(job_id, "PENDING", "", "Priority")
        if self.away_after:
            raise NoAnswer(self.away_after)

    def tasks(self, name: str) -> dict[tuple[str, int], QueuedTask]:
        self._answer()
        return dict(self.known)

    def cancel(self, job_ids: Sequence[str]) -> None:
        self._answer()
        self.cancelled += job_ids
        for key, one in self.known.items():
            if one.job_id in job_ids:
                self.known[key] = QueuedTask(one.job_id, "CANCELLED", one.node, "None")

    def _answer(self) -> None:
        if self.away:
            raise NoAnswer(self.away)

    def set(self, number: int, state: str, node: str = "", reason: str = "None") -> TaskFolder:
        """The newest task of the run with this number has that state now."""
        left = [key for key in self.known if self.folder(key).submission.exists()]
        key = [one for one in left if self.folder(one).entry()["job"]["number"] == number][-1]
        self.known[key] = QueuedTask(self.known[key].job_id, state, node, reason)
        folder = self.folder(key)
        if node and not folder.begun.exists():
            folder.begun.mkdir()
            (folder.begun / submission.NODE).write_text(node)
        return folder

    def folder(self, key: tuple[str, int]) -> TaskFolder:
        """The folder of a task."""
        return TaskFolder(self._folder / submission.FOLDER / key[0], key[1])


class Said:
    """A screen that remembers."""

    live = False

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, shown: Any) -> None: ...

    def remove(self, shown: Any) -> None: ...

    def update(self) -> None: ...

    def say(self, text: str) -> None:
        self.lines.append(text)


class Driver:
    """The workers of a campaign of one variant, and what they said."""

    def __init__(self, folder: Path, slots: int = 4, **limits: int) -> None:
        self.folder = folder / "c"
        self.screen = Said()
        self.done: dict[str, str] = {}
        self.queue = PlayedQueue(self.folder, **limits)
        self.begin(slots)

    def begin(self, slots: int = 4) -> None:
        """A driver, also after one that was killed."""
        made = arrays.Arrays(
            options.parse("slurm:partition=p"), self.folder, Path("/suite"), played_jobs.job()
        )
        self.workers = SlurmWorkers(
            self.queue, slots, "name", self.folder, made, lambda run, node: self._note(run, node)
        )

    def _note(self, run: Path, node: str) -> None:
        self.done[run.name] = node

    def submit(self, *numbers: int) -> dict[int, Job]:
        """These runs."""
        jobs = {number: played_jobs.job(number=number) for number in numbers}
        for number, job in jobs.items():
            run = self.folder / "6.12" / str(number)
            self.workers.submit(job, run, self.screen, lambda: False)
        return jobs

    def look(self, times: int = 4) -> list[Ended]:
        """What ended."""
        over = []
        for _ in range(times):
            self.workers._next_ask = 0.0
            over += self.workers.look(0)
        return over

    def finish(self, number: int, node: str = "n1", state: str = "completed") -> None:
        """Its node has done it."""
        self.queue.set(number, "COMPLETED", node)
        self.result(self.folder / "6.12" / str(number), state)

    def result(self, run: Path, state: str = "completed") -> None:
        """A folder of a run that is over."""
        run.mkdir(parents=True)
        write_status(run, state, "as played", elapsed_s=1.0)


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("LOOK_S", "SUBMIT_S", "SETTLE_S"):
        monkeypatch.setattr(slurm_workers, name, 0.0)
    monkeypatch.setattr(SlurmWorkers, "end_s", 1.0)
    monkeypatch.setattr(sending, "needed", lambda job: {})
    return Driver(tmp_path)


def test_a_run_is_done_when_its_folder_is_there(driver: Driver) -> None:
    driver.submit(1, 2)
    assert driver.look() == [] and driver.queue.sizes == [2]
    words = driver.queue.words[0]
    assert {"--cpus-per-task=1", "--partition=p", "--mem=1254", "--time=80"} <= set(words)
    assert words[-1].endswith("/job.sh")
    driver.queue.set(1, "RUNNING", "n1")
    driver.finish(2, "n2", "panicked")
    (over,) = driver.look()
    assert (over.job.number, over.state, over.why) == (2, "panicked", "as played (on n2)")
    driver.finish(1)
    assert [one.state for one in driver.look()] == ["completed"]
    assert driver.done == {"1": "n1", "2": "n2"}
    driver.workers.close()
    assert not list((driver.folder / ".slurm").iterdir()) and not driver.queue.cancelled


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("NODE_FAIL", "its node failed"),
        ("PREEMPTED", "another job took its place"),
        ("TIMEOUT", "--on slurm:time=MINUTES"),
        ("CANCELLED", "cancelled in Slurm (scancel)"),
        ("OUT_OF_MEMORY", "--on slurm:mem=SIZE"),
        ("FAILED", "its worker was cut short: Killed"),
    ],
)
def test_what_slurm_ends_is_cut_short_and_says_why(driver: Driver, state: str, said: str) -> None:
    driver.submit(1)
    driver.look()
    folder = driver.queue.set(1, state, "n1")
    folder.log.write_text("[ 1.0 s] booting\nKilled\n")
    partial = (
        driver.folder
        / "6.12"
        / run_copies.partial_name(1, "n1", f"{folder.submission.name}-{folder.index}")
    )
    partial.mkdir(parents=True)
    (partial / "events.jsonl").write_text("")
    if state != "FAILED":
        write_status(partial, "aborted", "interrupted by the user", elapsed_s=1.0)
    (over,) = driver.look()
    assert over.state == "aborted" and said in over.why and over.why.endswith("(on n1)")
    kept = json.loads((driver.folder / "6.12" / "1" / "status.json").read_text())
    assert kept["state"] == "aborted" and said in kept["why"] and "n1" not in kept["why"]
    assert not partial.exists() and (driver.folder / "6.12" / "1" / "events.jsonl").exists()


def test_a_kernels_failure_that_beats_the_end_of_the_node_is_a_result(driver: Driver) -> None:
    driver.submit(1)
    driver.look()
    driver.queue.set(1, "NODE_FAIL", "n1")
    driver.result(driver.folder / "6.12" / "1", "hung")
    assert [one.state for one in driver.look()] == ["hung"]


def test_a_whole_run_whose_worker_could_not_rename_it_is_a_result(driver: Driver) -> None:
    driver.submit(1)
    driver.look()
    folder = driver.queue.set(1, "NODE_FAIL", "n1")
    name = f"{folder.submission.name}-{folder.index}"
    driver.result(driver.folder / "6.12" / run_copies.partial_name(1, "n1", name), "panicked")
    (over,) = driver.look()
    assert over.state == "panicked" and driver.done == {"1": "n1"}


def test_a_node_whose_heart_beats_has_not_lost_its_run(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller has forgotten it (a cold start), or the node's slurmd alone is dead."""
    monkeypatch.setattr(slurm_workers, "SETTLE_S", 0.5)
    driver.submit(1)
    driver.look()
    folder = driver.queue.set(1, "RUNNING", "n1")
    driver.look()
    driver.queue.known.clear()
    for beat in range(8):
        (folder.begun / submission.ALIVE).write_text(str(beat))
        assert driver.look(2) == [] or pytest.fail("a run whose node works was given up")
        time.sleep(0.1)
    time.sleep(0.6)
    (over,) = driver.look()
    assert over.state == "aborted" and "neither Slurm's queue nor a heartbeat" in over.why


def test_the_controller_away_loses_nothing(driver: Driver) -> None:
    driver.submit(1, 2)
    driver.look()
    driver.queue.set(1, "RUNNING", "n1")
    driver.queue.away = "Unable to contact slurm controller"
    driver.submit(3)
    assert driver.look() == [] and driver.queue.sizes == [2]
    driver.result(driver.folder / "6.12" / "1")
    assert [one.job.number for one in driver.look()] == [1]
    driver.queue.away = ""
    assert driver.look() == [] and driver.queue.sizes == [2, 1]
    text = "\n".join(driver.screen.lines)
    assert text.count("does not answer: Unable to contact") == 1
    assert text.count("answers again") == 1


def test_what_sbatch_did_without_an_answer_is_found_in_the_queue(driver: Driver) -> None:
    driver.queue.away_after = "Socket timed out"
    driver.submit(1)
    driver.look()
    assert driver.queue.sizes == [1]
    driver.finish(1)
    assert [one.state for one in driver.look()] == ["completed"]


def test_what_sbatch_did_not_do_is_submitted_again(driver: Driver) -> None:
    driver.queue.away_after = "Socket timed out"
    driver.submit(1)
    driver.look(1)
    driver.queue.away_after = ""
    driver.queue.known.clear()
    driver.look()
    assert driver.queue.sizes == [1, 1] and len(driver.queue.known) == 1


def test_arrays_are_as_large_as_the_site_permits(tmp_path: Path, driver: Driver) -> None:
    more = Driver(tmp_path / "more", slots=7, array=3)
    more.submit(*range(1, 8))
    more.look()
    assert more.queue.sizes == [3, 3, 1]
    full = Driver(tmp_path / "full", slots=7, most=3)
    full.submit(*range(1, 8))
    full.look()
    assert full.queue.sizes == []
    for _ in range(3):
        full.workers._next_submit = 0.0
        full.look()
    assert full.queue.sizes[0] <= 3
    assert "\n".join(full.screen.lines).count("Slurm takes no more runs now") == 1


def test_a_driver_that_was_killed_is_followed_by_one_that_knows_all(driver: Driver) -> None:
    driver.submit(1, 2, 3)
    driver.look()
    driver.queue.set(1, "RUNNING", "n1")
    driver.finish(2, "n2")
    driver.begin()
    assert driver.done == {"2": "n2"}  # nobody asks for it again
    driver.submit(1, 3)
    assert sum("has it already" in line for line in driver.screen.lines) == 2
    driver.finish(1)
    driver.queue.set(3, "NODE_FAIL")
    found = {one.job.number: one.state for one in driver.look()}
    assert found == {1: "completed", 3: "aborted"} and driver.queue.sizes == [3]


def test_what_is_not_asked_for_again_is_cancelled(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.submit(1, 2)
    driver.look()
    driver.begin()
    monkeypatch.setattr(elsewhere, "KNOWN_S", 0.0)
    driver.submit(1)
    driver.look()
    assert driver.queue.cancelled == ["1_1"]


def test_a_node_that_refuses_or_cuts_short_is_left_out(driver: Driver) -> None:
    driver.submit(1)
    driver.look()
    folder = driver.queue.set(1, "FAILED", "n2")
    (folder.begun / submission.REFUSED).write_text("its proof differs in x.log")
    assert driver.look() == []  # no attempt of the run's
    assert "--exclude=n2" in driver.queue.words[-1]
    for _ in range(3):
        driver.queue.set(1, "FAILED", "n3")
        (over,) = driver.look()
        shutil.rmtree(over.run)
        driver.submit(1)
        driver.look()
    assert "--exclude=n2,n3" in driver.queue.words[-1]
    assert "n3 is left out: 3 runs in a row were cut short there" in driver.screen.lines[-1]


def test_cancelling_ends_what_waits_and_what_runs(driver: Driver) -> None:
    jobs = driver.submit(1, 2)
    driver.look()
    driver.queue.set(1, "RUNNING", "n1")
    driver.workers.cancel(jobs[1])
    (over,) = driver.look()
    assert (over.job.number, over.state) == (1, "aborted")
    driver.workers.close()
    assert sorted(driver.queue.cancelled) == ["1_0", "1_1"]
    assert not list((driver.folder / ".slurm").iterdir())


def test_why_runs_wait_is_said_once_unless_it_passes(driver: Driver) -> None:
    driver.submit(1)
    driver.look()
    assert driver.screen.lines == []
    driver.queue.set(1, "PENDING", reason="PartitionTimeLimit")
    driver.look()
    assert driver.screen.lines == ["runs wait in Slurm: PartitionTimeLimit"]


def test_a_refusal_of_sbatch_is_the_users_error(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise UserError("Invalid partition name specified")

    monkeypatch.setattr(driver.queue, "submit", refuse)
    driver.submit(1)
    with pytest.raises(UserError, match="Invalid partition"):
        driver.look()
    assert not list((driver.folder / ".slurm").iterdir())


def test_the_live_table_says_what_froze_and_what_is_left(driver: Driver) -> None:
    driver.submit(1, 2)
    driver.look()
    folder = driver.queue.set(1, "RUNNING", "n1")
    name = f"{folder.submission.name}-{folder.index}"
    partial = driver.folder / "6.12" / run_copies.partial_name(1, "n1", name)
    partial.mkdir(parents=True)
    (partial / "latency-heartbeat.log").write_text("20.0 0.1 beat\n")
    (partial / "latency-gitk-1.log").write_text("8.0 0.1 pass 1 commits 100\n")
    driver.workers.left = 9
    driver.look()
    from rich.console import Console

    console = Console(width=160, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(driver.workers.table())
    text = console.export_text()
    assert "6.12 1: guest 20 s, frozen: gitk-1" in text
    assert "1 runs wait" in text and "Priority" in text
    assert "9 runs left; no time estimate until one run has finished" in text


def test_a_task_is_begun_once_whoever_starts_it_again(tmp_path: Path) -> None:
    """As NFS has it, too: the rename was done, and its answer was lost."""
    task = TaskFolder(submission.make(tmp_path, {"tasks": []}), 0)
    assert task.begin("n1") and not task.begin("n1") and not task.begin("n2")
    assert task.node == "n1"
    assert {path.name for path in task.submission.iterdir()} == {"plan.json", "0.begun"}


def test_a_rename_whose_answer_was_lost_has_begun_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TaskFolder(submission.make(tmp_path, {"tasks": []}), 0)
    rename = Path.rename

    def lost(self: Path, target: Path) -> Path:
        rename(self, target)
        raise FileNotFoundError

    monkeypatch.setattr(Path, "rename", lost)
    assert task.begin("n1") and task.node == "n1"


def test_a_run_whose_rename_lost_its_answer_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, run = tmp_path / "1.partial-n1-j", tmp_path / "1"
    with pytest.raises(FileNotFoundError):
        run_copies.settle(made, run)
    made.mkdir()
    rename = Path.rename

    def lost(self: Path, target: Path) -> Path:
        rename(self, target)
        raise FileNotFoundError

    monkeypatch.setattr(Path, "rename", lost)
    assert run_copies.settle(made, run) is None and run.is_dir()
