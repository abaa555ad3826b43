# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts reached by ssh as those who do jobs: a thread for each, and one row of jobs for all."""

import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from contract.run_files import ABORTED
from contract.run_record import write_status
from errors import UserError
from run.hosts.hosts_table import Ending, table_of
from run.hosts.one_host import OneHost, identity, plan_of
from run.hosts.progress import Progress
from run.hosts.ssh import Failed, Unreached
from run.hosts.tasks import HostState, Task
from run.jobs import run_copies
from run.jobs.job import Job
from run.jobs.workers import Ended
from run.live import Display
from run.run_folders import ended, why_of

if TYPE_CHECKING:
    from rich.table import Table

LOOK_S = 5.0  # between two looks at a host, each a connection of ssh
LOST_S = 300.0  # without an answer, after which a host's runs are begun on others
MOST_CUT = 3  # runs in a row that were cut short on a host, which is left out then
KNOWN_S = 30.0  # in which a campaign that is gone on with asks for what hosts have of it
END_S = 60.0  # in which hosts that answer end what they do


class SshWorkers:
    """Jobs on hosts that are open and have proved themselves.

    known: by host the names of the jobs there that a driver before us has begun. folder: of all
    its campaigns. done: is told which host did which run.
    """

    attempts = 3
    here = False

    def __init__(
        self,
        hosts: list[OneHost],
        known: Mapping[str, list[str]],
        folder: Path,
        done: Callable[[Path, str], None],
    ) -> None:
        self.slots, self.left = sum(one.slots for one in hosts), 0
        self._ending = Ending(self.slots)
        self._folder = folder
        self._done = done
        self._began = time.monotonic()
        self._lock = threading.RLock()
        self._pending: list[Task] = []
        self._cut_on: dict[tuple[Path, int], set[str]] = {}  # hosts, by variant's folder and number
        self._ended: queue.Queue[Ended] = queue.Queue()
        self._closing = threading.Event()
        self._screen: Display | None = None  # of the last job, for what is about no job
        self._failure: Exception | None = None  # of a thread: no host's, but ours
        self._states = [
            HostState(one, {name.rpartition("-")[0]: name for name in known.get(one.name, ())})
            for one in hosts
        ]
        self._threads = [
            threading.Thread(target=self._follow, args=(one,), daemon=True) for one in self._states
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Put it into the row; a host that has it already, from before, goes on with it."""
        self._screen = screen
        plan = plan_of(job)
        where = str(run.parent.parent.relative_to(self._folder))
        task = Task(job, run, screen, unwanted, plan, identity(plan["jobs"][0], where))
        with self._lock:
            self._pending.append(task)

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since; raises what went wrong in a thread of ours."""
        if self._failure is not None:
            raise self._failure
        with self._lock:
            if self._pending and all(one.left_out for one in self._states):
                task = self._pending.pop(0)
                return [self._aborted(task, "no host is left that can do it")]
        over = []
        try:
            over.append(self._ended.get(timeout=wait_s))
            while True:
                over.append(self._ended.get_nowait())
        except queue.Empty:
            return over

    def cancel(self, job: Job) -> None:
        """Have it cut short, wherever it is."""
        with self._lock:
            for task in self._tasks():
                if task.job is job:
                    task.cancelled = True
            for task in [one for one in self._pending if one.cancelled]:
                self._pending.remove(task)
                self._ended.put(Ended(job, task.run, ABORTED, "interrupted before it began"))

    def shown(self) -> "SshWorkers":
        """The hosts."""
        return self

    def table(self) -> "Table":
        """A row for each host, and one of how much is left."""
        return table_of([one.row() for one in self._states], self._ending.words(self.left))

    def end(self) -> None:
        """Cut all jobs short; of hosts that do not answer, what they do goes on."""
        with self._lock:
            for task in self._tasks():
                task.cancelled = True
            self._pending.clear()
        until = time.monotonic() + END_S
        while time.monotonic() < until and any(one.jobs and not one.silent for one in self._states):
            time.sleep(LOOK_S / 10)
        while not self._ended.empty():
            self._ended.get_nowait()

    def close(self) -> None:
        """End all, and look no more."""
        self.end()
        self._closing.set()
        for thread in self._threads:
            thread.join()

    def _tasks(self) -> list[Task]:
        return [*self._pending, *(task for one in self._states for task in list(one.jobs.values()))]

    def _follow(self, state: HostState) -> None:
        """A host's thread."""
        while not self._closing.is_set():
            try:
                self._round(state)
                if state.silent:
                    self._say(f"{state.host.name} answers again")
                state.answered, state.silent = time.monotonic(), ""
            except (Unreached, Failed) as error:
                self._silent(state, str(error))
            except Exception as error:
                self._failure, state.silent = error, str(error)
                return
            # A host that is slow to answer is not kept busy with answering.
            self._closing.wait(max(LOOK_S, state.look_s))

    def _round(self, state: HostState) -> None:
        """Look at a host: take over what ended, end what is unwanted, begin what has room."""
        began = time.monotonic()
        found = {one["job"]: one for one in state.host.call("look")["jobs"]}
        state.look_s = time.monotonic() - began
        for name, task in list(state.jobs.items()):
            one = found.get(name)
            task.seen = task.seen or one is not None
            task.progress = Progress.from_json(one) if one else Progress()
            if one is None:
                self._gone(state, name, task)
            elif not one["alive"]:
                self._over(state, name, task, one)
            elif task.is_unwanted():
                state.host.call("cancel", jobs=[name])
        for name in list(state.late):
            self._late(state, name, found.get(name))
        self._note_strays(state, found)
        if time.monotonic() - self._began > KNOWN_S and state.known:
            self._drop_known(state)
        while (following := self._next(state)) is not None:
            self._begin(state, following)

    def _late(self, state: HostState, name: str, found: Mapping[str, Any] | None) -> None:
        """A run that was begun elsewhere since its host did not answer: if done, a second copy."""
        task = state.late[name]
        if found is not None and found["alive"]:
            state.host.call("cancel", jobs=[name])
            return
        del state.late[name]
        if found is not None and found["state"] not in ("", ABORTED):
            result, why, differing = state.host.fetch(found, task.run)
            self._tell(task, state, result, why, differing)
            with self._lock:
                for again in [one for one in self._pending if one.key == task.key]:
                    self._pending.remove(again)
                    self._ended.put(Ended(again.job, again.run, result, why))
        elif found is not None:
            state.host.call("forget", jobs=[name])

    def _note_strays(self, state: HostState, found: Mapping[str, Any]) -> None:
        """Jobs that appear later: a driver that was killed had still one command under way."""
        ours = {*state.jobs, *state.late, *state.known.values()}
        for name in found.keys() - ours:
            state.known[name.rpartition("-")[0]] = name

    def _drop_known(self, state: HostState) -> None:
        """End what nobody has asked for again."""
        names = list(state.known.values())
        state.known.clear()
        state.host.call("cancel", jobs=names)
        state.host.call("forget", jobs=names)

    def _next(self, state: HostState) -> Task | None:
        """The next job for this host; it is out of the row then."""
        with self._lock:
            healthy = {one.host.name for one in self._states if not (one.left_out or one.silent)}
            answering = [one for one in self._states if one is not state and not one.silent]
            others = {name for one in answering for name in list(one.known)}
            for task in self._pending:
                if task.identity in state.known:
                    break
                room = len(state.jobs) + len(state.known) < state.host.slots
                avoided = self._cut_on.get(task.key, set())
                avoid = state.host.name in avoided and bool(healthy - avoided)
                if room and not (avoid or state.left_out or task.identity in others):
                    break
            else:
                return None
            self._pending.remove(task)
            return task

    def _begin(self, state: HostState, task: Task) -> None:
        name = state.known.pop(task.identity, "")
        if name:
            state.jobs[name] = task
            task.began = time.monotonic()
            task.screen.say(f"{task.run}: {state.host.name} has it already")
            return
        name = f"{task.identity}-{secrets.token_hex(3)}"
        state.jobs[name] = task
        task.began = time.monotonic()
        try:
            state.host.send(task.job)
            state.host.start(task.job, task.plan, name)
        except Failed as error:
            del state.jobs[name]
            self._cut(state, task, str(error))
            self._ended.put(self._aborted(task, str(error), state))

    def _gone(self, state: HostState, name: str, task: Task) -> None:
        """A job that its host does not know: it never got it, or somebody removed it."""
        del state.jobs[name]
        if (result := ended(task.run)) not in (None, ABORTED):
            # It was taken over before; the answer to the command that removed it there was lost.
            self._finished(state, task, str(result), why_of(task.run), None)
            return
        if task.seen or task.cancelled:
            self._ended.put(self._aborted(task, "its host does not know it any more", state))
            return
        with self._lock:
            self._pending.insert(0, task)

    def _over(self, state: HostState, name: str, task: Task, found: Mapping[str, Any]) -> None:
        result, why, differing = state.host.fetch(found, task.run)
        del state.jobs[name]
        self._finished(state, task, result, why, differing)

    def _finished(
        self, state: HostState, task: Task, result: str, why: str, differing: list[str] | None
    ) -> None:
        """A job is over, and what it left is here."""
        if result == ABORTED and not task.is_unwanted():
            self._cut(state, task, why)
        elif result != ABORTED:
            state.cut_in_a_row = 0
            state.ended += 1
            self._ending.note(time.monotonic() - task.began)
        self._tell(task, state, result, why, differing)
        self._ended.put(Ended(task.job, task.run, result, f"{why} (on {state.host.name})"))

    def _tell(
        self, task: Task, state: HostState, result: str, why: str, differing: list[str] | None
    ) -> None:
        """Say loudly that a second copy differs, note who did the first."""
        if differing:
            task.screen.say(run_copies.difference_told(task.run, differing))
        elif differing is not None:
            task.screen.say(f"{task.run}: a second copy, from {state.host.name}: the same bytes")
        elif result != ABORTED:
            self._done(task.run, state.host.name)

    def _cut(self, state: HostState, task: Task, why: str) -> None:
        """Count a run that was cut short on a host against both."""
        with self._lock:
            self._cut_on.setdefault(task.key, set()).add(state.host.name)
            state.cut_in_a_row += 1
            if state.cut_in_a_row >= MOST_CUT and not state.left_out:
                state.left_out = f"{MOST_CUT} runs in a row were cut short there: {why}"
                task.screen.say(f"{state.host.name} is left out: {state.left_out}")

    def _silent(self, state: HostState, why: str) -> None:
        """A host does not answer: what it does is begun elsewhere when it is silent for long."""
        if not state.silent:
            waiting = f"; its {len(state.jobs)} runs are waited for" if state.jobs else ""
            self._say(f"{state.host.name} does not answer: {why}{waiting}")
        state.silent = why
        is_lost = time.monotonic() - state.answered >= LOST_S
        with self._lock:
            for name, task in list(state.jobs.items()):
                if task.cancelled:
                    del state.jobs[name]
                    what = f"interrupted; {state.host.name} does not answer, and may go on with it"
                    self._ended.put(Ended(task.job, task.run, ABORTED, what))
                elif is_lost:
                    del state.jobs[name]
                    state.late[name] = task
                    self._cut_on.setdefault(task.key, set()).add(state.host.name)
                    lost = f"its host has not answered for {LOST_S:.0f} s"
                    self._ended.put(self._aborted(task, lost, state))

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(text)

    def _aborted(self, task: Task, why: str, state: HostState | None = None) -> Ended:
        """A job that left nothing: its folder says why, and names no host."""
        if not task.run.exists():
            task.run.mkdir(parents=True)
            write_status(task.run, ABORTED, why, elapsed_s=None)
        told = f"{why} (on {state.host.name})" if state else why
        return Ended(task.job, task.run, ABORTED, told, error=UserError(told))
