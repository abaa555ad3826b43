# SPDX-License-Identifier: GPL-2.0-or-later
"""Each run's figure as JSON, for a program that decides which kernel to run next.

usage: python3 -m analysis.runs RUN...

RUN is the folder of one run. An object a line, in their order: `path`, `state`, `began` (whether
its workload did), `failed`, `figure` (of the primary metric; null if there is none: it failed, or
is not available), `higher_is_better`, `unit`, `disturbed` (why its observers cannot be trusted,
null if they can), `mem_available_kib` (MemAvailable when the workload began, null if not known).

exit status: 0 read, 2 usage, 3 something is missing, 130 interrupted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from analysis.figures import observer_faults
from analysis.figures.metrics import failed, measure, metrics_of
from analysis.reading.load import Run, load_campaign
from contract.run_files import MEMINFO
from errors import run_command


def facts_of(run: Run) -> dict[str, Any]:
    """The JSON object that is printed for a run; the module's docstring lists its keys."""
    primary = metrics_of(run.workload)[0]
    value = None if failed(run) else measure(run, [primary])[primary.key]
    available = run.column(MEMINFO, "MemAvailable")
    return {
        "path": str(run.path),
        "state": run.state,
        "began": run.fact("t0") is not None,
        "failed": failed(run),
        "figure": value,
        "higher_is_better": primary.better == "higher",
        "unit": primary.unit,
        "disturbed": "; ".join(observer_faults.of_run(run)) or None,
        "mem_available_kib": int(available[1][0]) if available and len(available[1]) else None,
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the facts of some runs."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.runs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", type=Path, nargs="+", help="a run's folder")
    for path in parser.parse_args(arguments).run:
        for run in load_campaign(path).runs:
            print(json.dumps(facts_of(run), allow_nan=False))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.runs", main))
