# SPDX-License-Identifier: GPL-2.0-or-later
"""Why each stall lasted: seconds by cause, from the evidence of a run (docs/explain/causes.md).

usage: python3 -m analysis.causes DIR [--worst K] [--json]

DIR is a campaign's folder, a bundle of one, or one run's. Prints for each run that has evidence its
stalled seconds by cause and the cards of its K longest stalls (3), then of K of player and
heartbeat, which are in no sum. --json prints one object a run, with all cards, a line each.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from analysis.figures.metrics import added_up
from analysis.reading.load import Run, load_campaign
from analysis.reading.words import safe_line
from analysis.stall_causes.causes import RunCauses
from analysis.stall_causes.run_causes import as_json, run_causes
from analysis.text.causes import card_lines, totals_lines
from errors import UserError, run_command


def _print(run: Run, causes: RunCauses, worst: int) -> Iterator[str]:
    subject = run.workload.subject
    of_all = added_up(run.workload)
    yield (
        f"{safe_line(run.label, 60)} run {run.number}: {causes.total:.1f} s of stalls"
        f"{of_all and f', {of_all}'}"
    )
    yield from totals_lines(causes, subject)
    yield from (f"  {note}" for note in causes.notes)
    for card in (*causes.cards[:worst], *causes.others[:worst]):
        yield ""
        yield from card_lines(card)
    yield ""


def main(arguments: list[str] | None = None) -> int:
    """Print the causes of the stalls of a folder's runs."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.causes", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", metavar="DIR", type=Path)
    parser.add_argument("--worst", metavar="K", type=int, default=3, help="cards of each run")
    parser.add_argument("--json", action="store_true", help="one object a run, a line each")
    options = parser.parse_args(arguments)
    campaign = load_campaign(options.results)
    if not campaign.runs:
        raise UserError(f"{options.results}: holds no run that has ended")
    without = []
    for run in campaign.runs:
        causes = run_causes(run)
        if causes is None:
            without.append(f"{run.variant}/{run.number}")
        elif options.json:
            print(json.dumps(as_json(run, causes)))
        else:
            print("\n".join(_print(run, causes, max(0, options.worst))))
    if len(without) == len(campaign.runs):
        raise UserError(
            f"{options.results}: holds no evidence of causes",
            hint="it was measured with --no-evidence or by an older suite, or it is a bundle that "
            "had no room for it (then causes.json has what was found)",
        )
    if without and not options.json:
        print(f"without evidence: {', '.join(without)}")
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.causes", main))
