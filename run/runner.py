# SPDX-License-Identifier: GPL-2.0-or-later
"""Does a campaign's runs, each in a fresh VM, as many in parallel as allowed."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract import checkout
from contract.options import Options
from contract.run_files import ABORTED
from contract.workload import DESKTOP
from run.campaign import Campaign
from run.estimates import durations, first_estimate
from run.jobs.job import Job, Streams
from run.jobs.workers import Ended, Workers
from run.measure_command import guest_job
from run.preparation import PreparedVariant, say
from run.screen import Screen, Shown
from vm.guest import Guest
from workloads.registry import memory_unless_given, stream_names

LOOK_S = 0.5  # between two checks whether a run ended, or Ctrl-C came


class Oversight:
    """Decides which runs a campaign does, and with how much memory; a bisect overrides it.

    This base class does the missing runs, each with its prepared guest.
    """

    says_that_nothing_is_missing = True

    def todo(
        self, left: list[tuple[str, int]], busy: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]] | None:
        """The runs to begin now, in order; left: the missing runs; busy: those in progress.

        None if there will be no more runs, an empty list if that is not known yet.
        """
        return left or None

    def fitted(self, label: str, guest: Guest) -> Guest:
        """The guest for the next run of this variant."""
        return guest

    def misfits(self, label: str, run: Path) -> bool:
        """Whether a run in progress has to be cut short and repeated with another guest."""
        return False

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Handle a run that has ended and will not be repeated."""

    def runs_left(self, left: int) -> int:
        """About how many runs are still to do; left: the number of missing runs."""
        return left

    def shown(self) -> Shown | None:
        """What the screen shows beside the runs; None for nothing."""
        return None

    def words(self, place: str) -> str:
        """The progress, shown beside a run's name; place: "3 of 8", "" if the run is alone."""
        return place


@dataclass
class Outcome:
    """The outcome of a command: each run's state, and a message if runs are left."""

    folder: Path
    states: list[str] = field(default_factory=list)
    left: str = ""


class Runner:
    """Does the runs of an open campaign with workers.

    ready: label -> prepared guest. oversight: decides which runs to do.
    """

    def __init__(
        self,
        options: Options,
        campaign: Campaign,
        ready: Mapping[str, PreparedVariant],
        workers: Workers,
        stopped: Callable[[], bool],
        oversight: Oversight | None = None,
    ) -> None:
        self._options = options
        self._oversight = oversight or Oversight()
        self._campaign = campaign
        self._ready = ready
        self._asked_to_stop = stopped
        self._failed = False
        self._workers = workers
        self._busy: dict[tuple[str, int], Job] = {}
        self._misfits: set[tuple[str, int]] = set()  # of `_busy`: to be repeated with another guest
        self._cut_short: dict[tuple[str, int], int] = {}  # run: how often it was cut short
        self._given_up: set[str] = set()
        # A single run is not repeated: the user sees what cut it short.
        self._alone = campaign.asked == 1
        self._attempts = 1 if self._alone else workers.attempts
        self._suite = checkout.commit()

    def go(self) -> Outcome:
        """Do all missing runs, interleaved, or until a look decides all comparisons."""
        outcome = Outcome(self._campaign.path)
        total = len(self._campaign.left())
        if not total and self._oversight.says_that_nothing_is_missing:
            say(f"{self._campaign.path}: nothing is missing")
        elif self._workers.here and self._workers.slots < (self._options.jobs or 1):
            say("one run at a time: on the host's clock two would measure each other")
        with Screen() as screen:
            for part in (self._oversight, self._workers):
                if shown := part.shown():
                    screen.add(shown)
            try:
                for look in self._campaign.looks or (None,):
                    self._up_to(look, total, outcome, screen)
                    if self._stopped() or (look and self._sure(look)):
                        break
            finally:
                self._campaign.keep()
        left = len(self._campaign.left())
        if self._given_up and not self._alone:
            names = ", ".join(sorted(self._given_up))
            outcome.left = f"given up after a run was cut short {self._attempts} times: {names}"
        elif left and self._stopped():
            outcome.left = f"interrupted; {left} of {total} runs are missing. To go on:"
        return outcome

    def _stopped(self) -> bool:
        return self._failed or self._asked_to_stop()

    def _up_to(self, look: int | None, total: int, outcome: Outcome, screen: Screen) -> None:
        """Do the runs that are missing up to this look."""
        try:
            while True:
                more = self._begin_more(look, total, screen)
                if not self._busy:
                    if not more:
                        return
                    time.sleep(LOOK_S)
                    continue
                if self._stopped():
                    for job in self._busy.values():
                        self._workers.cancel(job)
                for ended in self._workers.look(LOOK_S):
                    state = self._end(ended, screen)
                    outcome.states += [] if state is None else [state]
                screen.update()
        finally:
            self._failed = self._failed or bool(self._busy)
            self._workers.end()

    def _begin_more(self, look: int | None, total: int, screen: Screen) -> bool:
        """Begin as many runs as there is room for; returns whether there may be more."""
        if self._stopped():
            return False
        room = self._workers.slots - len(self._busy)
        if room <= 0:
            return True  # do not scan all run folders while nothing can begin
        everything = self._todo(None)
        up_to = everything if look is None else self._todo(look)
        left = [run for run in up_to if run not in self._busy]
        began = total - sum(run not in self._busy for run in everything)
        self._workers.left = len(everything)
        todo = self._oversight.todo(left, list(self._busy))
        for number, run in enumerate((todo or [])[:room], began + 1):
            place = self._oversight.words(f"{number} of {total}" if total > 1 else "")
            known = [label for label, _ in (*left, *self._busy)]
            number_left = self._oversight.runs_left(len(known))
            labels = (known + [run[0]] * number_left)[:number_left]
            self._begin(*run, place, labels, screen)
        return todo is not None

    def _todo(self, look: int | None) -> list[tuple[str, int]]:
        return [
            (label, number)
            for label, number in self._campaign.left(look)
            if label not in self._given_up
        ]

    def _begin(self, label: str, number: int, place: str, left: list[str], screen: Screen) -> None:
        """Submit one run."""
        variant, made = self._ready[label]
        guest = self._oversight.fitted(label, made)
        options = self._options.of(variant)
        run_dir, order = self._campaign.begin(label, number, make=self._workers.here)
        about, a_run = self._about(left, guest), self._about([label], guest)
        notes = [
            *([place] if place else []),
            *([f"{about} left" if place else about] * bool(about)),
        ]
        screen.say(
            f"run {number} of {label}: {guest.kernel.release} in {run_dir}"
            + (f" ({', '.join(notes)})" if notes else "")
        )
        facts = {
            "suite": self._suite,
            "label": label,
            "variant": label,
            "order": order,
            "parameters": options.parameters,
        }
        if options.workload != DESKTOP or options.screen:
            facts["memory_of_workload"] = memory_unless_given(options)
        if guest is not made:
            facts["memory_of_vm"] = guest.hardware.memory
        seed = self._campaign.seed(label, number)
        job = Job(
            label,
            number,
            guest,
            guest_job(options, variant, clock=guest.timing.clock, seed=seed),
            facts,
            Streams.of(options, stream_names(options)),
            place,
            f"{a_run} a run" if a_run else "",
        )
        self._busy[job.key] = job
        self._workers.submit(job, run_dir, screen, lambda: self._is_misfit(job, run_dir))

    def _is_misfit(self, job: Job, run: Path) -> bool:
        """Whether a run in progress has to be repeated with another guest."""
        if job.key not in self._misfits and self._oversight.misfits(job.label, run):
            self._misfits.add(job.key)
        return job.key in self._misfits

    def _end(self, ended: Ended, screen: Screen) -> str | None:
        """Handle an ended run; returns its state, or None if it has to be repeated."""
        job, run = ended.job, ended.run
        del self._busy[job.key]
        if self._alone and ended.error is not None:
            raise ended.error
        elsewhere = not self._workers.here
        # A run on another host can be checked only when its files are here.
        misfits = self._is_misfit(job, run) if elsewhere else job.key in self._misfits
        self._misfits.discard(job.key)
        if misfits and (elsewhere or ended.state == ABORTED) and not self._stopped():
            self._campaign.set_aside(run)
            return None
        # status.json has it, too; a campaign's other runs go on.
        screen.say(f"{run}: {ended.state}: {ended.why}")
        if ended.seconds is not None:
            durations.note(self._kind(job.label), job.guest.accel, ended.seconds)
        final = self._repeated(ended, screen)
        if final is not None and not self._stopped():
            self._oversight.over(job.label, job.number, run, final)
        return final

    def _kind(self, label: str) -> dict[str, Any]:
        """What the duration of this variant's runs depends on."""
        return durations.kind_of(self._options.of(self._ready[label].variant), self._workers.slots)

    def _about(self, labels: list[str], guest: Guest) -> str:
        """The total time of runs of these variants: 'about 2 to 4 min'; empty if unknown."""
        if not self._workers.here:
            return ""
        run_options = [self._options.of(self._ready[label].variant) for label in labels]
        accel, clock, jobs = guest.accel, guest.timing.clock, self._workers.slots
        spans = first_estimate.spans(run_options, accel, jobs, clock, self._options.qemu)
        return first_estimate.words(first_estimate.in_all(spans, jobs)) if spans else ""

    def _repeated(self, ended: Ended, screen: Screen) -> str | None:
        """The state of an ended run; None if it was cut short and has to be repeated."""
        job = ended.job
        if ended.state != ABORTED or self._stopped():
            return ended.state
        self._cut_short[job.key] = 1 + self._cut_short.get(job.key, 0)
        if self._cut_short[job.key] >= self._attempts:
            self._given_up.add(job.label)
            return ended.state
        screen.say(f"  once more, since it was cut short: {job.label} {job.number}")
        self._campaign.set_aside(ended.run)
        return None

    def _sure(self, look: int) -> bool:
        """Whether the runs so far decide every comparison, according to analysis.compare."""
        done = subprocess.run(
            [sys.executable, "-m", "analysis.compare", str(self._campaign.path), "--json"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            say(f"the verdicts after {look} runs of each failed: {done.stderr.strip()}")
            return False
        sure = bool(json.loads(done.stdout)["sure"])
        say(f"after {look} runs of each: " + ("all is decided" if sure else "not sure yet"))
        return sure
