# SPDX-License-Identifier: GPL-2.0-or-later
"""The same run twice: it is one run, whatever its number is and whoever copied it."""

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from analysis.reading.streams import Stream
from analysis.reading.words import plain, some

DISTINCT = 50  # lines, stamped in ms: with fewer two runs without a seed may be alike by chance
NAMED = 8


class Recorded(Protocol):
    """What of a run tells it from others."""

    @property
    def variant(self) -> str:
        """The name of its variant's folder."""

    @property
    def number(self) -> int:
        """Its own folder's."""

    @property
    def streams(self) -> Mapping[str, Stream]:
        """Its lines."""

    @property
    def state(self) -> str:
        """How it ended."""

    def fact(self, *keys: str) -> Any:
        """A fact of its machine's."""


Run = TypeVar("Run", bound=Recorded)


def identity(run: Recorded) -> str:
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


def without_copies(runs: list[Run], problems: list[str]) -> list[Run]:
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


def _name(run: Recorded) -> str:
    return f"{plain(run.variant, 60)}/{run.number}"
