# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of runs and campaigns, from the programs that judge them: data flow in one direction."""

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
    """The facts of a run, from analysis.runs; state: how it ended. UserError if that fails."""
    place = str(Path(*run.parts[-3:]))
    if state == ABORTED:
        why = json_object((run / STATUS).read_bytes()) or {}
        return RunFacts(place, name, state, None, counts=False, why_not=str(why.get("why")))
    run_json = json.loads(_printed("analysis.runs", str(run)))
    # The figure of an unfinished run is a lower bound: the search ranks all such runs as worst.
    unfinished = run_json["state"] == UNFINISHED
    figure = None if unfinished else run_json["figure"]
    if figure is not None and run_json["higher_is_better"]:
        figure = 1 / max(figure, 1e-9)
    why_not = ""
    if not run_json["began"]:
        why_not = "its workload did not begin"
    elif run_json["disturbed"]:
        why_not = f"its observers were disturbed: {run_json['disturbed']}"
    elif figure is None and not (run_json["failed"] or unfinished):
        why_not = "it has no figure"
    return RunFacts(place, name, run_json["state"], figure, counts=not why_not, why_not=why_not)


def value(facts: RunFacts) -> float:
    """The figure for the search, in its metric's unit; infinite for failed or unfinished runs."""
    return math.inf if facts.figure is None else facts.figure


def verdicts(campaign: Path, baseline: str) -> dict[str, dict[str, Any]]:
    """The verdict of analysis.compare on each variant, by label, against this baseline."""
    text = _printed("analysis.compare", str(campaign), "--json", "--baseline", baseline)
    judged = json.loads(text)
    if "workloads" in judged:
        raise UserError(f"{campaign} has runs of several workloads")
    return {verdict["variant"]: verdict for verdict in judged["variants"]}


def draw(campaign: Path) -> int:
    """Draw the campaign's report, with its bundle; returns the exit status."""
    return subprocess.run([sys.executable, "-m", "graphs", str(campaign)], check=False).returncode


def _printed(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        start_new_session=True,  # Ctrl-C should reach only the runs
    )
    if done.returncode:
        raise UserError(f"{module}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout
