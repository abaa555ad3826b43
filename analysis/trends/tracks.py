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
from analysis.reading.words import plain, some
from analysis.verdicts.choice import display_labels
from analysis.verdicts.verdict import Sample
from contract.variant import Variant
from errors import UserError

Order = Literal["version", "date"]
VERSION = re.compile(r"([0-9]+(?:\.[0-9]+)*)(?:[-~]rc([0-9]+))?(.*)", re.DOTALL)
FLAVOUR = re.compile(r"-((?:[a-z]+-)*amd64)(?:-unsigned)?")
NAMED = 12  # variants that one line names
ONE_NIGHT = timedelta(hours=16)  # kernels measured within it came together
NO_RC = 10**9  # after each -rcN


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
    """Name and points of each track, those first that began first."""
    planned = {one.label: one for one in part.plan.variants}
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
                f"{plain(variant, 60)}: plan.toml has no date of its runs",
                hint="--by version needs none",
            )
        asked = planned.get(variant, Variant())
        point = Point(variant, labels[variant], date, sample)
        key = _same_track(asked, runs[0], order)
        tracks.setdefault(key, []).append(((date if order == "date" else _version(runs[0])), point))
    if unknown:
        notes.append(f"No figure of {metric.title}, left out: {some(unknown, NAMED)}.")
    varying = [len(set(column)) > 1 for column in zip(*tracks, strict=True)]
    found = []
    for key, members in tracks.items():
        # By version the name says what sets the tracks apart; by date each has its kernel.
        words = [word for word, varies in zip(key, varying, strict=True) if varies and word]
        name = ", ".join([key[0], *words[varying[0] :]] if order == "date" else words)
        points = [point for _, point in sorted(members, key=lambda one: one[0])]
        found.append((plain(name or "all kernels", 100), points))
    return found


def dates_of(campaign: Campaign) -> dict[str, datetime]:
    """When the first run of each variant began, by plan.toml."""
    found: dict[str, datetime] = {}
    entries = campaign.plan.tables.get("run", [])
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or not isinstance(variant := entry.get("variant"), str):
            continue
        try:
            date = datetime.strptime(str(entry.get("date")), "%Y-%m-%dT%H:%M:%S%z")
        except ValueError:
            continue
        found[variant] = min(date, found.get(variant, date))
    return found


def inserted(points: Sequence[Point]) -> list[str]:
    """The points that were measured after one which follows them."""
    found = []
    for index, one in enumerate(points):
        later = [other.date for other in points[index + 1 :] if other.date]
        if one.date and later and one.date > min(later) + ONE_NIGHT:
            found.append(one.label)
    return found


def _same_track(asked: Variant, run: Run, order: Order) -> tuple[str, ...]:
    """What variants have in common that follow each other."""
    flavour = FLAVOUR.search(str(run.fact("kernel", "release") or ""))
    return (
        (asked.kernel or run.label) if order == "date" else "",
        flavour[1] if flavour else "",
        f"swap {asked.swap.label}",
        asked.append,
        " ".join(f"{path}={value}" for path, value in sorted(asked.knobs)),
    )


def _version(run: Run) -> tuple[Any, ...]:
    """Sort key: 6.1 before 6.12, 7.3-rc7 before 7.3; what names no version comes last."""
    for text in (run.label, str(run.fact("kernel", "release") or "")):
        if match := VERSION.fullmatch(text):
            numbers = tuple(int(part[:18]) for part in match[1].split("."))
            return (0, numbers, int(match[2][:9]) if match[2] else NO_RC, natural(match[3]))
    return (1, (), 0, natural(run.label))
