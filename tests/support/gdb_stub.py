# SPDX-License-Identifier: GPL-2.0-or-later
"""Hangs a guest for real through QEMU's gdb stub: every CPU spins with interrupts off."""

import socket
import time
from pathlib import Path

from vm.machine import Machine

# Places in the g packet, in bytes: sixteen registers of eight bytes come first.
RIP, EFLAGS, CS = 128, 136, 140
INTERRUPT_FLAG = 0x200
JUMP_TO_SELF = "ebfe"


class Stub:
    """The few packets of gdb's remote protocol that this needs."""

    def __init__(self, path: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(10)
        self._sock.connect(str(path))
        self._heard = b""

    def ask(self, packet: str) -> str:
        """Send a packet, acknowledge the answer and return it.

        The stub also says on its own that the guest has stopped (T05…): only the answer to ? is so.
        """
        total = sum(packet.encode()) % 256
        self._sock.sendall(f"${packet}#{total:02x}".encode())
        while True:
            answer = self._packet(packet)
            if not answer.startswith("T") or packet == "?":
                return answer

    def _packet(self, asked: str) -> str:
        while b"#" not in self._heard or len(self._heard) < self._heard.index(b"#") + 3:
            piece = self._sock.recv(4096)
            if not piece:
                raise ConnectionError(f"QEMU's gdb stub closed the connection at {asked!r}")
            self._heard += piece
        end = self._heard.index(b"#")
        said = self._heard[self._heard.index(b"$") + 1 : end].decode()
        self._heard = self._heard[end + 3 :]
        self._sock.sendall(b"+")
        return said

    def close(self) -> None:
        """Let the guest go on."""
        self._sock.close()


def hang(machine: Machine, folder: Path, number: int = 2) -> float:
    """Put a jump to itself where each of the CPUs stands and clear its interrupt flag.

    Only where all are in user mode: in the kernel's own text the jump could lie on the NMI's path.
    Returns when (time.monotonic()) the guest ran its last: QEMU stops it for a debugger.
    """
    path = folder / "gdb"
    machine.monitor.human(f"gdbserver unix:{path},server=on,wait=off")
    time.sleep(0.2)
    for _ in range(200):
        stopped = time.monotonic()
        stub = Stub(path)
        stub.ask("?")
        cpus = {thread: registers(stub, thread) for thread in threads(stub)}
        assert len(cpus) == number, cpus
        ready = all(found[CS] & 3 == 3 for found in cpus.values())
        if ready:
            for thread, found in cpus.items():
                spin(stub, thread, found)
        stub.ask("D")
        stub.close()
        if ready:
            return stopped
        time.sleep(0.05)
    raise AssertionError("the CPUs were never all in user mode")


def threads(stub: Stub) -> list[str]:
    """The stub's names of the CPUs."""
    found: list[str] = []
    answer = stub.ask("qfThreadInfo")
    while answer.startswith("m"):
        found += answer.removeprefix("m").split(",")
        answer = stub.ask("qsThreadInfo")
    return found


def registers(stub: Stub, thread: str) -> bytes:
    """A CPU's registers as the stub's g packet has them."""
    assert stub.ask(f"Hg{thread}") == "OK"
    return bytes.fromhex(stub.ask("g"))


def spin(stub: Stub, thread: str, found: bytes) -> None:
    """Make one CPU jump to where it stands, with interrupts off, for ever."""
    rip = int.from_bytes(found[RIP : RIP + 8], "little")
    flags = int.from_bytes(found[EFLAGS : EFLAGS + 4], "little") & ~INTERRUPT_FLAG
    assert stub.ask(f"Hg{thread}") == "OK"
    assert stub.ask(f"M{rip:x},2:{JUMP_TO_SELF}") == "OK"
    changed = found[:EFLAGS] + flags.to_bytes(4, "little") + found[EFLAGS + 4 :]
    assert stub.ask(f"G{changed.hex()}") == "OK"
