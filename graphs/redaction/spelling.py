# SPDX-License-Identifier: GPL-2.0-or-later
"""Spellings of names: escaped by logs and systemd, with doubled dashes by device-mapper.

Every repetition in the patterns of this package is bounded: a line of 1 MB must not take hours.
"""

import re

HEX = "[0-9A-Fa-f]"
# Word boundaries. An underscore joins names to others (disk_host1), so it is not a letter here.
BEFORE, AFTER = r"(?<![^\W_])", r"(?![^\W_])"
LONGEST = 255  # characters of a name, such as a file's or a host's
ESCAPE = r"\\{1,2}x[0-9A-Fa-f]{2}"  # of a byte; latency logs double the backslash
_LETTER = rf"(?:[^\W_]|{ESCAPE})"
NAME = rf"{_LETTER}(?:[_.-]{{0,8}}{_LETTER}){{0,{LONGEST - 1}}}"
DASH = r"(?:-|\\{1,2}x2d)"  # systemd's spelling in a unit's name
_DASHES = ("--", "_", r"\x2d", r"\x2d\x2d", r"\\x2d", r"\\x2d\\x2d")
_BLANKS = (r"\x20", r"\\x20", "%20", "_", "+")


def escaped(name: str) -> str:
    r"""The name in the spelling of latency logs and /dev/kmsg: bytes beyond ASCII are \xNN."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in raw)


def plain_name(name: str) -> str:
    """The name itself, from its spelling in a log, a unit's name or a device-mapper name."""
    raw = re.sub(
        rb"\\{1,2}x([0-9A-Fa-f]{2})",
        lambda match: bytes([int(match[1], 16)]),
        name.encode("utf-8", "surrogateescape"),
    )
    plain = raw.decode("utf-8", "surrogateescape")
    return plain if plain.startswith("xn--") else plain.replace("--", "-")


def spellings(name: str) -> set[str]:
    """All spellings under which the name is searched for."""
    forms = {name, escaped(name)}
    forms |= {name.replace("-", dash) for dash in _DASHES}
    return forms | {name.replace(" ", blank) for blank in _BLANKS}
