# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernels follow each other: the tracks of a trend, by version or by date."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, measure, unfinished
from analysis.reading.load import Campaign, Run
from analysis.reading.places import natural
from analysis.reading.words import first_names, safe_line
from analysis.verdicts.choice import display_labels
from analysis.verdicts.verdict import Sample
from contract.variant import Variant
from errors import UserError

Order = Literal["version", "date"]
VERSION = re.compile(r"([0-9]+(?:\.[0-9]+)*)(?:[-~]rc([0-9]+))?(.*)", re.DOTALL)
FLAVOUR = re.compile(r"-((?:[a-z]+-)*amd64)(?:-unsigned)?")
NAMED = 12  # variants that a line names at most
ONE_NIGHT = timedelta(hours=16)  # kernels measured within it count as measured together
NO_RC = 10**9  # sorts a release after each of its -rcN


@dataclass(frozen=True)
class Point:
    """The runs of one kernel; `date`: when its first run began, if that is known."""

    variant: str
    label: str
    date: datetime | None
    sample: Sample


def find_tracks(
    part: Campaign,
    order: Order,
    metric: Metric,
    dates: dict[str, datetime],
    notes: list[str],
) -> list[tuple[str, list[Point]]]:
    """The name and the points of each track, in the order of their first variants."""
    planned = {variant.label: variant for variant in part.plan.variants}
    labels = display_labels(part)
    tracks: dict[tuple[str, ...], list[tuple[Any, Point]]] = {}
    unknown: list[str] = []
    for variant, runs in observer_faults.trusted(part.variants()).items():
        results = [run for run in runs if counted(run)]
        figures = (measure(run, [metric])[metric.key] for run in results)
        sample = Sample.over(results, figures, unfinished)
        if not sample.values:
            unknown.append(labels[variant])
            continue
        date = dates.get(variant)
        if order == "date" and date is None:
            raise UserError(
                f"{safe_line(variant, 60)}: plan.toml has no date of its runs",
                hint="--by version needs none",
            )
        asked = planned.get(variant, Variant())
        point = Point(variant, labels[variant], date, sample)
        key = _same_track(asked, runs[0], order)
        tracks.setdefault(key, []).append(((date if order == "date" else _version(runs[0])), point))
    if unknown:
        notes.append(f"No figure of {metric.title}, left out: {first_names(unknown, NAMED)}.")
    varying = [len(set(column)) > 1 for column in zip(*tracks, strict=True)]
    named_tracks = []
    for key, members in tracks.items():
        # By version the name has what distinguishes the tracks; by date also the kernel.
        words = [word for word, varies in zip(key, varying, strict=True) if varies and word]
        name = ", ".join([key[0], *words[varying[0] :]] if order == "date" else words)
        points = [point for _, point in sorted(members, key=lambda one: one[0])]
        named_tracks.append((safe_line(name or "all kernels", 100), points))
    return named_tracks


def dates_of(campaign: Campaign) -> dict[str, datetime]:
    """When the first run of each variant began, from plan.toml."""
    dates: dict[str, datetime] = {}
    entries = campaign.plan.tables.get("run", [])
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(variant := entry.get("variant"), str):
            continue
        try:
            date = datetime.strptime(str(entry.get("date")), "%Y-%m-%dT%H:%M:%S%z")
        except ValueError:
            continue
        dates[variant] = min(date, dates.get(variant, date))
    return dates


def inserted(points: Sequence[Point]) -> list[str]:
    """The labels of points that were measured later than a point which follows them."""
    labels = []
    for index, point in enumerate(points):
        later = [other.date for other in points[index + 1 :] if other.date]
        if point.date and later and point.date > min(later) + ONE_NIGHT:
            labels.append(point.label)
    return labels


def _same_track(asked: Variant, run: Run, order: Order) -> tuple[str, ...]:
    """What all variants of a track have in common."""
    flavour = FLAVOUR.search(str(run.fact("kernel", "release") or ""))
    return (
        (asked.kernel or run.label) if order == "date" else "",
        flavour[1] if flavour else "",
        f"swap {asked.swap.label}",
        asked.append,
        " ".join(f"{path}={value}" for path, value in sorted(asked.knobs)),
    )


def _version(run: Run) -> tuple[Any, ...]:
    """Sort key: 6.1 before 6.12, 7.3-rc7 before 7.3; runs without a version come last."""
    for text in (run.label, str(run.fact("kernel", "release") or "")):
        if match := VERSION.fullmatch(text):
            numbers = tuple(int(part[:18]) for part in match[1].split("."))
            return (0, numbers, int(match[2][:9]) if match[2] else NO_RC, natural(match[3]))
    return (1, (), 0, natural(run.label))
