# SPDX-License-Identifier: GPL-2.0-or-later
"""The trend as JSON: figures are not rounded; NaN and infinity do not occur."""

import json
import math
from typing import Any

from analysis.trends.trend import Change, Track, Trend
from analysis.verdicts.export import SAMPLE, fields

TREND_VERSION = 1


def json_text(trend: Trend) -> str:
    """A JSON object: each track with its points and changes (docs/reference/trend.md)."""
    content = {
        "format": TREND_VERSION,
        "order": trend.order,
        "alpha": trend.alpha,
        "margin": trend.margin,
        "tracks": [_track(track) for track in trend.tracks],
        "forced": trend.forced,
        "notes": trend.notes,
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


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
                "variant": entry.variant,
                "label": entry.label,
                "date": entry.date.isoformat() if entry.date else None,
                "values": [
                    value if math.isfinite(value) else None for value in entry.sample.values
                ],
                "at_least": list(entry.sample.cut),
                "missing": entry.sample.missing,
            }
            for entry in track.points
        ],
        "changes": [_change(track, entry) for entry in track.changes],
    }


def _change(track: Track, change: Change) -> dict[str, Any]:
    def label(place: int) -> str:
        return track.points[place].label

    return {
        "verdict": change.verdict,
        "at": label(change.at),
        "earliest": label(change.earliest),
        "latest": label(change.latest),
        "found": label(change.found),
        **fields(change, ("ratio", "bound", "low", "high", "p", "needed")),
        "before": fields(change.before, SAMPLE),
        "after": fields(change.after, SAMPLE),
    }
