# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel of a row is run next: the oversight of a campaign's runner."""

import math
import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from bisection import search
from bisection.evidence import Evidence
from bisection.search import Step as Decision
from errors import printable
from run.bisect import results
from run.bisect.builder import Builder
from run.bisect.memory import Memory
from run.bisect.state import RunFacts, State, Step
from run.campaign import Campaign
from run.preparation import Ready, say
from run.run_folders import numbered
from run.screen import Shown
from vm.guest import Guest

BEST = 5  # commits that are named
TRIES = 2  # runs that tell nothing, after which a kernel is untestable
CONFIRMS = 25  # runs of a finding
LEAST_TELLS = 0.15  # nats that a run brings on the average, at the least, for estimates


class Matched:
    """The runs that a campaign lacks, each kernel with the same memory; what they came to is kept.

    save: called when the state has changed. read: what a run came to (results.run_facts).
    """

    def __init__(
        self,
        state: State,
        memory: Memory,
        save: Callable[[], None],
        read: Callable[[Path, str], RunFacts] = results.run_facts,
    ) -> None:
        self.state = state
        self._memory = memory
        self._save = save
        self._read = read
        self._given: dict[str, int] = {}
        self.lock = threading.RLock()

    def todo(
        self, left: list[tuple[str, int]], busy: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]] | None:
        """Those that the campaign lacks."""
        return left or None

    def fitted(self, label: str, guest: Guest) -> Guest:
        """A VM with so much memory that this kernel leaves what the good end leaves."""
        more = self._memory.more_mib(label, self.near(label))
        self._given[label] = more
        return replace(guest, memory=guest.memory + (more << 20)) if more else guest

    def near(self, label: str) -> str:
        """A kernel of about the same size."""
        return ""

    def misfits(self, label: str, run: Path) -> bool:
        """Whether its memory turned out to be another one."""
        more = self._given.get(label, 0)
        if not self._memory.misfits(label, run, more):
            return False
        now = self._memory.more_mib(label)
        say(
            f"{label}: another MemAvailable than the good end's; once more in a VM of "
            f"{now - more:+d} MiB ({now:+d} in all)"
        )
        self._save()
        return True

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Keep what it came to."""
        facts = self._read(run, label)
        with self.lock:
            self.keep(facts)
        self._save()

    def keep(self, facts: RunFacts) -> None:
        """Once."""
        if all(one.place != facts.place for one in self.state.runs):
            self.state.runs.append(facts)

    def runs_left(self, left: int) -> int:
        """Those that the campaign lacks."""
        return left

    def shown(self) -> Shown | None:
        """Nothing."""
        return None

    def words(self, place: str) -> str:
        """As it is."""
        return place


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
        *,
        row: list[str],
        campaign: Campaign,
        ready: dict[str, Ready],
        builder: Builder,
        most_runs: int,
        read: Callable[[Path, str], RunFacts] = results.run_facts,
    ) -> None:
        super().__init__(state, memory, save, read)
        self._row = row
        self._place = {name: place for place, name in enumerate(row)}
        self._campaign = campaign
        self._ready = ready
        self._builder = builder
        self._most_runs = most_runs
        self._waits = ""
        self._known: tuple[object, Decision] | None = None

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
        """What is to be done next."""
        evidence = self.evidence()
        pending = sorted({self._place[label] for label, _ in busy} & {*range(len(self._row))})
        key = (repr(evidence), tuple(pending))
        if self._known is None or self._known[0] != key:
            now = search.step(evidence, pending, self._most_runs)
            self._known = key, now
            if now.word == "run":
                wanted = [now.run, *search.likely_next(evidence, now.known, [*pending, now.run])]
                self._builder.want([self._step(place) for place in wanted[:3]])
        return self._known[1]

    def todo(
        self, left: list[tuple[str, int]], busy: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]] | None:
        """The run that tells most, if its kernel is there."""
        with self.lock:
            while True:
                now = self.decision(busy)
                if now.word != "run":
                    return None
                name = self._row[now.run]
                if name not in self._ready and not self._enter(self._step(now.run)):
                    if name in self.state.untestable or name in self.state.twins:
                        continue
                    return []
                self._waits = ""
                taken = {number for label, number in busy if label == name}
                numbers = taken | numbered(self._campaign.path / name).keys()
                return [(name, max(numbers, default=0) + 1)]

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Keep what it came to; a kernel whose runs tell nothing is untestable."""
        facts = self._read(run, label)
        with self.lock:
            self.keep(facts)
            own = [one for one in self.state.runs if one.name == label]
            if not any(one.counts for one in own) and (
                len(own) >= TRIES or facts.state == "aborted"
            ):
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
        shares = now.known.commits()
        entropy = -sum(share * math.log(share) for share in shares if share > 0)
        return math.ceil(float(entropy) / max(0.7 * now.tells, LEAST_TELLS)) + CONFIRMS

    def words(self, place: str) -> str:
        """How many commits are left."""
        left = search.commits_left(self.decision().known)
        return f"{left} of {len(self._row) - 1} left"

    def line(self) -> str:
        """Where it is, and the most probable ones."""
        now = self.decision()
        best = ", ".join(f"{name} {share:.0%}" for name, share, _ in self.best(now))
        return f"  {self.words('')}; most probable: {best}"

    def best(self, now: Decision) -> list[tuple[str, float, str]]:
        """The most probable commits: name, probability, subject."""
        shares = now.known.commits()
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
            title += f"; building {making}" if making else ""
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
        twin = self._twin(step.name, made.ready)
        if twin:
            self.state.twins[step.name] = twin
            say(f"{step.name}: the same binary as {twin}, so it is not the one")
            self._save()
            return False
        enter(self._campaign, self._ready, made.ready)
        return True

    def _twin(self, name: str, ready: Ready) -> str:
        """Another kernel of this row with the same binary."""
        mine = ready.guest.kernel.image_digest
        for other in self._row:
            made = self._builder.made(other)
            if other != name and made is not None and made.ready is not None:
                known = other in self._ready or other in (self._row[0], self._row[-1])
                if known and made.ready.guest.kernel.image_digest == mine:
                    return other
        return ""


def enter(campaign: Campaign, entered: dict[str, Ready], ready: Ready) -> None:
    """Take one more variant into a campaign that is open."""
    (variant,) = campaign.enter([(ready.variant, ready.guest.kernel)])
    entered[variant.label] = Ready(variant, ready.guest)
