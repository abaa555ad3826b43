# SPDX-License-Identifier: GPL-2.0-or-later
"""What a report costs, and how it grows: `python3 -m benchmarks.report`.

Input: synthetic campaigns (tests/make_results.py; nothing in them was measured) in a temporary
folder: five runs a variant, six streams of about 1,650 lines, every counter of a real kernel.
Output: a table for docs, from `python3 -m graphs DIR` in a process of its own, whose progress lines
tell the stages apart; how it compares with the targets, which are for 120 variants. With --evidence
each run has the files that its causes come from.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report.measure import Cost, measured
from errors import UserError, run_command
from tests.make_results import make_campaign

RUNS = 5
STREAMS, LINES = 6, 1650
TARGET_VARIANTS, TARGET_S, TARGET_MIB = 120, 30.0, 1024.0
LOAD, CAUSES, STATISTICS = "load", "causes", "statistics"
PICTURES, PAGE, BUNDLE = "pictures", "page", "bundle"
STAGES = {
    "": LOAD,
    "graphs: looking": CAUSES,
    "graphs: comparing": STATISTICS,
    "graphs: writing the texts": STATISTICS,
    "graphs: drawing": PICTURES,
    "graphs: writing the page": PAGE,
    "graphs: packing the bundle": BUNDLE,
}
COLUMNS = (
    *("variants", "runs", "results MiB"),
    *(f"{stage} s (CPU)" for stage in dict.fromkeys(STAGES.values())),
    *("all s (CPU)", "memory MiB", "page MiB", "pictures MiB", "bundle MiB"),
)


@dataclass(frozen=True)
class Row:
    """One campaign: its size, what its report cost, and the report's own size in MiB."""

    variants: int
    results: float
    lines: float  # a stream, on the average
    cost: Cost
    page: float
    pictures: float
    bundle: float

    def cells(self) -> list[str]:
        """The row of the table, one cell for each of COLUMNS."""
        cost = self.cost
        return [
            f"{self.variants}",
            f"{self.variants * RUNS}",
            f"{self.results:.0f}",
            *(f"{spent:.1f} ({cost.cpu[stage]:.1f})" for stage, spent in cost.seconds.items()),
            f"{cost.whole:.1f} ({sum(cost.cpu.values()):.1f})",
            f"{cost.together:.0f}",
            f"{self.page:.1f}",
            f"{self.pictures:.1f}",
            f"{self.bundle:.1f}",
        ]


def mib(*paths: Path) -> float:
    """Size of files, and of all that is in folders."""
    each = [one for path in paths for one in (path.rglob("*") if path.is_dir() else [path])]
    return sum(one.stat().st_size for one in each if one.is_file()) / 2**20


def row(variants: int, with_evidence: bool) -> Row:
    """Make a campaign, report it, and throw both away."""
    with tempfile.TemporaryDirectory(prefix="freeze-benchmark-") as scratch:
        results, report = Path(scratch) / "synthetic", Path(scratch) / "report"
        make_campaign(results, variants, RUNS, all_counters=True, with_evidence=with_evidence)
        logs = list(results.glob("*/*/latency-*.log"))
        if len(logs) != variants * RUNS * STREAMS:
            raise UserError(f"{len(logs)} streams were made, not {variants * RUNS * STREAMS}")
        lines = sum(log.read_bytes().count(b"\n") for log in logs) / len(logs)
        cost = measured(["-m", "graphs", str(results), "-o", str(report)], STAGES)
        return Row(
            variants,
            mib(results),
            lines,
            cost,
            mib(report / "index.html"),
            mib(*report.glob("*.png")),
            mib(report / "bug-report.tar.gz"),
        )


def verdict(found: Row) -> str:
    """The targets, and whether they were met."""
    spent = found.cost.whole - found.cost.seconds[BUNDLE]
    both = spent <= TARGET_S and found.cost.together <= TARGET_MIB
    return (
        f"{found.variants} variants: load to page in {spent:.1f} s (target "
        f"{TARGET_S:.0f} s), memory {found.cost.together:.0f} MiB (target {TARGET_MIB:.0f} MiB): "
        + ("met" if both else "missed")
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; status 1 if a target was missed."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.report", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--variants", type=int, nargs="+", default=[10, 30, 60, TARGET_VARIANTS])
    parser.add_argument(
        "--evidence", action="store_true", help="each run has evidence; the targets are without it"
    )
    asked = parser.parse_args(arguments)
    if min(asked.variants) < 10:
        raise UserError("--variants: at least 10, for fewer runs have no stages to tell apart")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    rows = []
    for variants in asked.variants:
        rows.append(row(variants, asked.evidence))
        print(f"| {' | '.join(rows[-1].cells())} |", flush=True)
    per_stream = sum(one.lines for one in rows) / len(rows)
    print(
        f"\nSynthetic campaigns: {RUNS} runs a variant, {STREAMS} streams of {per_stream:,.0f} "
        f"lines on the average (a gitk's: {LINES:,}),\nevery counter of a real kernel. Memory: "
        "peak of all processes together, pages that they share counted once."
    )
    judged = [one for one in rows if one.variants == TARGET_VARIANTS and not asked.evidence]
    for one in judged:
        print(verdict(one))
    return int(any(verdict(one).endswith("missed") for one in judged))


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.report", main))
