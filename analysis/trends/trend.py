# SPDX-License-Identifier: GPL-2.0-or-later
"""The tracks of a trend: which kernels follow each other, where the metric changed between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, failed, lost, metrics_of, unfinished
from analysis.reading import facts
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import plain, some
from analysis.trends.changes import divisions, find_alarms, level, places
from analysis.trends.tracks import NAMED, Order, Point, dates_of, find_tracks, inserted
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.statistics import bounded_ratio, ratio_bounds, ratio_interval
from analysis.verdicts.verdict import Sample, Word
from contract.levels import attainable_p
from errors import UserError

INTERVAL = (
    0.02  # of the test whose kept ratios are a change's interval, of which 95 % hold the truth
)


@dataclass(frozen=True)
class Change:
    """A change of the level between two points, which are counted from 0."""

    at: int  # the first point after it; it may be any from `earliest` to `latest`
    earliest: int
    latest: int
    found: int  # the newest point when it was found
    before: Sample  # the runs since the change before, the runs until the next one
    after: Sample
    p: float  # of the test that found it, and the level it was held to
    needed: float
    ratio: float | None
    bound: str  # as of analysis.verdicts.verdict.Comparison
    low: float | None
    high: float | None
    verdict: Word


@dataclass(frozen=True)
class Track:
    """Points that follow each other, and the changes between them."""

    name: str
    metric: Metric
    points: list[Point]
    changes: list[Change]
    alpha: float  # of all tests of this track, however long it grows

    @property
    def verdict(self) -> Word:
        """That of the last change which is not surely within the margin."""
        words = [one.verdict for one in self.changes if one.verdict != "equivalent"]
        return words[-1] if words else "undecided"

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """First and last point of each stretch between two changes."""
        begins = [0, *(one.at for one in self.changes)]
        return list(
            zip(begins, [*(at - 1 for at in begins[1:]), len(self.points) - 1], strict=True)
        )

    @property
    def can_show(self) -> bool:
        """Whether a test could divide the last stretch, whatever its runs measured."""
        begin, last = self.stretches[-1]
        sizes = [len(one.sample.values) for one in self.points[begin : last + 1]]
        if len(sizes) < 2:
            return False
        needed = level(len(self.changes), len(sizes), self.alpha)
        return any(
            attainable_p(sum(sizes[-n:]), sum(sizes[:-n])) <= needed for n in divisions(len(sizes))
        )


@dataclass(frozen=True)
class Trend:
    """All tracks, which err together in `alpha`."""

    order: Order
    alpha: float
    margin: float
    tracks: list[Track]
    notes: list[str]
    forced: list[str]  # differing facts that --force overrode


def find_trend(
    campaign: Campaign,
    *,
    order: Order = "version",
    metric: str | None = None,
    force: bool = False,
) -> Trend:
    """The trend of a campaign's, or of several pooled campaigns', variants.

    By version all kernels are one track. By date each `--kernel` that was asked for is one: in
    `debian:6.12` follow the kernels that this was in the course of time.
    """
    found: list[tuple[str, Metric, list[Point]]] = []
    forced: list[str] = []
    notes = list(campaign.pooled)
    if not campaign.runs:
        raise UserError(f"{campaign.path}: no run is complete, there is no trend")
    parts = by_workload(campaign)
    dates = dates_of(campaign)
    for part in parts:
        runs = [run for run in part.runs if counted(run)]
        forced += facts.differences(runs) + facts.several_hosts(runs)
        notes += _notes(part, runs)
        of_part = _metric(part, metric)
        workload = f"{first_described(part.runs).workload.name} " if len(parts) > 1 else ""
        for name, points in find_tracks(part, order, of_part, dates, notes):
            found.append((f"{workload}{name}", of_part, points))
    if forced and not force:
        more = f" (and {len(forced) - 1} more)" if len(forced) > 1 else ""
        raise UserError(f"{forced[0]}{more}", hint="--force compares them all the same")
    if not found:
        raise UserError(f"{campaign.path}: no run has a figure of the metric, there is no trend")
    alpha, margin = campaign.plan.alpha, campaign.plan.margin
    tracks = [judge_track(*one, alpha / len(found), margin) for one in found]
    if order == "version" and (late := [name for one in tracks for name in inserted(one.points)]):
        notes.append(
            f"Measured after newer kernels and put before them: {some(late, NAMED)}. The error "
            "rate is that of this one trend then, not of all that were made while it grew."
        )
    return Trend(order, alpha, margin, tracks, notes, forced)


def judge_track(
    name: str, metric: Metric, points: list[Point], alpha: float, margin: float
) -> Track:
    """The changes between these points; all tests of them err in alpha together."""
    # That a run was not done says no more than that it was long: it ranks with those that failed.
    values = [one.sample.most for one in points]
    alarms = find_alarms(values, alpha)
    ends = [*(one.at for one in alarms[1:]), len(points)]
    begins = [0, *(one.at for one in alarms)]
    changes = []
    for alarm, begin, end in zip(alarms, begins, ends, strict=False):
        before, after = _joined(points[begin : alarm.at]), _joined(points[alarm.at : end])
        sides = after.values, before.values, after.most, before.most
        second, first, second_most, first_most = map(np.array, sides)
        interval = ratio_interval(second, first, INTERVAL, second_most, first_most)
        low, high = interval or (0.0, np.inf)
        middle = ratio_bounds(second, first, second_most, first_most)
        ratio, bound = bounded_ratio(middle, (low, high))
        earliest, latest = places(values, begin, alarm.at, end)
        worse = alarm.higher == (metric.better == "lower")
        verdict: Word = "regressed" if worse else "improved"
        if 1 / (1 + margin) <= low and high <= 1 + margin:
            verdict = "equivalent"
        changes.append(
            Change(
                at=alarm.at,
                earliest=earliest,
                latest=latest,
                found=alarm.found,
                before=before,
                after=after,
                p=alarm.p,
                needed=alarm.needed,
                ratio=ratio,
                bound=bound,
                low=low or None,
                high=float(high) if np.isfinite(high) else None,
                verdict=verdict,
            )
        )
    return Track(name, metric, points, changes, alpha)


def _joined(points: Iterable[Point]) -> Sample:
    each = [one.sample for one in points]
    cut = tuple(cut for one in each for cut in one.cut or (False,) * len(one.values))
    return Sample(
        tuple(value for one in each for value in one.values),
        missing=sum(one.missing for one in each),
        cut=cut if any(cut) else (),
        cut_missing=sum(one.cut_missing for one in each),
    )


def _metric(part: Campaign, asked: str | None) -> Metric:
    known = {one.key: one for one in metrics_of(first_described(part.runs).workload)}
    if asked is None:
        return next(iter(known.values()))
    if asked not in known:
        raise UserError(
            f"no metric {plain(asked, 60)!r}", hint=f"there is {plain(', '.join(known), 1000)}"
        )
    return known[asked]


def _notes(part: Campaign, runs: Sequence[Run]) -> list[str]:
    def listed(words: str, names: Sequence[str]) -> list[str]:
        return [f"{words}: {some(names, NAMED)}."] if names else []

    def names(of: Iterable[Run]) -> list[str]:
        return [f"{plain(run.variant, 60)}/{run.number}" for run in of]

    return [
        *listed("Incomplete, left out", part.incomplete),
        *listed("Observers disturbed, left out", names(filter(observer_faults.of_run, runs))),
        *listed("Lines are lost, left out", names(r for r in runs if not failed(r) and lost(r))),
        *listed("Failed, counted as the worst", names(filter(failed, runs))),
        *listed(
            "Not done at their limit, ranked with the failed ones", names(filter(unfinished, runs))
        ),
        *facts.unknown(list(runs)),
        *facts.busy_host(list(runs)),
    ]
