# SPDX-License-Identifier: GPL-2.0-or-later
"""causes.json: why each run stalled, for a program to read."""

import json
from dataclasses import replace

from analysis.causes import as_json
from analysis.compare import Compared
from analysis.overview import LISTED_RUNS

NAME = "causes.json"
FORMAT_VERSION = 1
CARDS = 10  # of a run's longest stalls; FEWER, if there are more than LISTED_RUNS runs
FEWER = 1


def text(compared: Compared) -> str:
    """One object: `runs` as `analysis.causes --json` has them; empty without evidence."""
    runs = compared.campaign.runs
    most = CARDS if len(runs) <= LISTED_RUNS else FEWER
    found = [
        as_json(run, replace(why, cards=why.cards[:most], others=why.others[:most]))
        | {"stalls": len(why.cards)}
        for run in runs
        if (why := compared.causes.of(run)) is not None
    ]
    if not found:
        return ""
    return json.dumps({"format": FORMAT_VERSION, "runs": found}, indent=1, allow_nan=False) + "\n"
