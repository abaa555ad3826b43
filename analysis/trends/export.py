# SPDX-License-Identifier: GPL-2.0-or-later
"""The trend as JSON: every figure unrounded; NaN and infinity do not occur."""

import json
import math
from typing import Any

from analysis.trends.trend import Change, Track, Trend
from analysis.verdicts.export import SAMPLE, fields

TREND_VERSION = 1


def json_text(trend: Trend) -> str:
    """One object: each track with its points and changes (docs/reference/trend.md)."""
    found = {
        "format": TREND_VERSION,
        "order": trend.order,
        "alpha": trend.alpha,
        "margin": trend.margin,
        "tracks": [_track(one) for one in trend.tracks],
        "forced": trend.forced,
        "notes": trend.notes,
    }
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def _track(track: Track) -> dict[str, Any]:
    return {
        "name": track.name,
        "metric": track.metric.key,
        "unit": track.metric.unit,
        "better": track.metric.better,
        "alpha": track.alpha,
        "verdict": track.verdict,
        "can_show": track.can_show,
        "points": [
            {
                "variant": one.variant,
                "label": one.label,
                "date": one.date.isoformat() if one.date else None,
                "values": [value if math.isfinite(value) else None for value in one.sample.values],
                "at_least": list(one.sample.cut),
                "missing": one.sample.missing,
            }
            for one in track.points
        ],
        "changes": [_change(track, one) for one in track.changes],
    }


def _change(track: Track, one: Change) -> dict[str, Any]:
    def label(place: int) -> str:
        return track.points[place].label

    return {
        "verdict": one.verdict,
        "at": label(one.at),
        "earliest": label(one.earliest),
        "latest": label(one.latest),
        "found": label(one.found),
        **fields(one, ("ratio", "bound", "low", "high", "p", "needed")),
        "before": fields(one.before, SAMPLE),
        "after": fields(one.after, SAMPLE),
    }
