# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a campaign of a bisect: each kernel with the same memory, and what they came to."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from run.bisect import results
from run.bisect.memory import Memory
from run.bisect.state import REVERT, RunFacts, State
from run.preparation import say
from run.runner import Oversight
from vm.guest import Guest


class Matched(Oversight):
    """The runs that a campaign lacks, each kernel with the same memory; what they came to is kept.

    save: called when the state has changed; lock: of the state.
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
        self.lock = lock

    def fitted(self, label: str, guest: Guest) -> Guest:
        """A VM with so much memory that this kernel leaves what the good end leaves."""
        more = self._memory.more_mib(label, self.near(label))
        self._given[label] = more
        return replace(guest, memory=guest.memory + (more << 20)) if more else guest

    def near(self, label: str) -> str:
        """A kernel of about the same size: of one without a commit the one with it."""
        return label.partition(REVERT)[0]

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
        facts = results.run_facts(run, label, state)
        with self.lock:
            self.keep(facts)
        self._save()

    def keep(self, facts: RunFacts) -> None:
        """Once."""
        if all(one.place != facts.place for one in self.state.runs):
            self.state.runs.append(facts)
