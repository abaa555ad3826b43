# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a cause's witness moves in the seconds that have the cause, and in those without."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.stall_causes.machine import Machine
from analysis.stall_causes.run_causes import causes_between
from benchmarks.cause_witnesses.counters import OF, Counter

SECOND = 1.0  # four samples of each counter
SHARE = 0.1  # of a second that the stalls of all streams have to spend in a cause
NONE = 1e-3  # seconds of a cause that are as good as none


@dataclass
class Tally:
    """Of one witness, over all runs: seconds with its cause and without, and where it moved more.

    More: than in the median second without the cause, of the same run (of a run that has none:
    than nothing). pairs: a second with and one without, of the same run; half of those that are
    alike count as `higher`.
    """

    seconds: int = 0
    more: int = 0
    without: int = 0
    more_without: int = 0
    pairs: int = 0
    higher: float = 0.0

    def add(self, present: Floats, absent: Floats) -> None:
        """Take a run's seconds: by how much the witness moved in each."""
        usual = float(np.median(absent)) if len(absent) else 0.0
        self.seconds += len(present)
        self.more += int(np.sum(present > usual))
        self.without += len(absent)
        self.more_without += int(np.sum(absent > usual))
        self.pairs += len(present) * len(absent)
        low = np.searchsorted(np.sort(absent), present, side="left")
        high = np.searchsorted(np.sort(absent), present, side="right")
        self.higher += float(np.sum(low + high)) / 2


@dataclass
class Agreement:
    """Seconds of each cause, and a tally of each of its witnesses, over all runs added."""

    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OF, 0))
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    runs: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, run: Run) -> bool:
        """Take a run; False if it has no evidence."""
        edges = np.arange(0.0, run.last_sent, SECOND).tolist()
        spent = causes_between(run, edges) if len(edges) > 1 else None
        if spent is None:
            return False
        self.runs += 1
        self.variants[run.label] = self.variants.get(run.label, 0) + 1
        machine = Machine(run)
        spans = list(itertools.pairwise(edges))
        for cause, witnesses in OF.items():
            amounts = np.array([one.get(cause, 0.0) for one in spent])
            has, lacks = amounts >= SHARE * SECOND, amounts < NONE
            self.seconds[cause] += int(has.sum())
            for witness in witnesses:
                values = _values(witness, machine, spans)
                known = np.isfinite(values)
                tally = self.tallies.setdefault((cause, witness.name), Tally())
                tally.add(values[has & known], values[lacks & known])
        return True


def _values(witness: Counter, machine: Machine, spans: Iterable[tuple[float, float]]) -> Floats:
    """By how much it moved in each span, NaN where that is not available."""
    found = [witness.moved(machine, begin, end) for begin, end in spans]
    return np.array([np.nan if one is None else one for one in found])
