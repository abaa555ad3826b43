# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulates series of nights in which the truth is known, judged by analysis.trends like real ones.

A run's figure is 500 s, times the changes so far, times a log-normal scatter; it is 0 for runs that
never stall.
"""

from dataclasses import dataclass, field

import numpy as np

from analysis.figures.metrics import PRIMARY
from analysis.trends.changes import find_alarms
from analysis.trends.tracks import Point
from analysis.trends.trend import Change, judge_track
from analysis.verdicts.verdict import Sample
from contract.levels import ALPHA, MARGIN

LEVEL_S = 500.0


@dataclass(frozen=True)
class Setting:
    """What is simulated. changes: (night, counted from 0; factor)."""

    nights: int
    scatter: float  # standard deviation of the figure's logarithm
    changes: tuple[tuple[int, float], ...] = ()
    runs: int = 5  # per night
    calm: float = 0.0  # share of the runs that do not stall at all


@dataclass
class Tally:
    """What was found in all series, as counts."""

    false: int = 0  # series with a found change that does not exist
    nights: list[int] = field(
        default_factory=list
    )  # nights until each change was found; 1: the same night
    true: int = 0  # existing changes
    right: int = 0  # changes that were found with the right night
    placed: list[bool] = field(
        default_factory=list
    )  # whether the named nights include the true one
    covered: list[bool] = field(
        default_factory=list
    )  # whether the interval contains the true ratio
    holds_one: int = 0  # intervals of found changes that contain 1


def draw(setting: Setting, rng: np.random.Generator) -> list[tuple[float, ...]]:
    """The figures (seconds) of each night's runs."""
    level, series = 1.0, []
    changes = dict(setting.changes)
    for night in range(setting.nights):
        level *= changes.get(night, 1.0)
        values = LEVEL_S * level * np.exp(setting.scatter * rng.standard_normal(setting.runs))
        if setting.calm:
            values[rng.random(setting.runs) < setting.calm] = 0.0
        series.append(tuple(values.tolist()))
    return series


def simulate(setting: Setting, number: int, measured: int, seed: int) -> Tally:
    """Simulate `number` series; for the first `measured` of them the intervals are checked, too."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    for index in range(number):
        points = draw(setting, rng)
        alarms = find_alarms(points, ALPHA)
        left = [at for at, _ in setting.changes]
        tally.true += len(left)
        false = False
        matched: dict[int, int] = {}  # alarm -> the true change
        for place, alarm in enumerate(alarms):
            meant = [at for at in left if alarm.begin < at <= alarm.found]
            if not meant:
                false = True
                continue
            left.remove(meant[0])
            matched[place] = meant[0]
            tally.nights.append(alarm.found - meant[0] + 1)
            tally.right += alarm.at == meant[0]
        tally.false += false
        if index < measured and matched and not false:
            _measure(points, matched, dict(setting.changes), tally)
    return tally


def _measure(
    points: list[tuple[float, ...]], matched: dict[int, int], truth: dict[int, float], tally: Tally
) -> None:
    dated = [Point(str(n), str(n), None, Sample(figures)) for n, figures in enumerate(points)]
    track = judge_track("simulated", PRIMARY, dated, ALPHA, MARGIN)
    for place, at in matched.items():
        change = track.changes[place]
        low, high = bounds(change)
        tally.placed.append(change.earliest <= at <= change.latest)
        tally.covered.append(low <= truth[at] <= high)
        tally.holds_one += low <= 1 <= high


def bounds(change: Change) -> tuple[float, float]:
    """The bounds of its interval (ratios); 0 and infinity where there is no bound."""
    return change.low or 0.0, np.inf if change.high is None else change.high
