# SPDX-License-Identifier: GPL-2.0-or-later
"""Why runs stalled, from a bundle's causes.json, for runs whose evidence did not fit the bundle.

The file is untrusted. Its causes of a run are used only if they are complete and add up to the
stalls in the run's own logs; else that run has no causes, as if nothing were known.
"""

import math
from pathlib import Path
from typing import Any

from analysis.figures.stalls import Stall, stalled_seconds
from analysis.reading.facts import swap_kind
from analysis.reading.files import read_file
from analysis.reading.load import Campaign, Run
from analysis.reading.places import LARGEST_FACTS
from analysis.reading.words import safe_line
from analysis.stall_causes.causes import BY_KEY, UNEXPLAINED, Card, RunCauses
from contract.untrusted import json_object

NAME = "causes.json"
VERSION = 1
NEAR = 0.01  # s: stalls are rounded to ms in the logs
TEXT = 400  # characters of a name, a clause, a note
STACK = 4000  # characters of a stack


class _Damaged(Exception):
    """The file has something that this suite does not write."""


def stored(campaign: Campaign, runs: list[Run]) -> dict[Path, RunCauses]:
    """The causes that causes.json has of these runs, by the run's folder."""
    content = json_object(read_file(campaign.path / NAME, [], LARGEST_FACTS) or b"{}")
    if content is None or content.get("format") != VERSION:
        return {}
    entries = content.get("runs")
    known = {
        (str(entry.get("variant")), str(entry.get("number"))): entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict)
    }
    causes: dict[Path, RunCauses] = {}
    for run in runs:
        if (entry := known.get((run.variant, str(run.number)))) is not None:
            try:
                causes[run.path] = _run_causes(run, entry)
            except _Damaged:
                continue
    return causes


def _run_causes(run: Run, stored: dict[str, Any]) -> RunCauses:
    seconds = _seconds(stored.get("seconds"))
    if not math.isclose(sum(seconds.values()), stalled_seconds(run), abs_tol=NEAR):
        raise _Damaged
    cards = [_card(run, item) for item in _list(stored.get("cards"))]
    stalls, apart = stored.get("stalls"), stored.get("apart")
    if type(stalls) is not int or stalls < len(cards) or not isinstance(apart, bool):
        raise _Damaged
    return RunCauses(
        cards,
        seconds,
        [_text(item) for item in _list(stored.get("notes"))],
        apart=apart,
        others=[_card(run, item) for item in _list(stored.get("others"))],
        swap=swap_kind(run),
        without_card=stalls - len(cards),
        stored=True,
    )


def _card(run: Run, stored: Any) -> Card:
    if not isinstance(stored, dict):
        raise _Damaged
    begin, length = _number(stored.get("begin_s")), _number(stored.get("length_s"))
    is_open, who = stored.get("open"), stored.get("who")
    if not isinstance(is_open, bool) or not isinstance(who, dict) or not who.keys() <= set(BY_KEY):
        raise _Damaged
    stacks = [_pair(item, STACK) for item in _list(stored.get("stacks"))]
    return Card(
        Stall(begin, length, _text(stored.get("stream")), is_open),
        _seconds(stored.get("seconds")) or {UNEXPLAINED: 0.0},
        {key: [_pair(item, TEXT) for item in _list(items)] for key, items in who.items()},
        [(text, int(count)) for text, count in stacks],
        [_text(item) for item in _list(stored.get("machine"))],
        int(_number(stored.get("samples"))),
        swap_kind(run),
    )


def _seconds(told: Any) -> dict[str, float]:
    """Seconds by cause; an unknown cause means that the file is not this suite's."""
    if not isinstance(told, dict) or not told.keys() <= set(BY_KEY):
        raise _Damaged
    return {key: _number(value) for key, value in told.items()}


def _pair(told: Any, limit: int) -> tuple[str, float]:
    if not isinstance(told, list) or len(told) != 2:
        raise _Damaged
    return _text(told[0], limit), _number(told[1])


def _list(told: Any) -> list[Any]:
    if not isinstance(told, list):
        raise _Damaged
    return told


def _text(told: Any, limit: int = TEXT) -> str:
    if not isinstance(told, str):
        raise _Damaged
    return safe_line(told, limit)


def _number(told: Any) -> float:
    """A number of seconds or of samples, which is never negative."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < 1e9:
        raise _Damaged
    return float(told)
