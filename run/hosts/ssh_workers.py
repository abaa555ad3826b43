# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers on hosts reached by ssh: a thread for each host, and one queue of jobs for all."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED
from run.hosts.one_host import OneHost
from run.hosts.ssh import Failed
from run.jobs import run_copies
from run.jobs.elsewhere import Blocks, Elsewhere, Task
from run.jobs.hosts_table import HostRow
from run.jobs.programs import NoAnswer
from run.jobs.progress import Progress
from run.jobs.workers import Ended
from run.run_folders import ended, why_of

LOOK_S = 5.0  # between two looks at a host, each an ssh connection
LOST_S = 300.0  # without an answer, after which a host's runs are started on others


@dataclass
class SshTask(Task):
    """seen: whether a look found it on its host. began: its start, s of our monotonic clock."""

    seen: bool = False
    began: float = 0.0


@dataclass
class HostState:
    """A host's state, for its thread. jobs: by their names there; known: not submitted yet."""

    host: OneHost
    known: dict[str, str] = field(default_factory=dict)  # identity: name
    jobs: dict[str, SshTask] = field(default_factory=dict)
    late: dict[str, SshTask] = field(default_factory=dict)  # now given to other hosts
    answered: float = field(default_factory=time.monotonic)
    look_s: float = 0.0  # duration of the last look
    silent: str = ""  # why it does not answer; "" if it does

    @property
    def name(self) -> str:
        """The host's name."""
        return self.host.name


class SshWorkers(Elsewhere[SshTask]):
    """Does jobs on open hosts that have proved themselves.

    known: host -> names of the jobs there that an earlier driver started.
    """

    task_type = SshTask

    def __init__(
        self,
        hosts: list[OneHost],
        known: Mapping[str, list[str]],
        folder: Path,
        done: Callable[[Path, str], None],
        blocks: Blocks | None = None,
    ) -> None:
        super().__init__(sum(one.slots for one in hosts), folder, done, blocks)
        self._cut_on: dict[tuple[Path, int], set[str]] = {}  # task's key: hosts that cut it short
        self._closing = threading.Event()
        self._failure: Exception | None = None  # of a thread: a bug of ours, not a host's failure
        self._states = [
            HostState(one, {name.rpartition("-")[0]: name for name in known.get(one.name, ())})
            for one in hosts
        ]
        self._threads = [
            threading.Thread(target=self._follow, args=(one,), daemon=True) for one in self._states
        ]
        for thread in self._threads:
            thread.start()

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since the last look; raises the failure of a thread."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            if self._pending and all(state.name in self._hosts.left_out for state in self._states):
                self._aborted(self._pending.pop(0), "no host is left that can do it")
        return super().look(wait_s)

    def close(self) -> None:
        """End all jobs and stop the threads. Jobs on hosts that do not answer continue."""
        self.end()
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _under_way(self) -> list[SshTask]:
        return [task for state in self._states for task in list(state.jobs.values())]

    def _is_busy(self) -> bool:
        """Whether a host that answers has jobs."""
        answering = any(state.jobs and not state.silent for state in self._states)
        return answering and self._failure is None

    def _rows(self) -> list[HostRow]:
        runs = {}
        for state in self._states:
            jobs = list(state.jobs.values())
            runs[state.name] = [(task.job.title, task.progress.words) for task in jobs]
            if state.name not in self._hosts.left_out:
                note = f"does not answer: {state.silent}" if state.silent else ""
                self._hosts.of(state.name).note = note
        return self._hosts.doing(runs)

    def _follow(self, state: HostState) -> None:
        """The loop of a host's thread."""
        while not self._closing.is_set():
            try:
                self._round(state)
                if state.silent:
                    self._say(f"{state.name} answers again")
                state.answered, state.silent = time.monotonic(), ""
            except (NoAnswer, Failed) as error:
                self._silent(state, str(error))
            except Exception as error:
                self._failure, state.silent = error, str(error)
                return
            # Do not keep a slow host busy with answering.
            self._closing.wait(max(LOOK_S, state.look_s))

    def _round(self, state: HostState) -> None:
        """Look at a host: fetch ended jobs, cancel unwanted ones, start as many as have room."""
        began = time.monotonic()
        reports = {report["job"]: report for report in state.host.call("look")["jobs"]}
        state.look_s = time.monotonic() - began
        # A killed driver's last command may have started another job.
        strangers = reports.keys() - {*state.jobs, *state.late, *state.known.values()}
        for name, task in list(state.jobs.items()):
            report = reports.get(name)
            task.seen = task.seen or report is not None
            task.progress = Progress.from_json(report) if report else Progress()
            if report is None:
                self._gone(state, name, task)
            elif not report["alive"]:
                self._fetch(state, name, task, report)
            elif task.is_unwanted():
                state.host.call("cancel", jobs=[name])
        for name in list(state.late):
            self._late(state, name, reports.get(name))
        state.known |= {name.rpartition("-")[0]: name for name in strangers}
        if self._is_known_dropped and state.known:
            names = list(state.known.values())
            state.known.clear()
            state.host.call("cancel", jobs=names)
            state.host.call("forget", jobs=names)
        while (following := self._next(state)) is not None:
            self._begin(state, following)

    def _late(self, state: HostState, name: str, report: Mapping[str, Any] | None) -> None:
        """Handle a run that was given to another host: if done here too, it is a second copy."""
        task = state.late[name]
        if report is not None and report["alive"]:
            state.host.call("cancel", jobs=[name])
            return
        del state.late[name]
        if report is not None and report["state"] not in ("", ABORTED):
            result, why, differing = state.host.fetch(report, task.run)
            self._tell(task, state, result, differing)
            with self._lock:
                for again in [waiting for waiting in self._pending if waiting.key == task.key]:
                    self._pending.remove(again)
                    self._over.put(Ended(again.job, again.run, result, why))
        elif report is not None:
            state.host.call("forget", jobs=[name])

    def _next(self, state: HostState) -> SshTask | None:
        """Take the next job for this host from the queue; None if there is none."""
        left_out = self._hosts.left_out
        with self._lock:
            healthy = {other.name for other in self._states if other is state or not other.silent}
            healthy -= left_out
            answering = [other for other in self._states if other is not state and not other.silent]
            others = {name for other in answering for name in list(other.known)}
            room = len(state.jobs) + len(state.known) < state.host.slots
            for task in self._pending:
                if task.identity in state.known:
                    break
                able = healthy - self._cut_on.get(task.key, set()) or healthy
                holder = self._held_by(task)
                mine = holder == state.name if holder in able else state.name in able
                if room and mine and task.identity not in others:
                    break
            else:
                return None
            self._pending.remove(task)
            self._hold(task, state.name)
            return task

    def _begin(self, state: HostState, task: SshTask) -> None:
        task.began = time.monotonic()
        name = state.known.pop(task.identity, "")
        if name:
            state.jobs[name] = task
            task.screen.say(f"{task.run}: {state.name} has it already")
            return
        name = f"{task.identity}-{secrets.token_hex(3)}"
        state.jobs[name] = task
        try:
            state.host.send(task.job)
            state.host.start(task.entry, name)
        except Failed as error:
            del state.jobs[name]
            self._cut(state, task, str(error))
            self._aborted(task, str(error), state.name)

    def _gone(self, state: HostState, name: str, task: SshTask) -> None:
        """Handle a job that its host does not know: it never arrived, or was removed."""
        del state.jobs[name]
        if (result := ended(task.run)) not in (None, ABORTED):
            # It was fetched before, but the answer to the command that removed it there was lost.
            self._settled(state, task, str(result), why_of(task.run), None)
        elif task.seen or task.cancelled:
            self._aborted(task, "its host does not know it any more", state.name)
        else:
            with self._lock:
                self._pending.insert(0, task)

    def _fetch(self, state: HostState, name: str, task: SshTask, report: Mapping[str, Any]) -> None:
        """Fetch the result of an ended job."""
        copy = state.host.fetch(report, task.run)
        del state.jobs[name]
        self._settled(state, task, *copy)

    def _settled(
        self, state: HostState, task: SshTask, result: str, why: str, differing: list[str] | None
    ) -> None:
        if result == ABORTED and not task.is_unwanted():
            self._cut(state, task, why)
        self._tell(task, state, result, differing)
        self._finished(task, state.name, result, why, time.monotonic() - task.began)

    def _tell(
        self, task: SshTask, state: HostState, result: str, differing: list[str] | None
    ) -> None:
        """Warn if a second copy differs; note which host did the first."""
        if differing:
            task.screen.say(run_copies.difference_told(task.run, differing))
        elif differing is not None:
            how = "the same bytes" if self._blocks is None else "left out"
            task.screen.say(f"{task.run}: a second copy, from {state.name}: {how}")
        elif result != ABORTED:
            self._done(task.run, state.name)

    def _cut(self, state: HostState, task: SshTask, why: str) -> None:
        """Count a run that was cut short against both the run and the host."""
        with self._lock:
            self._cut_on.setdefault(task.key, set()).add(state.name)
            self._hosts.cut(state.name, why)

    def _silent(self, state: HostState, why: str) -> None:
        """Handle a host that does not answer: after LOST_S its runs are given to others."""
        if not state.silent:
            waiting = f"; its {len(state.jobs)} runs are waited for" if state.jobs else ""
            self._say(f"{state.name} does not answer: {why}{waiting}")
        state.silent = why
        is_lost = time.monotonic() - state.answered >= LOST_S
        with self._lock:
            for name, task in list(state.jobs.items()):
                if task.cancelled:
                    del state.jobs[name]
                    what = f"interrupted; {state.name} does not answer, and may go on with it"
                    self._over.put(Ended(task.job, task.run, ABORTED, what))
                elif is_lost:
                    del state.jobs[name]
                    state.late[name] = task
                    self._cut_on.setdefault(task.key, set()).add(state.name)
                    lost = f"its host has not answered for {LOST_S:.0f} s"
                    self._aborted(task, lost, state.name)
