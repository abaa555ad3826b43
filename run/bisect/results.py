# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs and campaigns came to, by the programs that judge them: data flow one way."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED, STATUS, UNFINISHED
from contract.untrusted import json_object
from errors import UserError
from run.bisect.state import RunFacts


def run_facts(run: Path, name: str, state: str) -> RunFacts:
    """One run's, as analysis.runs has it; state: how it ended. UserError if that fails."""
    place = str(Path(*run.parts[-3:]))
    if state == ABORTED:
        why = json_object((run / STATUS).read_bytes()) or {}
        return RunFacts(place, name, state, None, counts=False, why_not=str(why.get("why")))
    found = json.loads(_printed("analysis.runs", str(run)))
    # What was not done at its limit has a figure that is at least so much: the search has one rank
    # for that, the worst.
    unfinished = found["state"] == UNFINISHED
    figure = None if unfinished else found["figure"]
    if figure is not None and found["higher_is_better"]:
        figure = 1 / max(figure, 1e-9)
    why_not = ""
    if not found["began"]:
        why_not = "its workload did not begin"
    elif found["disturbed"]:
        why_not = f"its observers were disturbed: {found['disturbed']}"
    elif figure is None and not (found["failed"] or unfinished):
        why_not = "it has no figure"
    return RunFacts(place, name, found["state"], figure, counts=not why_not, why_not=why_not)


def value(facts: RunFacts) -> float:
    """The figure for the search: infinite of a run that failed or was not done."""
    return math.inf if facts.figure is None else facts.figure


def verdicts(campaign: Path, baseline: str) -> dict[str, dict[str, Any]]:
    """By variant what analysis.compare says of it against this baseline."""
    text = _printed("analysis.compare", str(campaign), "--json", "--baseline", baseline)
    found = json.loads(text)
    if "workloads" in found:
        raise UserError(f"{campaign} has runs of several workloads")
    return {one["variant"]: one for one in found["variants"]}


def draw(campaign: Path) -> int:
    """Draw the campaign's report, with its bundle; the exit status."""
    return subprocess.run([sys.executable, "-m", "graphs", str(campaign)], check=False).returncode


def _printed(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        start_new_session=True,  # Ctrl-C is for the runs
    )
    if done.returncode:
        raise UserError(f"{module}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout
