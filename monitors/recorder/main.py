# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder's process: the lines of all streams of a test, whatever becomes of the machine.

Started before the load by monitors.launch. It reads what to record from stdin (`read_spec`); the
end of stdin, or SIGTERM, ends the recording. It speaks JSON lines on stdout:
    {"ready": pid, "problems": […]}                once it is locked in memory
    {"prepared": streams}                          when all programs are there; `go` lets them begin
    {"t0": seconds}                                when the workload has begun
    {"outcome": "done|deadline|stopped", "elapsed": s, "ends": {stream: status}, "observer": {…},
     "early": {stream: last line}, "dropped": {file: [lines, bytes]}}
or {"error": "one line"}. Events go to the fd that it was given for them. `early` are the streams
that ended by themselves though the test does not end with them.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import marshal
import os
import sys
import time

from contract.run_files import EVENTS, RECORDER, latency_log
from monitors.beacon import Beacon
from monitors.observe import become_observer, begin, cost
from monitors.outlet import Outlet, open_all
from monitors.plain_json import to_json
from monitors.recorder.child import StartError, Stream
from monitors.recorder.recorder import Recorder
from monitors.runner_channel import say


class Stop:
    """Asked for by SIGTERM, or by the end of standard input."""

    def __init__(self) -> None:
        self.asked = False
        os.set_blocking(0, False)

    def __call__(self) -> bool:
        try:
            self.asked = self.asked or os.read(0, 1) == b""
        except BlockingIOError:
            return self.asked
        return self.asked

    def ask(self, *_: object) -> None:
        """The handler of SIGTERM."""
        self.asked = True


def read_spec() -> dict[str, object]:
    """A dict, marshalled by a parent of the same Python; its length in four bytes goes before.

    Keys: out (folder), events_fd, until (streams whose end is the end), timeout_s,
    streams (a list of Stream's arguments), beacon (None, or its names and fds).
    """
    length = int.from_bytes(_exactly(4), "little")
    spec = marshal.loads(_exactly(length))
    assert isinstance(spec, dict)
    return spec


def _exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            raise SystemExit("the recorder was not told what to record")
        data += piece
    return data


def main() -> None:
    """Record as told."""
    priority = int(sys.argv[1])
    # Ctrl-C goes to the whole group: the runner decides when recording ends.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    locked = become_observer(priority) if priority else {"problems": ["not asked for"]}
    say({"ready": os.getpid(), "problems": locked["problems"]})
    spec = read_spec()
    sys.setswitchinterval(0.0005)
    streams = [Stream(**one) for one in spec["streams"]]  # type: ignore[attr-defined]
    logs = {stream.name: latency_log(stream.name) for stream in streams}
    opened = open_all(str(spec["out"]), list(logs.values()))
    fds = {name: opened[log] for name, log in logs.items()}
    events_fd = int(str(spec["events_fd"]))
    beacon = Beacon(*spec["beacon"]) if spec["beacon"] else None  # type: ignore[misc]
    for fd in (events_fd, *(beacon.fds if beacon else ())):
        os.set_inheritable(fd, False)  # not the programs', though it was ours
    outlet = Outlet({**fds, EVENTS: events_fd})
    ends: dict[str, object] = {}

    def event(name: str, facts: dict[str, object]) -> None:
        if name == "stream-end":
            ends[str(facts["stream"])] = facts["status"]
        elif name == "output-lost":
            return  # known when nothing more can be written: it goes into the last line's `dropped`
        line = to_json({"t": round(time.monotonic(), 3), "event": name, **facts})
        outlet.put([(EVENTS, line.encode() + b"\n")])

    recorder = Recorder(streams, outlet, event, beacon)
    outlet.start(max(1, priority - 1) if locked.get("fifo") else 0)
    try:
        recorder.prepare()
    except StartError as error:
        say({"error": str(error)})
        return
    say({"prepared": len(streams)})
    if os.read(0, 16) != b"go\n":
        recorder.abandon()
        return
    t0 = recorder.start()
    stop = Stop()
    _signal.signal(_signal.SIGTERM, stop.ask)
    begin()
    say({"t0": t0})
    event("start", {"t0": t0})
    until: set[str] = set(spec["until"])  # type: ignore[call-overload]
    outcome = recorder.run(until, t0 + float(str(spec["timeout_s"])), stop)
    elapsed = round(time.monotonic() - t0, 3)
    event("end", {"elapsed": elapsed})
    observer = {"name": RECORDER, **cost(), "elapsed_s": elapsed}
    early: dict[str, object] = {n: recorder.last_line(n) for n in sorted(ends) if n not in until}
    recorder.stop()
    say(
        {
            "outcome": outcome,
            "elapsed": elapsed,
            "ends": ends,
            "observer": observer,
            "early": early,
            "dropped": outlet.dropped,
        }
    )
