# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the kernel's counters agree with the causes: `python3 -m benchmarks.cause_witnesses DIR…`

Input: campaigns of real runs, bundles, or single runs. Output: docs/example/cause-witnesses.txt,
with a row for each cause and witness (benchmarks/cause_witnesses/counters.py). A witness is a
counter of the whole machine that must move when a program waits for that cause, and that is not
used to determine the cause.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from analysis.reading.load import load_campaign
from analysis.reading.words import safe_line
from analysis.stall_causes.causes import BY_KEY
from benchmarks.cause_witnesses.agreement import Agreement, Tally
from benchmarks.cause_witnesses.counters import OF
from errors import UserError, run_command

HEAD = (
    *("cause", "witness", "seconds with the cause", "witness moved more"),
    *("seconds without", "moved more there", "higher with it"),
)


def rows(agreement: Agreement) -> Iterator[list[str]]:
    """A row for each cause and witness, without the causes that never occurred."""
    for cause, witnesses in OF.items():
        seconds = agreement.seconds[cause]
        if not seconds:
            continue
        key = f"`{cause}`"
        for witness in witnesses:
            tally = agreement.tallies[cause, witness.name]
            yield (
                [key, witness.name, *cells(tally)]
                if tally.seconds
                else [*(key, witness.name, f"{seconds:,}", "not available", "", "", "")]
            )
        if not witnesses:
            yield [key, "none is recorded", f"{seconds:,}", "", "", "", ""]


def cells(tally: Tally) -> list[str]:
    """The cells with the figures of a witness."""
    return [
        f"{tally.seconds:,}",
        _percent(tally.more, tally.seconds),
        f"{tally.without:,}",
        _percent(tally.more_without, tally.without),
        _percent(tally.higher, tally.pairs),
    ]


def _percent(part: float, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else ""


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.cause_witnesses")
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dir", type=Path, nargs="+", metavar="DIR", help="results of real runs")
    options = parser.parse_args(arguments)
    agreement = Agreement()
    for folder in options.dir:
        for run in load_campaign(folder).runs:
            if not agreement.add(run):
                name = f"{safe_line(run.variant, 60)}/{run.number}"
                print(f"{folder}: {name} has no evidence about causes", file=sys.stderr)
    if not agreement.runs:
        raise UserError("no run has evidence about causes", hint="name a campaign's folder")
    of = ", ".join(
        f"{safe_line(label, 40)} ({n})" for label, n in sorted(agreement.variants.items())
    )
    print(f"{agreement.runs} run{'s' if agreement.runs != 1 else ''}: {of}.\n")
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for row in rows(agreement):
        print(f"| {' | '.join(row)} |")
    never = [BY_KEY[cause].key for cause, seconds in agreement.seconds.items() if not seconds]
    if never:
        print(f"\nIn no second: {', '.join(f'`{key}`' for key in never)}.")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.cause_witnesses", main))
