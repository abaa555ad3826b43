# SPDX-License-Identifier: GPL-2.0-or-later
"""How a name may be spelled: escaped as logs and systemd do it, doubled as device-mapper does it.

Every repeat of a pattern in this package is bounded: a line of a megabyte must not take hours.
"""

import re

HEX = "[0-9A-Fa-f]"
# Not in the middle of a word. An underscore joins names to others (disk_host1), so it is no letter.
BEFORE, AFTER = r"(?<![^\W_])", r"(?![^\W_])"
LONGEST = 255  # letters of a name, as of a file's or a host's
ESCAPE = r"\\{1,2}x[0-9A-Fa-f]{2}"  # of a byte; latency logs spell its backslash twice
_LETTER = rf"(?:[^\W_]|{ESCAPE})"
NAME = rf"{_LETTER}(?:[_.-]{{0,8}}{_LETTER}){{0,{LONGEST - 1}}}"
DASH = r"(?:-|\\{1,2}x2d)"  # systemd's spelling in a unit's name
_DASHES = ("--", "_", r"\x2d", r"\x2d\x2d", r"\\x2d", r"\\x2d\\x2d")
_BLANKS = (r"\x20", r"\\x20", "%20", "_", "+")


def escaped(name: str) -> str:
    r"""The name as latency logs and /dev/kmsg spell it: bytes beyond ASCII are \xNN."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in raw)


def plain_name(name: str) -> str:
    """The name itself, from a spelling of it in a log, a unit's name or a device-mapper's."""
    raw = re.sub(
        rb"\\{1,2}x([0-9A-Fa-f]{2})",
        lambda match: bytes([int(match[1], 16)]),
        name.encode("utf-8", "surrogateescape"),
    )
    found = raw.decode("utf-8", "surrogateescape")
    return found if found.startswith("xn--") else found.replace("--", "-")


def spellings(name: str) -> set[str]:
    """Every spelling under which the name is searched for."""
    found = {name, escaped(name)}
    found |= {name.replace("-", dash) for dash in _DASHES}
    return found | {name.replace(" ", blank) for blank in _BLANKS}
