# SPDX-License-Identifier: GPL-2.0-or-later
"""Names for a gfp mask that an old kernel printed as a bare number.

Only for the logs of old kernels (`python3 -m analysis.kernlog` reads logs of 2.6.31 and newer): a
guest's kernel is 5.10 or newer, and names the bits itself, in its log and in its tracepoints. The
tables end at 4.6, which prints the names itself ("%pGg", commits edf14cdbf9a0 and c5c990e8a1a1).
They are taken from mainline's include/linux/gfp.h. If the mask has a bit that is not in the table
(a distribution's own bit, or a later bit ported back), the whole mask is not decoded.
"""

import re

Version = tuple[int, int, int]

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,4})(?:\.(\d{1,4}))?")
NAMES_PRINTED = (4, 6, 0)

_LOW = {0x1: "DMA", 0x2: "HIGHMEM", 0x4: "DMA32", 0x10: "WAIT", 0x20: "HIGH", 0x40: "IO"}
_LOW |= {0x80: "FS", 0x100: "COLD", 0x200: "NOWARN", 0x400: "REPEAT", 0x800: "NOFAIL"}
_LOW |= {0x1000: "NORETRY", 0x4000: "COMP", 0x8000: "ZERO", 0x10000: "NOMEMALLOC"}
_LOW |= {0x20000: "HARDWALL", 0x40000: "THISNODE", 0x80000: "RECLAIMABLE"}

# First kernel, and what bits mean from it on; None: that kernel removed the bit.
_CHANGES: tuple[tuple[Version, dict[int, str | None]], ...] = (
    ((2, 6, 30), {**_LOW, 0x100000: "MOVABLE"}),
    # b70d94ee438b moves MOVABLE to the zones' bits; kmemcheck (2dff440525f8) adds NOTRACK.
    ((2, 6, 31), {0x100000: None, 0x8: "MOVABLE", 0x200000: "NOTRACK"}),
    ((2, 6, 38), {0x400000: "NO_KSWAPD"}),  # 32dba98e085f
    ((2, 6, 39), {0x800000: "OTHER_NODE"}),  # 78afd5612deb
    ((3, 3, 0), {0x1000000: "WRITE"}),  # a756cf590853
    ((3, 6, 0), {0x2000: "MEMALLOC"}),  # b37f1dd0f543
    ((3, 8, 0), {0x100000: "KMEMCG"}),  # 7a64bf05b2a6
    ((3, 16, 0), {0x100000: None}),  # 52383431b37c
    ((4, 1, 0), {0x100000: "NOACCOUNT"}),  # 8f4fc071b192
    # 016c13daa5c9 moves RECLAIMABLE; d0164adc89f6 splits WAIT in two and adds ATOMIC.
    (
        (4, 4, 0),
        {
            0x10: "RECLAIMABLE",
            0x80000: "ATOMIC",
            0x400000: "DIRECT_RECLAIM",
            0x2000000: "KSWAPD_RECLAIM",
        },
    ),
    ((4, 5, 0), {0x100000: "ACCOUNT"}),  # a9bb7e620efd
)

_KERNEL = ("WAIT", "IO", "FS")
_HIGHUSER = (*_KERNEL, "HARDWALL", "HIGHMEM")
# Names for several bits, most bits first, as in include/trace/events/gfpflags.h.
_TOGETHER = (
    (
        "GFP_TRANSHUGE",
        (*_HIGHUSER, "MOVABLE", "COMP", "NOMEMALLOC", "NORETRY", "NOWARN", "NO_KSWAPD"),
    ),
    ("GFP_HIGHUSER_MOVABLE", (*_HIGHUSER, "MOVABLE")),
    ("GFP_HIGHUSER", _HIGHUSER),
    ("GFP_USER", (*_KERNEL, "HARDWALL")),
    ("GFP_TEMPORARY", (*_KERNEL, "RECLAIMABLE")),
    ("GFP_KERNEL", _KERNEL),
    ("GFP_NOFS", ("WAIT", "IO")),
    ("GFP_ATOMIC", ("HIGH",)),
    ("GFP_NOIO", ("WAIT",)),
)
_RECLAIM = ("DIRECT_RECLAIM", "KSWAPD_RECLAIM")


def version(release: str | None) -> Version | None:
    """(4, 4, 0) for '4.4.0-21-generic'; None if `release` does not begin with a version."""
    match = _VERSION.match(release or "")
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def decode(mask: int, release: str | None) -> str | None:
    """'GFP_ATOMIC|__GFP_COMP' for 0x4020 of '2.6.31'; None if it cannot be decoded."""
    kernel = version(release)
    if kernel is None or not _CHANGES[0][0] <= kernel < NAMES_PRINTED:
        return None
    bits: dict[int, str | None] = {}
    for since, change in _CHANGES:
        if since <= kernel:
            bits |= change
    names = {name: bit for bit, name in bits.items() if name}
    if mask & ~sum(names.values()):
        return None
    flags = []
    for together, parts in _together(kernel):
        value = sum(names.get(part, 0) for part in parts)
        if all(part in names for part in parts) and mask & value == value:
            flags.append(together)
            mask &= ~value
    flags += [f"__GFP_{name}" for name, bit in names.items() if mask & bit]
    return "|".join(flags) or "GFP_NOWAIT"


def _together(kernel: Version) -> list[tuple[str, tuple[str, ...]]]:
    if kernel < (4, 4, 0):
        return list(_TOGETHER)
    split: list[tuple[str, tuple[str, ...]]] = []
    for name, parts in _TOGETHER:
        reclaim = ("DIRECT_RECLAIM",) if name == "GFP_TRANSHUGE" else _RECLAIM
        rest = tuple(part for part in parts if part not in ("WAIT", "NO_KSWAPD"))
        if name == "GFP_ATOMIC":
            split.append((name, ("HIGH", "ATOMIC", "KSWAPD_RECLAIM")))
        else:
            split.append((name, (*reclaim, *rest)))
    return [*split, ("GFP_NOWAIT", ("KSWAPD_RECLAIM",))]
