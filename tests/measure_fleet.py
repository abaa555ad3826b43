# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m tests.measure_fleet FOLDER OPTION…: one campaign here, by ssh and by Slurm.

FOLDER: a new one for the results and the hosts, which are this machine. OPTION…: of run_test.sh.
Prints how long each took, and which files of its runs are not the same bytes as here.
"""

import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import real_fleet

WITHIN_S = 2 * 3600.0


def main() -> None:
    """Do it. SIGTERM ends the campaign and the hosts, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder, options = Path(sys.argv[1]).absolute(), sys.argv[2:]
    here = folder / "here"
    campaign(here, "here, two runs at a time", [*options, "--jobs", "2"], {})
    with real_fleet.by_ssh(folder / "ssh") as environment:
        argv = [*options, *real_fleet.SSH]
        campaign(folder / "ssh", "by ssh, two hosts with empty caches", argv, environment)
    compare(here, folder / "ssh")
    with real_fleet.by_slurm(folder / "slurm") as environment:
        argv = [*options, *real_fleet.SLURM]
        campaign(folder / "slurm", "in Slurm, two nodes", argv, environment)
    compare(here, folder / "slurm")


def campaign(folder: Path, what: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
    """Do it in this folder, and print its time."""
    _, seconds = real_fleet.campaign(folder, argv, environment, within_s=WITHIN_S)
    print(f"{what}: {seconds:.0f} s", flush=True)


def compare(here: Path, there: Path) -> None:
    """Print how far the runs are equal."""
    files, different = real_fleet.compare_runs(here, there)
    print(f"  {files} files are equal; different: {', '.join(different) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
