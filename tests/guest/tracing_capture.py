# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: sends the format file of kmem:mm_page_alloc, as one event."""

import sys
from pathlib import Path

from contract.run_record import Events
from measure.tracepoints import PAGE_ALLOC, find_tracefs
from run.arguments import parse


def main() -> int:
    """Send it."""
    run_dir = Path(str(parse(sys.argv[1:]).run_dir))
    events = Events(run_dir / "events.jsonl")
    text = Path(f"{find_tracefs()}/events/{PAGE_ALLOC}/format").read_text()
    events.write("format", text=text)
    events.write("status", state="completed", why="captured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
