# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: sends the format files of the tracepoints that are summed, as one event.

A tracepoint that this kernel lacks is sent as null.
"""

import sys
from pathlib import Path

from contract.run_record import Events
from monitors.trace.tracepoints import WANTED
from run.arguments import parse

TRACEFS = Path("/sys/kernel/tracing")


def text(name: str) -> str | None:
    """One tracepoint's format file."""
    path = TRACEFS / "events" / name / "format"
    return path.read_text() if path.exists() else None


def main() -> int:
    """Send them."""
    run_dir = Path(str(parse(sys.argv[1:]).run_dir))
    events = Events(run_dir / "events.jsonl")
    events.write("formats", formats={name: text(name) for name in WANTED})
    events.write("status", state="completed", why="captured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
