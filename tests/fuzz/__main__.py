# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages results and bundles in many ways, and holds what reads them to what is promised.

usage: python3 -m tests.fuzz [--seed N] [--seconds S] [--count N] [--case N] [--keep DIR]

Each case is made of results (made ones, a stranger's, real kernels', a bundle) by its number and
the seed alone, and read by analysis.compare, .causes, .trend, .reclaim_tables or graphs. A fault is
a traceback, more than 30 s of CPU time or 1 GiB, a signal, another status than those of
docs/reference/exit-statuses.md, or an error of more than one line.

exit status: 0 no fault, 1 a fault, 2 usage
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Play cases, and say what was found."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.fuzz", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="begin no case after so many")
    parser.add_argument("--count", type=int, default=1_000_000, help="at most so many cases")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--keep", type=Path, help="where the results of faults go")
    asked = parser.parse_args(arguments)
    # A forked child must not meet threads of numpy's.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from tests.fuzz.cases import Case, make_bases, play

    found: list[Case] = []
    mutations: Counter[str] = Counter()
    statuses: Counter[int] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as scratch:
        folder = Path(scratch)
        bases = make_bases(folder / "bases")
        until = time.monotonic() + asked.seconds
        numbers = range(asked.count) if asked.case is None else [asked.case]
        for number in numbers:
            if time.monotonic() > until and asked.case is None:
                break
            case = play(asked.seed, number, bases, folder / "case")
            mutations.update(case.mutations)
            statuses[case.ended.status] += 1
            slowest = max(slowest, case.ended.cpu_s)
            if case.ended.fault:
                found.append(case)
                how = f"{', '.join(case.mutations)} of {case.of}, read by {case.command}"
                print(f"case {number}: {case.ended.fault}\n  {how}")
                print(f"  again: python3 -m tests.fuzz --seed {asked.seed} --case {number}")
                if asked.keep is not None:
                    kept = asked.keep / f"{asked.seed}-{number}"
                    shutil.copytree(folder / "case", kept, symlinks=True, dirs_exist_ok=True)
    print(
        f"{sum(statuses.values())} cases, {sum(mutations.values())} mutations, {len(found)} faults"
    )
    for name, count in sorted(mutations.items()):
        print(f"  {name}: {count}")
    print(
        f"statuses: {dict(sorted(statuses.items()))}; the slowest took {slowest:.1f} s of CPU time"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
