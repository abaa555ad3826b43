# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures kernels' allocation flags: `python3 -m tests.capture_tracing KERNEL…`.

KERNEL is as for run_test.sh (`debian:6.1`). Boots each kernel once, and writes its tracefs's format
of kmem:mm_page_alloc to tests/golden/tracing/6.1.format.
"""

import sys
import tempfile
from pathlib import Path

from contract.run_record import read_events
from run.arguments import parse
from run.measure_command import guest_job
from tests.support.vms import SMALL, for_tests, guest
from vm import session

GOLDEN = Path(__file__).resolve().parent / "golden" / "tracing"
PROGRAM = "python3 /suite/tests/guest/tracing_capture.py"


def capture(kernel: str) -> None:
    """Boot a kernel and write its file."""
    argv = [*SMALL, "--kernel", kernel]
    options = parse(argv)
    with tempfile.TemporaryDirectory() as scratch:
        run_dir = Path(scratch)
        session.run(
            for_tests(guest(*argv)),
            guest_job(
                options,
                options.variants[0],
                "python3 /suite/tests/guest/tracing_capture.py",
            ),
            run_dir,
            tick=lambda: None,
            stopped=lambda: False,
            facts={},
        )
        events = read_events(run_dir / "events.jsonl")
        format = next((event for event in events if event["event"] == "format"), None)
        if format is None:
            raise SystemExit((run_dir / "console.log").read_text(errors="replace")[-3000:])
    path = GOLDEN / f"{kernel.partition(':')[2]}.format"
    path.write_text(format["text"])
    print(path)


if __name__ == "__main__":
    for spec in sys.argv[1:]:
        capture(spec)
