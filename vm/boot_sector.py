# SPDX-License-Identifier: GPL-2.0-or-later
"""The smallest guest: a boot sector that reads some blocks of its disk, then resets the machine."""

import os
from pathlib import Path

BLOCKS = 8
APART = 1024  # sectors of 512 bytes between blocks, so that no block follows the previous one
LOADED_AT = 0x7C00  # where the firmware puts the sector
PACKET_AT = 0x40  # offset in the sector
READ_TO = 0x7E00


def write(path: Path) -> int:
    """Turn the file into a boot disk.

    Returns the number of requests of a machine that boots from it.
    """
    path.write_bytes(_sector())
    os.truncate(path, (BLOCKS + 1) * APART * 512)
    return 1 + BLOCKS  # 1: the firmware reads the sector


def _sector() -> bytes:
    packet = LOADED_AT + PACKET_AT
    block = packet + 8
    before = b"\x31\xc0\x8e\xd8" + b"\xb9" + _word(BLOCKS)  # ax = ds = 0; cx = count
    read = b"\xb4\x42\xbe" + _word(packet) + b"\x51\xcd\x13\x59"  # int 13h, 42h; dl holds this disk
    read += b"\x81\x06" + _word(block) + _word(APART)  # the next block
    back = -len(read) - 2
    code = before + read + b"\xe2" + back.to_bytes(1, "little", signed=True)
    code += b"\xb0\xfe\xe6\x64"  # the keyboard controller resets the machine
    code += b"\xf4\xeb\xfd"  # until then: hlt in a loop
    # The packet: its size, one sector, the target address, the first block.
    what = b"\x10\x00" + _word(1) + _word(READ_TO) + _word(0) + APART.to_bytes(8, "little")
    return (code.ljust(PACKET_AT, b"\0") + what).ljust(510, b"\0") + b"\x55\xaa"


def _word(number: int) -> bytes:
    return number.to_bytes(2, "little")
