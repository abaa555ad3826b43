# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the hosts of a campaign: do the figures of a host drift from the other hosts'?

On the guest's clock a run does not depend on its host. A host whose runs differ in the mean from
all other runs is therefore suspicious. The comparison uses each run's primary figure divided by
the mean of its variant over all hosts.
"""

import math
import statistics
from dataclasses import dataclass

from analysis.figures.metrics import primary_figure
from analysis.reading import facts
from analysis.reading.load import Campaign, Run

FEWEST = 3  # runs of a host; with fewer its mean is not judged
FAR = 3.0  # standard errors


@dataclass(frozen=True)
class HostFigures:
    """runs: (variant, number). ratio: mean of figure / variant's mean; None: not known.

    error: standard error of the ratio, from the scatter of this host's runs; None with fewer than
    two runs. own_clock: its runs were measured on the guest's clock, so no host should differ.
    """

    host: str
    runs: list[tuple[str, int]]
    ratio: float | None
    error: float | None
    own_clock: bool = True

    @property
    def is_far(self) -> bool:
        """Whether its runs differ from those of all hosts by more than their scatter explains."""
        if not self.own_clock or len(self.runs) < FEWEST:
            return False
        if self.ratio is None or not self.error:
            return False
        return abs(self.ratio - 1) > FAR * self.error


def by_host(campaign: Campaign) -> list[HostFigures]:
    """The figures of each host, in order of names; empty if no run names its host."""
    ratios = {run.path: ratio for run, ratio in _ratios(campaign)}
    hosts: dict[str, list[Run]] = {}
    for run in campaign.runs:
        if run.host:
            hosts.setdefault(run.host, []).append(run)
    figures = []
    for host, runs in sorted(hosts.items()):
        known = [ratios[run.path] for run in runs if run.path in ratios]
        mean = sum(known) / len(known) if known else None
        places = [(run.variant, run.number) for run in runs]
        own_clock = all(map(facts.own_clock, runs))
        figures.append(HostFigures(host, places, mean, _error(known), own_clock))
    return figures


def _ratios(campaign: Campaign) -> list[tuple[Run, float]]:
    ratios = []
    for runs in campaign.variants().values():
        figures = [(run, figure) for run in runs if (figure := primary_figure(run)) is not None]
        mean = sum(figure for _, figure in figures) / len(figures) if figures else 0.0
        if mean > 0:
            ratios += [(run, figure / mean) for run, figure in figures]
    return ratios


def _error(ratios: list[float]) -> float | None:
    """The standard error of the mean of the ratios."""
    if len(ratios) < 2:
        return None
    return statistics.stdev(ratios) / math.sqrt(len(ratios))
