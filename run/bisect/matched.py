# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a bisect's campaign: all kernels get the same memory, and results are kept."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED
from run.bisect import results
from run.bisect.memory import Memory
from run.bisect.state import REVERT, RunFacts, State
from run.preparation import say
from run.runner import Oversight
from vm.guest import Guest


class Matched(Oversight):
    """Runs what a campaign lacks, all kernels with the same memory, and keeps the results.

    save: called after each change of the state; lock: the state's.
    """

    says_that_nothing_is_missing = False

    def __init__(
        self,
        state: State,
        memory: Memory,
        save: Callable[[], None],
        lock: AbstractContextManager[Any],
    ) -> None:
        self.state = state
        self._memory = memory
        self._save = save
        self._given: dict[str, int] = {}
        self._given_up = False
        self.lock = lock

    def todo(
        self, left: list[tuple[str, int]], busy: Collection[tuple[str, int]]
    ) -> list[tuple[str, int]] | None:
        """All missing runs; none once a kernel was given up: the others would be for nothing."""
        return None if self._given_up else left or None

    def fitted(self, label: str, guest: Guest) -> Guest:
        """The guest with a memory size that gives it the same MemAvailable as the good end."""
        more = self._memory.more_mib(label, self.near(label))
        self._given[label] = more
        if not more:
            return guest
        memory = guest.hardware.memory + (more << 20)
        return replace(guest, hardware=replace(guest.hardware, memory=memory))

    def near(self, label: str) -> str:
        """A kernel of about the same size: for BASE-revert-COMMIT it is BASE."""
        return label.partition(REVERT)[0]

    def misfits(self, label: str, run: Path) -> bool:
        """Whether the run has another MemAvailable than the good end."""
        more = self._given.get(label, 0)
        if not self._memory.misfits(label, run, more):
            return False
        now = self._memory.more_mib(label)
        say(
            f"{label}: MemAvailable differs from the good end's; repeated with "
            f"{now - more:+d} MiB ({now:+d} in all)"
        )
        self._save()
        return True

    def over(self, label: str, number: int, run: Path, state: str) -> None:
        """Keep the run's result."""
        facts = results.run_facts(run, label, state)
        self._given_up |= state == ABORTED
        with self.lock:
            self.keep(facts)
        self._save()

    def keep(self, facts: RunFacts) -> None:
        """Add a run to the state, unless it is there already."""
        if all(known.place != facts.place for known in self.state.runs):
            self.state.runs.append(facts)
