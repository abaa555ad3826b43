# SPDX-License-Identifier: GPL-2.0-or-later
"""BPF instructions as bytes: a small assembler with labels.

The encoding is the kernel's Documentation/bpf/standardization/instruction-set.rst; only what 5.10
knows is used, unless a method says otherwise.
"""

from __future__ import annotations

from struct import pack


class Reg(int):
    """A register, told from a number."""


R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 = (Reg(number) for number in range(11))

LD, LDX, ST, STX, JMP, ALU64 = 0, 1, 2, 3, 5, 7
FROM_REG = 0x08
IMM, MEM, ATOMIC = 0x00, 0x60, 0xC0
SIZES = {4: 0x00, 2: 0x08, 1: 0x10, 8: 0x18}
ALU = {"+": 0x00, "-": 0x10, "*": 0x20, "|": 0x40, "&": 0x50, "<<": 0x60, ">>": 0x70, "=": 0xB0}
JUMPS = {"": 0x00, "==": 0x10, ">": 0x20, ">=": 0x30, "!=": 0x50, "s>": 0x60, "s<=": 0xD0}
CALL, EXIT, ALU_NEG, ALU_ARSH = 0x80, 0x90, 0x80, 0xC0
MAP_FD, MAP_VALUE = 1, 2
CMPXCHG = 0xF1

# Helpers, by their numbers in include/uapi/linux/bpf.h.
MAP_LOOKUP, MAP_UPDATE, MAP_DELETE = 1, 2, 3
KTIME_NS, PID_TGID, COMM = 5, 14, 16
GET_STACK, READ_KERNEL = 67, 113


class Asm:
    """One program. Offsets and sizes are in bytes; size is that of a memory access."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int, int, str]] = []
        self._labels: dict[str, int] = {}

    def bytes(self) -> bytes:
        """The program, all labels resolved."""
        found = []
        for at, (code, registers, offset, value, label) in enumerate(self._code):
            if label:
                offset = self._labels[label] - at - 1
            found.append(pack("<BBhi", code, registers, offset, value))
        return b"".join(found)

    def label(self, name: str) -> None:
        """The next instruction's name, for jump()."""
        if name in self._labels:
            raise ValueError(f"label {name} twice")
        self._labels[name] = len(self._code)

    def alu(self, dst: Reg, op: str, value: int) -> None:
        """Dst op= value, 64 bits; `=` copies. value: a register or a signed 32-bit number."""
        if isinstance(value, Reg):
            self._add(ALU64 | ALU[op] | FROM_REG, dst, value)
        else:
            self._add(ALU64 | ALU[op], dst, imm=value)

    def negate(self, dst: Reg) -> None:
        """Dst = -dst."""
        self._add(ALU64 | ALU_NEG, dst)

    def extend(self, dst: Reg) -> None:
        """Sign-extend a 32-bit value."""
        self.alu(dst, "<<", 32)
        self._add(ALU64 | ALU_ARSH, dst, imm=32)

    def load(self, dst: Reg, src: Reg, offset: int, size: int = 8) -> None:
        """Dst = unsigned value at src + offset."""
        self._add(LDX | MEM | SIZES[size], dst, src, offset)

    def store(self, dst: Reg, offset: int, value: int, size: int = 8) -> None:
        """Value at dst + offset = a register or a number."""
        if isinstance(value, Reg):
            self._add(STX | MEM | SIZES[size], dst, value, offset)
        else:
            self._add(ST | MEM | SIZES[size], dst, offset=offset, imm=value)

    def add_to(self, dst: Reg, offset: int, src: Reg) -> None:
        """Atomically add a register to the 64-bit value at dst + offset."""
        self._add(STX | ATOMIC | SIZES[8], dst, src, offset)

    def replace(self, dst: Reg, offset: int, src: Reg) -> None:
        """Atomically: if the value at dst + offset is R0, it becomes src; R0 = what it was.

        Since 5.12 (kernel commit 5ffa25502b5a).
        """
        self._add(STX | ATOMIC | SIZES[8], dst, src, offset, CMPXCHG)

    def jump(self, label: str, left: Reg = R0, op: str = "", right: int = 0) -> None:
        """Go to a later label, always or if left op right (a register or a number)."""
        if isinstance(right, Reg):
            self._add(JMP | JUMPS[op] | FROM_REG, left, right, label=label)
        else:
            self._add(JMP | JUMPS[op], left if op else R0, imm=right, label=label)

    def call(self, helper: int) -> None:
        """Call a helper: R1 to R5 in and lost, R0 out."""
        self._add(JMP | CALL, imm=helper)

    def map_fd(self, dst: Reg, fd: int) -> None:
        """Dst = the map itself, for a helper."""
        self._wide(dst, MAP_FD, fd, 0)

    def map_value(self, dst: Reg, fd: int, offset: int = 0) -> None:
        """Dst = address within the only value of an array map (5.2, kernel commit d8eca5bbb2be)."""
        self._wide(dst, MAP_VALUE, fd, offset)

    def constant(self, dst: Reg, value: int) -> None:
        """Dst = a number of 64 bits."""
        low, high = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF
        self._wide(dst, 0, _signed(low), _signed(high))

    def exit(self, value: int = 0) -> None:
        """Return a number: on a perf event 0 would hide what happened from all others' events."""
        self.alu(R0, "=", value)
        self._add(JMP | EXIT)

    def _wide(self, dst: Reg, kind: int, low: int, high: int) -> None:
        self._add(LD | IMM | SIZES[8], dst, Reg(kind), imm=low)
        self._add(0, imm=high)

    def _add(
        self,
        code: int,
        dst: Reg = R0,
        src: int = 0,
        offset: int = 0,
        imm: int = 0,
        label: str = "",
    ) -> None:
        self._code.append((code, dst | src << 4, offset, imm, label))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
