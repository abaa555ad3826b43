# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel of a row is run next: the oversight of a campaign's runner."""

import math
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from rich.table import Table

from bisection import search
from bisection.evidence import Evidence
from bisection.search import Step as Decision
from contract.run_files import ABORTED
from errors import UserError, printable
from run.bisect import results
from run.bisect.builder import Builder
from run.bisect.matched import Matched
from run.bisect.memory import Memory
from run.bisect.state import State, Step
from run.campaign import Campaign
from run.preparation import Ready, say
from run.run_folders import numbered
from run.screen import Shown

BEST = 5  # commits that are named
TRIES = 2  # runs that tell nothing, after which a kernel is untestable
MOST_CUT = 3  # kernels in a row whose runs were cut short: then it is this machine
AHEAD = 2  # kernels that are built while guests run
CONFIRMS = 25  # runs of a finding
LEAST_TELLS = 0.15  # nats that a run brings on the average, at the least, for estimates


class Search(Matched):
    """Runs kernels of a row until it is known which made the step.

    row: the good end first. ready: the guests of all kernels that were entered into the campaign,
    to which new ones are added.
    """

    def __init__(
        self,
        state: State,
        memory: Memory,
        save: Callable[[], None],
        lock: AbstractContextManager[Any],
        *,
        row: list[str],
        campaign: Campaign,
        ready: dict[str, Ready],
        builder: Builder,
        most_runs: int,
    ) -> None:
        super().__init__(state, memory, save, lock)
        self._row = row
        self._place = {name: place for place, name in enumerate(row)}
        self._campaign = campaign
        self._ready = ready
        self._builder = builder
        self._most_runs = most_runs
        self._waits = ""
        self._cut_in_a_row = 0
        self._last_cut = ""
        self._decided: tuple[Evidence | None, dict[tuple[int, ...], Decision]] = None, {}

    def evidence(self) -> Evidence:
        """What the runs so far say of the row."""
        figures: dict[int, list[float]] = {}
        for one in self.state.runs:
            if one.counts and one.name in self._place:
                figures.setdefault(self._place[one.name], []).append(results.value(one))
        untestable = {
            self._place[name]
            for name in (*self.state.untestable, *self.state.twins)
            if name in self._place
        }
        innocent: set[int] = set()
        for name, other in self.state.twins.items():
            if name in self._place and other in self._place:
                low, high = sorted((self._place[name], self._place[other]))
                innocent |= set(range(low + 1, high + 1))
        last = len(self._row) - 1
        return Evidence(last, figures, frozenset(untestable - {0, last}), frozenset(innocent))

    def decision(self, busy: Collection[tuple[str, int]] = ()) -> Decision:
        """What is to be done next, while those runs are under way."""
        evidence = self.evidence()
        pending = tuple(sorted({self._place[label] for label, _ in busy}))
        if self._decided[0] != evidence:
            self._decided = evidence, {}
        known = self._decided[1]
        if pending not in known:
            known[pending] = search.step(evidence, pending, self._most_runs)
        return known[pending]

    def todo(
        self, left: list[tuple[str, int]], busy: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]] | None:
        """The run that tells most, if its kernel is there."""
        with self.lock:
            if self._cut_in_a_row >= MOST_CUT:
                raise UserError(
                    f"{MOST_CUT} kernels in a row could not be run: {self._last_cut}",
                    hint="that is no property of a commit; put it right, and --resume",
                )
            while (now := self.decision(busy)).word == "run":
                self._build_ahead(now, busy)
                name = self._row[now.run]
                if name in self._ready or self._enter(self._step(now.run)):
                    self._waits = ""
                    taken = {number for label, number in busy if label == name}
                    numbers = taken | numbered(self._campaign.path / name).keys()
                    return [(name, max(numbers, default=0) + 1)]
                if name not in self.state.untestable and name not in self.state.twins:
                    return []
        return None

    def _build_ahead(self, now: Decision, busy: Collection[tuple[str, int]]) -> None:
        """Have that kernel built, and then the two that may be wanted next."""
        pending = [*(self._place[label] for label, _ in busy), now.run]
        wanted = [now.run, *search.likely_next(self.evidence(), pending)]
        self._builder.want([self._step(place) for place in wanted[: 1 + AHEAD]])

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Keep what it came to; a kernel whose runs tell nothing is untestable."""
        facts = results.run_facts(run, label, state)
        with self.lock:
            self.keep(facts)
            cut = facts.state == ABORTED
            self._cut_in_a_row = self._cut_in_a_row + 1 if cut else 0
            self._last_cut = facts.why_not if cut else ""
            own = [one for one in self.state.runs if one.name == label]
            if not any(one.counts for one in own) and (len(own) >= TRIES or cut):
                self.state.untestable[label] = f"does not run: {facts.state}, {facts.why_not}"
                say(f"{label}: left out: {self.state.untestable[label]}")
            self._save()
            say(self.line())

    def near(self, label: str) -> str:
        """The nearest kernel of the row whose memory is known."""
        place = self._place.get(label, 0)
        known = [name for name in self.state.memory if name in self._place]
        return min(known, key=lambda name: abs(self._place[name] - place), default="")

    def runs_left(self, left: int) -> int:
        """By how uncertain it is, and what the next run tells; and those that confirm it."""
        now = self.decision()
        if now.word != "run":
            return CONFIRMS
        shares = now.shares
        entropy = -sum(share * math.log(share) for share in shares if share > 0)
        return math.ceil(float(entropy) / max(0.7 * now.tells, LEAST_TELLS)) + CONFIRMS

    def words(self, place: str) -> str:
        """How many commits are left."""
        left = self.decision().left
        return f"{left} of {len(self._row) - 1} left"

    def line(self) -> str:
        """Where it is, and the most probable ones."""
        now = self.decision()
        best = ", ".join(f"{name} {share:.0%}" for name, share, _ in self.best(now))
        return f"  {self.words('')}; most probable: {best}"

    def best(self, now: Decision) -> list[tuple[str, float, str]]:
        """The most probable commits: name, probability, subject."""
        shares = now.shares
        places = sorted(range(len(shares)), key=lambda place: -shares[place])[:BEST]
        return [
            (self._row[place], float(shares[place]), self._step(place).subject)
            for place in places
            if shares[place] > 0
        ]

    def shown(self) -> Shown | None:
        """A table of the most probable commits."""
        return self

    def table(self) -> Table:
        """As it is now."""
        with self.lock:
            now = self.decision()
            title = f"bisect: {self.words('')}, about {self.runs_left(0)} runs to go"
            making = self._builder.now
            title += f"; {making}" if making else ""
            table = Table(title=printable(title), title_justify="left")
            for column in ("commit", "probability", "runs", ""):
                table.add_column(column)
            for name, share, subject in self.best(now):
                runs = sum(one.name == name for one in self.state.runs)
                table.add_row(name, f"{share:.1%}", str(runs), printable(subject[:60]))
        return table

    def _step(self, place: int) -> Step:
        return self.state.steps[self._row[place]]

    def _enter(self, step: Step) -> bool:
        """Whether its kernel is there, and in the campaign now; what keeps it from that is kept."""
        made = self._builder.made(step.name)
        if made is None:
            if self._waits != step.name:
                say(f"waiting for the kernel of {step.name}: {step.subject}")
                self._waits = step.name
            return False
        if made.error is not None:
            raise made.error
        if made.ready is None:
            self.state.untestable[step.name] = made.why_not
            say(f"{step.name}: left out: {made.why_not}")
            self._save()
            return False
        digest = self.state.digests[step.name] = made.ready.guest.kernel.image_digest
        if twin := self._twin(step.name, digest):
            self.state.twins[step.name] = twin
            say(f"{step.name}: the same binary as {twin}, so it is not the one")
            self._save()
            return False
        enter(self._campaign, self._ready, made.ready)
        return True

    def _twin(self, name: str, digest: str) -> str:
        """Another kernel of this row with the same binary, which is run instead."""
        ends = (self._row[0], self._row[-1])
        run = {one.name for one in self.state.runs}
        for other in self._row:
            there = other in ends or other in run or other in self._ready
            if there and other != name and self.state.digests.get(other) == digest:
                return other
        return ""


def enter(campaign: Campaign, entered: dict[str, Ready], ready: Ready) -> None:
    """Take one more variant into a campaign that is open."""
    (variant,) = campaign.enter([(ready.variant, ready.guest.kernel)])
    entered[variant.label] = Ready(variant, ready.guest)
