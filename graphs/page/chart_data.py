# SPDX-License-Identifier: GPL-2.0-or-later
"""The data that the page's scripts draw, as JSON: a part for the campaign, and one per run.

The browser computes no figure: it only draws and prints these.
"""

import json
import math
from typing import Any

import numpy as np

from analysis.figures.gaps import silences
from analysis.figures.metrics import (
    BY_KEY,
    added_up,
    counted,
    failed,
    frozen_share,
    unfinished,
    whole,
)
from analysis.figures.stalls import PACED, kind, worst
from analysis.reading import facts
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import plural_subject, safe_line, seconds, with_article
from analysis.verdicts.choice import (
    SHOWN,
    extremes,
    medians,
    shown_words,
    worst_subject,
)
from analysis.verdicts.compared import Compared
from analysis.verdicts.felt import frozen_words
from contract.workload import STALLED
from graphs.page import run_data, tables
from graphs.page.causes import causes_chart
from graphs.pictures.style import OKABE_ITO, OPEN, SHADE, VERDICTS

WHOLE_LINES = 1_000_000  # of all subjects; runs are thinned out above it
GRID = 90  # gaps for which a distribution is drawn
SHORTEST = 0.01  # s


def is_whole(compared: Compared) -> bool:
    """Whether data is not thinned out; streams that print on a clock always are (run_data)."""
    runs = compared.campaign.runs
    return sum(len(stream.elapsed) for run in runs for stream in run.subjects) <= WHOLE_LINES


def has_paced_subjects(compared: Compared) -> bool:
    """Whether a stream whose stalls count prints on a clock."""
    return any(
        kind(stream.name) in PACED for run in compared.campaign.runs for stream in run.subjects
    )


def as_json(value: Any) -> str:
    """JSON that is safe inside a script element: ASCII, without <, > and &."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def run_parts(compared: Compared) -> list[str]:
    """The JSON part of each run of the campaign."""
    whole = is_whole(compared)
    return [
        as_json(run_data.run_block(run, whole, compared.causes.of(run)))
        for run in compared.campaign.runs
    ]


def campaign_part(compared: Compared) -> dict[str, Any]:
    """The data for all charts except those of single runs."""
    runs = compared.campaign.runs
    index = {(run.variant, run.number): place for place, run in enumerate(runs)}
    of_variant = compared.campaign.variants()
    drawn = medians(compared.campaign, compared.variants)
    grid = _grid(runs)
    places = {variant: place for place, variant in enumerate(compared.variants)}
    shown = [places[variant] for variant in extremes(drawn)]
    return {
        "baseline": 0,
        "variants": [
            {
                "label": compared.labels[variant],
                "runs": len(of_variant[variant]),
                "median": _tooth(drawn.get(variant), index),
                "curve": _mean([_share(run, grid) for run in of_variant[variant]]),
            }
            for variant in compared.variants
        ],
        "runs": [_run(run, places, _share(run, grid)) for run in runs],
        "metrics": [
            {"key": m.key, "title": m.title, "unit": m.unit, "digits": m.digits}
            for m in compared.metrics
        ],
        "values": _values(compared, index),
        "grid": [round(float(gap), 4) for gap in grid],
        "shown": shown,
        "shownWords": shown_words(SHOWN, len(drawn), compared.metric),
        "most": SHOWN,
        "causes": causes_chart(compared),
        "configs": tables.config_differences(compared),
        "colours": OKABE_ITO,
        "openColour": OPEN,
        "shade": SHADE,
        "verdictColours": {word: colour for word, (colour, _) in VERDICTS.items()},
        "stall": round(1000 * STALL),
        "whole": is_whole(compared),
        "words": words(compared),
    }


def words(compared: Compared) -> dict[str, Any]:
    """The page's words for the streams whose stalls count, and the thresholds of stalls."""
    subject = compared.campaign.subject
    paced = "of the heartbeat from 0.2 s, of the player from 0.3 s"
    silences = f"{with_article(subject)} from {STALL:.0f} s, {paced}"
    if has_paced_subjects(compared):
        silences = f"any program from {STALL:.0f} s, {paced}"
    return {
        "name": subject,
        "several": plural_subject(subject),
        "subject": with_article(subject),
        "thresholds": silences,
        "stalledDigits": BY_KEY[STALLED].digits,
        "addedUp": f", {together}" if (together := added_up(compared.workload)) else "",
    }


def _run(run: Run, places: dict[str, int], share: Floats | None) -> dict[str, Any]:
    busy = facts.busy_by_others(run)
    return {
        "variant": places[run.variant],
        "number": run.number,
        "order": run.order,
        "state": safe_line(run.state, 20),
        "failed": failed(run),
        "unfinished": unfinished(run),
        "counted": counted(run),
        "felt": _felt(run),
        "busy": None if busy is None else round(100 * busy, 1),
        "curve": _percent(share),
    }


def _felt(run: Run) -> str:
    """'; frozen for 84 % of the time, at worst for 16.4 s', up to the run's end."""
    share = frozen_share(run)
    if share is None:
        return ""
    return f"; {frozen_words(share, max(map(worst, run.subjects)), cut=unfinished(run))}"


def _tooth(run: Run | None, index: dict[tuple[str, int], int]) -> dict[str, Any] | None:
    """The run and stream that represent a variant in the sawtooth, and its figures as text."""
    if run is None:
        return None
    stream = worst_subject(run)
    return {
        "run": index[run.variant, run.number],
        "stream": list(run.streams).index(stream.name),
        "name": safe_line(stream.name, 40),
        "worst": seconds(worst(stream)),
        "state": safe_line(run.state, 20),
        "until": seconds(stream.until),
    }


def _values(compared: Compared, index: dict[tuple[str, int], int]) -> dict[str, list[float | None]]:
    """Each metric of every run, rounded as printed; None if not available or if the run failed."""
    by_key: dict[str, list[float | None]] = {}
    for metric in compared.metrics:
        values: list[float | None] = [None] * len(compared.campaign.runs)
        for variant, sample in compared.samples[metric.key].items():
            for value, number in zip(sample.values, sample.numbers, strict=True):
                if math.isfinite(value):
                    values[index[variant, number]] = round(value, metric.digits)
        by_key[metric.key] = values
    return by_key


def _grid(runs: list[Run]) -> Floats:
    """Gaps in seconds, from SHORTEST to the longest of any run, evenly spaced on a log scale."""
    longest = max((worst(stream) for run in runs for stream in run.subjects), default=1.0)
    return np.geomspace(SHORTEST, max(longest, 10 * SHORTEST) * 1.001, GRID)


def _share(run: Run, grid: Floats) -> Floats | None:
    """Share (0 to 1) of the subjects' time in gaps of at least `grid` s; None: run unfinished."""
    if not whole(run) or not run.subjects:
        return None
    _, length = silences(run.subjects)
    length = np.sort(length)
    total = length.sum()
    if total <= 0:
        return None
    below = np.concatenate(([0.0], np.cumsum(length)))
    shares: Floats = 1 - below[np.searchsorted(length, grid, side="left")] / total
    return np.clip(shares, 0, 1)


def _mean(shares: list[Floats | None]) -> list[float] | None:
    """The mean over runs, in percent; each run has the same weight, whatever its duration."""
    known = [share for share in shares if share is not None]
    return _percent(np.mean(known, axis=0)) if known else None


def _percent(share: Floats | None) -> list[float] | None:
    return None if share is None else np.round(100 * share, 3).tolist()
