# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a cause's witness moves in the seconds with the cause, and in those without it."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.stall_causes.machine import RunCounters
from analysis.stall_causes.run_causes import causes_between
from benchmarks.cause_witnesses.counters import OF, Counter

SECOND = 1.0  # s: four samples of each counter
SHARE = 0.1  # least share of a second that stalls of all streams spend in a cause
NONE = 1e-3  # s: less of a cause counts as none


@dataclass
class Tally:
    """For one witness over all runs: the counts of seconds with and without its cause, and of those
    in which it moved more.

    "More" means more than in the median second without the cause in the same run, or more than 0 if
    there is no such second. pairs: pairs of a second with the cause and one without, in the same
    run; ties count half in `higher`.
    """

    seconds: int = 0
    more: int = 0
    without: int = 0
    more_without: int = 0
    pairs: int = 0
    higher: float = 0.0

    def add(self, present: Floats, absent: Floats) -> None:
        """Add a run's seconds; present, absent: how much the witness moved in each."""
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
    """The seconds of each cause and the tally of each of its witnesses, over all added runs."""

    seconds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OF, 0))
    tallies: dict[tuple[str, str], Tally] = field(default_factory=dict)
    runs: int = 0
    variants: dict[str, int] = field(default_factory=dict)

    def add(self, run: Run) -> bool:
        """Add a run; False if it has no evidence."""
        edges = np.arange(0.0, run.last_sent, SECOND).tolist()
        spent = causes_between(run, edges) if len(edges) > 1 else None
        if spent is None:
            return False
        self.runs += 1
        self.variants[run.label] = self.variants.get(run.label, 0) + 1
        machine = RunCounters(run)
        spans = list(itertools.pairwise(edges))
        for cause, witnesses in OF.items():
            amounts = np.array([seconds.get(cause, 0.0) for seconds in spent])
            has, lacks = amounts >= SHARE * SECOND, amounts < NONE
            self.seconds[cause] += int(has.sum())
            for witness in witnesses:
                values = _values(witness, machine, spans)
                known = np.isfinite(values)
                tally = self.tallies.setdefault((cause, witness.name), Tally())
                tally.add(values[has & known], values[lacks & known])
        return True


def _values(witness: Counter, machine: RunCounters, spans: Iterable[tuple[float, float]]) -> Floats:
    """How much the witness moved in each span; NaN where that is not available."""
    moved = [witness.moved(machine, begin, end) for begin, end in spans]
    return np.array([np.nan if value is None else value for value in moved])
