# SPDX-License-Identifier: GPL-2.0-or-later
"""The same run twice: it is one run, whatever its number is and whoever copied it."""

import hashlib
from typing import TYPE_CHECKING

from analysis.reading.words import plain, some

if TYPE_CHECKING:
    from analysis.reading.load import Run

DISTINCT = 50  # lines, stamped in ms: with fewer two runs without a seed may be alike by chance
NAMED = 8


def identity(run: "Run") -> str:
    """Stands for how the run ended, its seed and all lines' times; empty if they tell too little.

    Not for the lines' text, which a bundle's redaction may have changed.
    """
    digest = hashlib.sha256(repr(run.fact("seed")).encode())
    lines = 0
    for name in sorted(run.streams):
        stream = run.streams[name]
        lines += len(stream.elapsed)
        digest.update(name.encode("utf-8", "replace") + b"\0")
        digest.update(stream.elapsed.tobytes())
        digest.update(stream.gap.tobytes())
    enough = DISTINCT if run.fact("seed") is None else 1
    return f"{run.state} {digest.hexdigest()}" if lines >= enough else ""


def without_copies(runs: list["Run"], problems: list[str]) -> list["Run"]:
    """Each variant's runs, each once; a problem names the copies."""
    first: dict[tuple[str, str], Run] = {}
    copies: dict[tuple[str, str], list[str]] = {}
    kept = []
    for run in runs:
        key = (run.variant, identity(run))
        if key[1] and first.setdefault(key, run) is not run:
            copies.setdefault(key, []).append(_name(run))
        else:
            kept.append(run)
    for key, names in copies.items():
        problems.append(
            f"the same run as {_name(first[key])} (seed, and the time of each line), not counted "
            f"again: {some(names, NAMED)}"
        )
    return kept


def _name(run: "Run") -> str:
    return f"{plain(run.variant, 60)}/{run.number}"
