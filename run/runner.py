# SPDX-License-Identifier: GPL-2.0-or-later
"""Does a campaign's runs, one after the other, each in a fresh VM, and says how far it is."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from contract.options import Options
from contract.run_files import ABORTED, COMPLETED
from errors import UserError
from run import checkout, durations
from run.campaign import Campaign
from run.live import View
from run.measure_command import errand
from run.preparation import Ready, say
from setup import history
from vm import session
from vm.qemu import GUEST

ATTEMPTS = 2  # in a row, of a run that the suite or the machine cut short


@dataclass
class Outcome:
    """What came of a command: each run's state, and what is left to do, if anything is."""

    folder: Path
    states: list[str] = field(default_factory=list)
    left: str = ""


class Runner:
    """The runs of an open campaign; ready: by label what was made ready for each variant."""

    def __init__(
        self,
        options: Options,
        campaign: Campaign,
        ready: Mapping[str, Ready],
        stopped: Callable[[], bool],
    ) -> None:
        self._options = options
        self._campaign = campaign
        self._ready = ready
        self._stopped = stopped
        self._cut_short: dict[str, int] = {}  # times in a row
        # A single run is not repeated: whoever asked for it sees what cut it short.
        self._alone = campaign.asked == 1
        self._attempts = 1 if self._alone else ATTEMPTS
        self._suite = checkout.commit()
        self._commits = options.commits or history.count(Path(str(options.repo)))

    def go(self) -> Outcome:
        """Every run that is missing, interleaved; or up to the look at which all is decided."""
        outcome = Outcome(self._campaign.path)
        total = len(self._campaign.left())
        if not total:
            say(f"{self._campaign.path}: nothing is missing")
        for look in self._campaign.looks or (None,):
            while (todo := self._todo(look)) and not self._stopped():
                label, number = todo[0]
                place = f"{total - len(self._todo(None)) + 1} of {total}" if total > 1 else ""
                state = self._one(label, number, place, todo)
                outcome.states += [] if state is None else [state]
            if self._stopped() or (look and self._sure(look)):
                break
        left = len(self._campaign.left())
        given_up = [label for label, cut in self._cut_short.items() if cut >= self._attempts]
        if given_up and not self._alone:
            outcome.left = f"given up after {ATTEMPTS} runs cut short: {', '.join(given_up)}"
        elif left and self._stopped():
            outcome.left = f"interrupted; {left} of {total} runs are missing. To go on:"
        return outcome

    def _todo(self, look: int | None) -> list[tuple[str, int]]:
        return [
            (label, number)
            for label, number in self._campaign.left(look)
            if self._cut_short.get(label, 0) < self._attempts
        ]

    def _one(self, label: str, number: int, place: str, todo: list[tuple[str, int]]) -> str | None:
        """One run; its state, or None if it was cut short and is to be repeated."""
        options, variant, guest = self._options, *self._ready[label]
        run_dir, order = self._campaign.begin(label, number)
        about = durations.estimate(options.parameters | options.in_machine, guest.accel, len(todo))
        say(
            f"run {number} of {label}: {guest.kernel.release} in {run_dir}"
            + (f" ({place}, about {durations.words(about)} left)" if place and about else "")
        )
        facts = {
            "suite": self._suite,
            "label": label,
            "variant": label,
            "order": order,
            "parameters": options.parameters,
        }
        began = time.monotonic()
        title = f"{label} ({place})" if place else label
        echo = bool(options.atomic_order)
        own = guest.clock == GUEST
        with View(title, run_dir, options.gitk, self._commits, options.passes, echo, own) as view:
            try:
                state, why = session.run(
                    guest,
                    errand(options, variant, clock=guest.clock, seed=number),
                    run_dir,
                    tick=view.tick,
                    stopped=self._stopped,
                    facts=facts,
                )
            except UserError as error:
                # Said in status.json too; of a campaign the other runs go on.
                if self._alone:
                    raise
                state, why = ABORTED, str(error)
        say(f"{run_dir}: {state}: {why}")
        if state == COMPLETED:
            durations.note(
                options.parameters | options.in_machine, guest.accel, time.monotonic() - began
            )
        if state == ABORTED and not self._stopped():
            self._cut_short[label] = 1 + self._cut_short.get(label, 0)
            if self._cut_short[label] < self._attempts:
                say(f"  once more, since it was cut short: {label} {number}")
                self._campaign.set_aside(run_dir)
                return None
        else:
            self._cut_short.pop(label, None)
        return state

    def _sure(self, look: int) -> bool:
        """Whether the runs so far decide each comparison; another process judges them."""
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
