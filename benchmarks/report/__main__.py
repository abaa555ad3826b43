# SPDX-License-Identifier: GPL-2.0-or-later
"""How much time and memory a report takes, by its size: `python3 -m benchmarks.report`.

Input: synthetic campaigns in a temporary folder (by benchmarks/synthetic_results/make.py; nothing
in them was measured) with five runs a variant, six streams of about 1,650 lines, and every counter
of a real kernel. Output: a table for docs about `python3 -m graphs DIR` in its own process, whose
progress lines mark the stages, and a comparison with the targets, which are for 120 variants. With
--evidence each run has the files from which its causes are determined.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report.measure import Cost, measured
from benchmarks.synthetic_results.make import make_campaign
from errors import UserError, run_command

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
    lines: float  # mean of a stream
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
    """The size of these files, and of all files in these folders, in MiB."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files if file.is_file()) / 2**20


def measure_report(variants: int, with_evidence: bool) -> Row:
    """Make a campaign and its report, measure that, and remove both."""
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


def verdict(row: Row) -> str:
    """The targets, and whether they were met."""
    spent = row.cost.whole - row.cost.seconds[BUNDLE]
    both = spent <= TARGET_S and row.cost.together <= TARGET_MIB
    return (
        f"{row.variants} variants: load to page in {spent:.1f} s (target "
        f"{TARGET_S:.0f} s), memory {row.cost.together:.0f} MiB (target {TARGET_MIB:.0f} MiB): "
        + ("met" if both else "missed")
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; status 1 if a target was missed."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.report", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--variants", type=int, nargs="+", default=[10, 30, 60, TARGET_VARIANTS])
    parser.add_argument(
        "--evidence",
        action="store_true",
        help="give each run evidence; the targets are for runs without it",
    )
    options = parser.parse_args(arguments)
    if min(options.variants) < 10:
        raise UserError("--variants must be at least 10: smaller reports print no stages")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    rows = []
    for variants in options.variants:
        rows.append(measure_report(variants, options.evidence))
        print(f"| {' | '.join(rows[-1].cells())} |", flush=True)
    per_stream = sum(row.lines for row in rows) / len(rows)
    print(
        f"\nSynthetic campaigns: {RUNS} runs a variant, {STREAMS} streams of {per_stream:,.0f} "
        f"lines on the average (a gitk's: {LINES:,}),\nevery counter of a real kernel. Memory: "
        "peak of all processes together, pages that they share counted once."
    )
    judged = [row for row in rows if row.variants == TARGET_VARIANTS and not options.evidence]
    for row in judged:
        print(verdict(row))
    return int(any(verdict(row).endswith("missed") for row in judged))


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.report", main))
