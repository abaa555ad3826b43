# SPDX-License-Identifier: GPL-2.0-or-later
"""Chooses the kernel of a row to run next: oversees a campaign's runner."""

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
from run.preparation import PreparedVariant, say
from run.run_folders import numbered
from run.screen import Shown

BEST = 5  # commits that are printed
TRIES = 2  # runs that do not count, after which a kernel is untestable
MOST_CUT = 3  # runs in a row that were cut short: then this machine is at fault
AHEAD = 2  # kernels that are built while guests run
CONFIRMS = 25  # runs that confirm a finding, about
LEAST_TELLS = 0.15  # lower bound of the nats that a run yields on average, for estimates


class Search(Matched):
    """Runs kernels of a row until the commit that made the step is known.

    row: names, the good end first. ready: the guests of all kernels in the campaign; new ones are
    added to it.
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
        ready: dict[str, PreparedVariant],
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
        """The runs so far, as evidence about the row."""
        figures: dict[int, list[float]] = {}
        for run in self.state.runs:
            if run.counts and run.name in self._place:
                figures.setdefault(self._place[run.name], []).append(results.value(run))
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
        """What to do next; busy: (label, number) of runs in progress."""
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
        """The most informative run; [] while its kernel is being made, None if no run is needed."""
        with self.lock:
            if self._cut_in_a_row >= MOST_CUT:
                raise UserError(
                    f"{MOST_CUT} runs in a row were cut short: {self._last_cut}",
                    hint="the commit is not to blame: fix the cause, then --resume",
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
        """Build that kernel, and then the next ones that may be needed."""
        pending = [*(self._place[label] for label, _ in busy), now.run]
        wanted = [now.run, *search.likely_next(self.evidence(), pending)]
        self._builder.want([self._step(place) for place in wanted[: 1 + AHEAD]])

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Keep the run's result; a kernel whose runs do not count becomes untestable."""
        facts = results.run_facts(run, label, state)
        with self.lock:
            self.keep(facts)
            cut = facts.state == ABORTED
            self._cut_in_a_row = self._cut_in_a_row + 1 if cut else 0
            self._last_cut = facts.why_not if cut else ""
            own = [other for other in self.state.runs if other.name == label]
            if not any(other.counts for other in own) and (len(own) >= TRIES or cut):
                self.state.untestable[label] = f"does not run: {facts.state}, {facts.why_not}"
                say(f"{label}: left out: {self.state.untestable[label]}")
            self._save()
            say(self.line())

    def near(self, label: str) -> str:
        """The nearest kernel of the row with known memory."""
        place = self._place.get(label, 0)
        known = [name for name in self.state.memory if name in self._place]
        return min(known, key=lambda name: abs(self._place[name] - place), default="")

    def runs_left(self, left: int) -> int:
        """Estimated runs to go: entropy by information per run, and the runs that confirm."""
        now = self.decision()
        if now.word != "run":
            return CONFIRMS
        shares = now.shares
        entropy = -sum(share * math.log(share) for share in shares if share > 0)
        return math.ceil(float(entropy) / max(0.7 * now.tells, LEAST_TELLS)) + CONFIRMS

    def words(self, place: str) -> str:
        """The number of commits left, as a phrase."""
        left = self.decision().left
        return f"{left} of {len(self._row) - 1} left"

    def line(self) -> str:
        """A line with the progress and the most probable commits."""
        now = self.decision()
        best = ", ".join(f"{name} {share:.0%}" for name, share, _ in self.best(now))
        return f"  {self.words('')}; most probable: {best}"

    def best(self, now: Decision) -> list[tuple[str, float, str]]:
        """The most probable commits: name, probability (0 to 1), subject."""
        shares = now.shares
        places = sorted(range(len(shares)), key=lambda place: -shares[place])[:BEST]
        return [
            (self._row[place], float(shares[place]), self._step(place).subject)
            for place in places
            if shares[place] > 0
        ]

    def shown(self) -> Shown | None:
        """Itself: it has a table to show."""
        return self

    def table(self) -> Table:
        """The table of the most probable commits at this moment."""
        with self.lock:
            now = self.decision()
            title = f"bisect: {self.words('')}, about {self.runs_left(0)} runs to go"
            making = self._builder.now
            title += f"; {making}" if making else ""
            table = Table(title=printable(title), title_justify="left")
            for column in ("commit", "probability", "runs", ""):
                table.add_column(column)
            for name, share, subject in self.best(now):
                runs = sum(run.name == name for run in self.state.runs)
                table.add_row(name, f"{share:.1%}", str(runs), printable(subject[:60]))
        return table

    def _step(self, place: int) -> Step:
        return self.state.steps[self._row[place]]

    def _enter(self, step: Step) -> bool:
        """Enter the step's kernel into the campaign, if possible; notes why if it never is."""
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
        """Another kernel of this row with the same binary, which is run instead; "" if none."""
        ends = (self._row[0], self._row[-1])
        run = {facts.name for facts in self.state.runs}
        for other in self._row:
            there = other in ends or other in run or other in self._ready
            if there and other != name and self.state.digests.get(other) == digest:
                return other
        return ""


def enter(campaign: Campaign, entered: dict[str, PreparedVariant], ready: PreparedVariant) -> None:
    """Enter another variant into an open campaign."""
    (variant,) = campaign.enter([(ready.variant, ready.guest.kernel)])
    entered[variant.label] = PreparedVariant(variant, ready.guest)
