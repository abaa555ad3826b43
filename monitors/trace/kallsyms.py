# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of the kernel's functions by address, kept small: some 30 bytes a function.

Read once, before the load: looking one up later would mean some 150,000 lines again.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import pack

PATH = "/proc/kallsyms"
CHUNK = 1 << 16
BLOCK = 32  # names between two that are found without counting
# Text and modules of x86-64 lie in the upper 2 GiB, so that addresses fit into 32 bits.
BASE = 0xFFFFFFFF80000000
# Padding before a function (5.18, CONFIG_FUNCTION_PADDING) and CFI's are no functions.
NO_FUNCTIONS = (b"__pfx_", b"__cfi_", b"__SCT__", b"__SCK__")


class Kallsyms:
    """The table; empty if this kernel hides its addresses."""

    def __init__(self, root: str = "") -> None:
        # 32 bits a number; the module array would bring with it more than it is worth.
        starts, blocks, names = bytearray(), bytearray(), bytearray()
        last = 0

        def append(start: int, name: bytes) -> None:
            nonlocal last
            if last < start < 1 << 32:
                if len(starts) % (4 * BLOCK) == 0:
                    blocks.extend(pack("I", len(names)))
                starts.extend(pack("I", start))
                names.extend(name + b"\n")
                last = start

        modules: list[tuple[int, bytes]] = []
        rest = b""
        with open(root + PATH, "rb", buffering=0) as handle:
            while chunk := handle.read(CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    words = line.split(None, 3)
                    if len(words) < 3 or words[1] not in b"tTwW":
                        continue
                    start, name = int(words[0], 16) - BASE, words[2]
                    if name.startswith(NO_FUNCTIONS):
                        continue
                    if len(words) == 3:  # the kernel's own come first, and in order
                        append(start, name)
                    else:
                        modules.append((start, name))
        for start, name in sorted(modules):
            append(start, name)
        self._starts = memoryview(bytes(starts)).cast("I")
        self._blocks = memoryview(bytes(blocks)).cast("I")
        self._names = bytes(names)

    def __len__(self) -> int:
        return len(self._starts)

    def name(self, address: int) -> bytes:
        """The function in which a return address lies, or the address in hex."""
        # It is the instruction behind a call, which may be the last one of its function.
        offset = address - 1 - BASE
        number = bisect_right(self._starts, offset) - 1 if 0 <= offset < 1 << 32 else -1
        if number < 0:
            return b"0x%x" % address
        first = self._blocks[number // BLOCK]
        for _ in range(number % BLOCK):
            first = self._names.index(b"\n", first) + 1
        return self._names[first : self._names.index(b"\n", first)]
