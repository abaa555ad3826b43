# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures kernels' allocation flags: `python3 -m tests.capture_tracing KERNEL…`.

KERNEL as for run_test.sh (`debian:6.1`); boots each once, and writes what its tracefs says of
kmem:mm_page_alloc to tests/golden/tracing/6.1.format.
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from contract.run_record import read_events
from run.arguments import parse
from run.measure_command import errand
from setup import guest_suite
from tests.support.vms import FOR_TESTS, SMALL, guest
from vm import session

GOLDEN = Path(__file__).resolve().parent / "golden" / "tracing"
PROGRAM = "python3 /suite/tests/guest/tracing_capture.py"


def capture(kernel: str) -> None:
    """Boot kernel and write its files."""
    argv = [*SMALL, "--kernel", kernel]
    asked = parse(argv)
    with tempfile.TemporaryDirectory() as scratch:
        run_dir = Path(scratch)
        session.run(
            replace(guest(*argv), suite=guest_suite.folder(FOR_TESTS)),
            errand(
                asked,
                asked.variants[0],
                "python3 /suite/tests/guest/tracing_capture.py",
            ),
            run_dir,
            tick=lambda: None,
            stopped=lambda: False,
            facts={},
        )
        events = read_events(run_dir / "events.jsonl")
        found = next((event for event in events if event["event"] == "format"), None)
        if found is None:
            raise SystemExit((run_dir / "console.log").read_text(errors="replace")[-3000:])
    path = GOLDEN / f"{kernel.partition(':')[2]}.format"
    path.write_text(found["text"])
    print(path)


if __name__ == "__main__":
    for spec in sys.argv[1:]:
        capture(spec)
