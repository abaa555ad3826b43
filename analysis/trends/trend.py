# SPDX-License-Identifier: GPL-2.0-or-later
"""The tracks of a trend: which kernels follow each other, and where the metric changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, failed, lost, metrics_of, unfinished
from analysis.reading import facts
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import first_names, safe_line
from analysis.trends.changes import divisions, find_alarms, level, places
from analysis.trends.tracks import NAMED, Order, Point, dates_of, find_tracks, inserted
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.statistics import bounded_ratio, ratio_bounds, ratio_interval
from analysis.verdicts.verdict import Sample, Word
from contract.levels import attainable_p
from errors import UserError

INTERVAL = (
    0.02  # level of the test that gives a change's interval; 95 % of intervals hold the truth
)


@dataclass(frozen=True)
class Change:
    """A change of the level between two points, which are counted from 0.

    `ratio`, `low` and `high`: after to before; p and `needed`: probabilities, 0 to 1.
    """

    at: int  # the first point after it, which may be any from `earliest` to `latest`
    earliest: int
    latest: int
    found: int  # the newest point when it was found
    before: Sample  # the runs since the previous change
    after: Sample  # the runs until the next change
    p: float  # of the test that found it
    needed: float  # the level that p was held to
    ratio: float | None
    bound: str  # as in analysis.verdicts.verdict.Comparison
    low: float | None
    high: float | None
    verdict: Word


@dataclass(frozen=True)
class Track:
    """Consecutive points, and the changes between them."""

    name: str
    metric: Metric
    points: list[Point]
    changes: list[Change]
    alpha: float  # error rate of all tests of this track together, however long it grows

    @property
    def verdict(self) -> Word:
        """The verdict of the last change that is not `equivalent`, else `undecided`."""
        words = [change.verdict for change in self.changes if change.verdict != "equivalent"]
        return words[-1] if words else "undecided"

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """The first and last point of each stretch without a change."""
        begins = [0, *(change.at for change in self.changes)]
        return list(
            zip(begins, [*(at - 1 for at in begins[1:]), len(self.points) - 1], strict=True)
        )

    @property
    def can_show(self) -> bool:
        """Whether the last stretch has enough runs for a test to find a change in it."""
        begin, last = self.stretches[-1]
        sizes = [len(point.sample.values) for point in self.points[begin : last + 1]]
        if len(sizes) < 2:
            return False
        needed = level(len(self.changes), len(sizes), self.alpha)
        return any(
            attainable_p(sum(sizes[-n:]), sum(sizes[:-n])) <= needed for n in divisions(len(sizes))
        )


@dataclass(frozen=True)
class Trend:
    """All tracks; `alpha`: the error rate of all their tests together; `margin`: 0.1 for 10 %."""

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
    """The trend of the variants of a campaign, or of several pooled campaigns.

    By version all kernels are one track. By date each `--kernel` argument is a track: that of
    `debian:6.12` has the kernels which this name stood for over time.
    """
    series: list[tuple[str, Metric, list[Point]]] = []
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
            series.append((f"{workload}{name}", of_part, points))
    if forced and not force:
        more = f" (and {len(forced) - 1} more)" if len(forced) > 1 else ""
        raise UserError(f"{forced[0]}{more}", hint="--force compares them all the same")
    if not series:
        raise UserError(f"{campaign.path}: no run has a figure of the metric, there is no trend")
    alpha, margin = campaign.plan.alpha, campaign.plan.margin
    tracks = [judge_track(*track, alpha / len(series), margin) for track in series]
    if order == "version" and (
        late := [name for track in tracks for name in inserted(track.points)]
    ):
        notes.append(
            f"Measured after newer kernels and put before them: {first_names(late, NAMED)}. The "
            "error rate is that of this one trend then, not of all that were made while it grew."
        )
    return Trend(order, alpha, margin, tracks, notes, forced)


def judge_track(
    name: str, metric: Metric, points: list[Point], alpha: float, margin: float
) -> Track:
    """The track with its changes; alpha: the error rate of all its tests together, 0 to 1."""
    # A run that was not done is only known to be long: it ranks with the failed runs.
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
    samples = [one.sample for one in points]
    cut = tuple(cut for one in samples for cut in one.cut or (False,) * len(one.values))
    return Sample(
        tuple(value for one in samples for value in one.values),
        missing=sum(one.missing for one in samples),
        cut=cut if any(cut) else (),
        cut_missing=sum(one.cut_missing for one in samples),
    )


def _metric(part: Campaign, asked: str | None) -> Metric:
    known = {metric.key: metric for metric in metrics_of(first_described(part.runs).workload)}
    if asked is None:
        return next(iter(known.values()))
    if asked not in known:
        raise UserError(
            f"no metric {safe_line(asked, 60)!r}",
            hint=f"there is {safe_line(', '.join(known), 1000)}",
        )
    return known[asked]


def _notes(part: Campaign, runs: Sequence[Run]) -> list[str]:
    def listed(words: str, names: Sequence[str]) -> list[str]:
        return [f"{words}: {first_names(names, NAMED)}."] if names else []

    def names(of: Iterable[Run]) -> list[str]:
        return [f"{safe_line(run.variant, 60)}/{run.number}" for run in of]

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
