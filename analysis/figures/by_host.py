# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's runs by the host that did them: whether one host's figures drift from the others'.

On the guest's clock a run does not depend on its host, so that a host whose runs differ from all
others' in the mean is suspicious. What is compared is each run's figure divided by the mean of its
variant over all hosts.
"""

import math
import statistics
from dataclasses import dataclass

from analysis.figures.metrics import primary_figure
from analysis.reading import facts
from analysis.reading.load import Campaign, Run

FEWEST = 3  # runs of a host, from which on its mean may be called another
FAR = 3.0  # standard errors


@dataclass(frozen=True)
class HostFigures:
    """runs: (variant, number) each. ratio: mean of run / variant's mean; None if not known.

    error: of the ratio's mean, from the scatter of this host's runs; None of fewer than two.
    own_clock: its runs were measured on the guest's clock, so that no host should differ.
    """

    host: str
    runs: list[tuple[str, int]]
    ratio: float | None
    error: float | None
    own_clock: bool = True

    @property
    def is_far(self) -> bool:
        """Whether its runs differ from all hosts' by more than their scatter explains."""
        if not self.own_clock or len(self.runs) < FEWEST:
            return False
        if self.ratio is None or not self.error:
            return False
        return abs(self.ratio - 1) > FAR * self.error


def by_host(campaign: Campaign) -> list[HostFigures]:
    """Each host's figures, in order of names; empty if all runs were done on one machine."""
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
    """The standard error of their mean."""
    if len(ratios) < 2:
        return None
    return statistics.stdev(ratios) / math.sqrt(len(ratios))
