# SPDX-License-Identifier: GPL-2.0-or-later
"""In a guest: run_test.sh's measuring process, while the kernel's own trace notes reclaim's waits.

Arguments: those of run_test.sh --bare. Writes a `waits` event into events.jsonl: `each` wait's
moment (s of CLOCK_MONOTONIC), whether kswapd waited, and its µs; `noted`: how many in all.
"""

import re
import subprocess
import sys
from pathlib import Path

from contract.run_files import EVENTS
from contract.run_record import Events

ROOT = Path(__file__).resolve().parents[2]
TRACE = Path("/run/trace-of-waits")
NOTED = (
    *("writeback/writeback_congestion_wait", "writeback/writeback_wait_iff_congested"),
    "vmscan/mm_vmscan_throttled",
)
# `usect_delayed` is how the kernel spells it in the last of them.
WAIT = re.compile(
    r"^ *(?P<comm>.+)-\d+ +\[\d+\].* (?P<s>\d+\.\d+): \w+: .*\busect?_delayed=(?P<us>\d+)", re.M
)


def begin() -> None:
    """Have the kernel note them, by the clock that the observers have."""
    TRACE.mkdir()
    subprocess.run(["mount", "-t", "tracefs", "none", str(TRACE)], check=True)
    (TRACE / "trace_clock").write_text("mono")
    (TRACE / "buffer_size_kb").write_text("512")
    for name in NOTED:
        switch = TRACE / "events" / name / "enable"
        if switch.exists():
            switch.write_text("1")


def main() -> int:
    """The measuring process's exit status."""
    argv = sys.argv[1:]
    begin()
    status = subprocess.run([sys.executable, "-S", "-m", "measure.one_run", *argv], cwd=ROOT)
    text = (TRACE / "trace").read_text()
    noted = re.search(r"entries-written: \d+/(\d+)", text)
    assert noted
    events = Events(Path(argv[argv.index("--run-dir") + 1]) / EVENTS)
    each = [
        [float(one["s"]), one["comm"].startswith("kswapd"), int(one["us"])]
        for one in WAIT.finditer(text)
    ]
    events.write("waits", each=each, noted=int(noted[1]))
    return status.returncode


if __name__ == "__main__":
    sys.exit(main())
