# SPDX-License-Identifier: GPL-2.0-or-later
"""Records tests/golden/taskstats/ again: `python3 -m tests.capture_taskstats [KERNEL…]`.

Boots each kernel (default: the four of the golden files) under TCG.
"""

import json
import sys
import tempfile
from pathlib import Path

from contract.run_record import read_events
from errors import UserError, run_command
from run import machine_lock
from run.arguments import parse
from run.measure_command import guest_job
from tests.support.vms import SMALL, for_tests, guest
from vm import session

GOLDEN = Path(__file__).resolve().parent / "golden" / "taskstats"
KERNELS = ("debian:5.10", "debian:6.1", "debian:6.12", "debian:7.2")
PROGRAM = "python3 /suite/tests/guest/taskstats_capture.py"


def main() -> int:
    """Write one file per kernel; returns the exit status."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for spec in sys.argv[1:] or KERNELS:
        argv = [*SMALL, "--kernel", spec]
        options = parse(argv)
        with machine_lock.held(), tempfile.TemporaryDirectory() as folder:
            state, why = session.run(
                for_tests(guest(*argv)),
                guest_job(
                    options,
                    options.variants[0],
                    "python3 /suite/tests/guest/taskstats_capture.py",
                ),
                Path(folder),
                tick=lambda: None,
                stopped=lambda: False,
                facts={},
            )
            replies = [e for e in read_events(Path(folder) / "events.jsonl") if "reply" in e]
            if not replies:
                raise UserError(f"{spec}: {state}: {why}")
        kept = {key: value for key, value in replies[0].items() if key not in ("t", "event")}
        path = GOLDEN / f"{spec.removeprefix('debian:')}.json"
        path.write_text(json.dumps(kept, indent=1) + "\n")
        print(f"{path}: {kept['release']}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("tests.capture_taskstats", main))
