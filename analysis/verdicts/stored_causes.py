# SPDX-License-Identifier: GPL-2.0-or-later
"""Why runs stalled, as a bundle's causes.json has it where there was no room for their evidence.

The file comes from a stranger. What it says of a run is taken only if it is whole and adds up to
what the run's own logs say; else that run has no causes, as if nothing were known.
"""

import math
from pathlib import Path
from typing import Any

from analysis.figures.stalls import Stall, stalled_seconds
from analysis.reading.facts import swap_kind
from analysis.reading.files import read_file
from analysis.reading.load import Campaign, Run
from analysis.reading.places import LARGEST_FACTS
from analysis.reading.words import plain
from analysis.stall_causes.causes import BY_KEY, UNEXPLAINED, Card, RunCauses
from contract.untrusted import json_object

NAME = "causes.json"
VERSION = 1
NEAR = 0.01  # s: stalls are rounded to ms in the logs
TEXT = 400  # characters of a name, a clause, a note
STACK = 4000


class _Damaged(Exception):
    """Something in it is not what this suite writes."""


def stored(campaign: Campaign, runs: list[Run]) -> dict[Path, RunCauses]:
    """What is known of these runs, by the run's folder."""
    found = json_object(read_file(campaign.path / NAME, [], LARGEST_FACTS) or b"{}")
    if found is None or found.get("format") != VERSION:
        return {}
    told = found.get("runs")
    known = {
        (str(one.get("variant")), str(one.get("number"))): one
        for one in (told if isinstance(told, list) else [])
        if isinstance(one, dict)
    }
    causes: dict[Path, RunCauses] = {}
    for run in runs:
        if (one := known.get((run.variant, str(run.number)))) is not None:
            try:
                causes[run.path] = _run_causes(run, one)
            except _Damaged:
                continue
    return causes


def _run_causes(run: Run, told: dict[str, Any]) -> RunCauses:
    seconds = _seconds(told.get("seconds"))
    if not math.isclose(sum(seconds.values()), stalled_seconds(run), abs_tol=NEAR):
        raise _Damaged
    cards = [_card(run, one) for one in _list(told.get("cards"))]
    stalls, apart = told.get("stalls"), told.get("apart")
    if type(stalls) is not int or stalls < len(cards) or not isinstance(apart, bool):
        raise _Damaged
    return RunCauses(
        cards,
        seconds,
        [_text(one) for one in _list(told.get("notes"))],
        apart=apart,
        others=[_card(run, one) for one in _list(told.get("others"))],
        swap=swap_kind(run),
        without_card=stalls - len(cards),
        stored=True,
    )


def _card(run: Run, told: Any) -> Card:
    if not isinstance(told, dict):
        raise _Damaged
    begin, length = _number(told.get("begin_s")), _number(told.get("length_s"))
    is_open, who = told.get("open"), told.get("who")
    if not isinstance(is_open, bool) or not isinstance(who, dict) or not who.keys() <= set(BY_KEY):
        raise _Damaged
    stacks = [_pair(one, STACK) for one in _list(told.get("stacks"))]
    return Card(
        Stall(begin, length, _text(told.get("stream")), is_open),
        _seconds(told.get("seconds")) or {UNEXPLAINED: 0.0},
        {key: [_pair(one, TEXT) for one in _list(each)] for key, each in who.items()},
        [(text, int(count)) for text, count in stacks],
        [_text(one) for one in _list(told.get("machine"))],
        int(_number(told.get("samples"))),
        swap_kind(run),
    )


def _seconds(told: Any) -> dict[str, float]:
    """Seconds by cause; one that this suite does not know makes the sum another one's."""
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
    return plain(told, limit)


def _number(told: Any) -> float:
    """Of seconds or of samples: none is negative."""
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 <= told < 1e9:
        raise _Damaged
    return float(told)
