# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m tests.measure_fleet FOLDER OPTION…: one campaign here, by ssh and by Slurm.

FOLDER: a new one for the results and the hosts, which are this machine. OPTION…: of run_test.sh.
Prints how long each took, and ends with an error if a run is not the same bytes everywhere.
"""

import sys
from pathlib import Path

from tests.support import real_fleet
from tests.support.real_fleet import campaign, equal_files

WITHIN_S = 2 * 3600.0


def main() -> None:
    """Do it."""
    folder, options = Path(sys.argv[1]).absolute(), sys.argv[2:]
    here, by_ssh, by_slurm = (folder / name for name in ("here", "ssh", "slurm"))
    _, seconds = campaign(here, [*options, "--jobs", "2"], {}, within_s=WITHIN_S)
    print(f"here, two runs at a time: {seconds:.0f} s", flush=True)
    with real_fleet.by_ssh(by_ssh) as environment:
        _, seconds = campaign(by_ssh, [*options, *real_fleet.SSH], environment, within_s=WITHIN_S)
    files = equal_files(here, by_ssh)
    print(f"by ssh, two hosts with empty caches: {seconds:.0f} s; {files} files equal", flush=True)
    with real_fleet.by_slurm(by_slurm) as environment:
        _, seconds = campaign(
            by_slurm, [*options, *real_fleet.SLURM], environment, within_s=WITHIN_S
        )
    files = equal_files(here, by_slurm)
    print(f"in Slurm, two nodes: {seconds:.0f} s; {files} files equal", flush=True)


if __name__ == "__main__":
    main()
