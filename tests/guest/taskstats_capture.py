# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: raw taskstats of stopped tasks, and what /proc says of them at that moment.

Writes a `capture` event into events.jsonl (tests/capture_taskstats.py) and a `status`.
"""

import os
import signal
import socket
import struct
import sys
from pathlib import Path

from contract.run_record import Events
from run.arguments import parse

FILES = ("stat", "schedstat", "status", "io")
HISTORY = Path("/history")
NETLINK_GENERIC, NLM_F_REQUEST = 16, 1
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID = 1, 1


class Taskstats:
    """The kernel's accounts of tasks, as they come."""

    def __init__(self) -> None:
        self._link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
        name = b"TASKSTATS\0\0\0"
        answer = self._ask(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, name)
        at = 20
        while (attribute := struct.unpack_from("=HH", answer, at))[1] != CTRL_ATTR_FAMILY_ID:
            at += attribute[0] + 3 & ~3
        (self._family,) = struct.unpack_from("=H", answer, at + 4)

    def ask(self, pid: int) -> bytes:
        """The kernel's whole answer about one task."""
        value = struct.pack("=I", pid)
        return self._ask(self._family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID, value)

    def _ask(self, family: int, command: int, attribute: int, value: bytes) -> bytes:
        size = 24 + len(value)
        head = struct.pack("=IHHIIBBH", size, family, NLM_F_REQUEST, 1, 0, command, 1, 0)
        self._link.send(head + struct.pack("=HH", 4 + len(value), attribute) + value)
        return self._link.recv(4096)


def work() -> None:
    """Compute, touch memory, read from a disk, then stop."""
    Path("/proc/self/comm").write_text("a (b) c")
    touched = bytearray(8 << 20)
    for at in range(0, len(touched), 4096):
        touched[at] = 1
    for path in sorted(HISTORY.glob("**/*.pack"))[:1]:
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for at in range(0, 16 << 20, 1 << 20):
                os.pread(file.fileno(), 4096, at)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)


def capture(taskstats: Taskstats, pid: int) -> dict[str, object]:
    """The kernel's answer, the same a moment later, and /proc/PID's files in between."""
    before = taskstats.ask(pid)
    files = {name: Path(f"/proc/{pid}/{name}").read_text() for name in FILES}
    return {"pid": pid, "reply": before.hex(), "again": taskstats.ask(pid).hex(), "proc": files}


def main() -> int:
    """One child that has worked."""
    options = parse(sys.argv[1:])
    events = Events(Path(str(options.run_dir)) / "events.jsonl")
    Path("/proc/sys/vm/drop_caches").write_text("3\n")
    child = os.fork()
    if child == 0:
        work()
    os.waitid(os.P_PID, child, os.WSTOPPED)
    taskstats = Taskstats()
    events.write(
        "capture", release=os.uname().release, parent=os.getpid(), **capture(taskstats, child)
    )
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    events.write("status", state="completed", why="captured")
    return 0


if __name__ == "__main__":
    sys.exit(main())
