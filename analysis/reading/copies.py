# SPDX-License-Identifier: GPL-2.0-or-later
"""Removes copies: a run that is there twice counts once, whatever its numbers are."""

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from analysis.reading.streams import Stream
from analysis.reading.words import first_names, safe_line

DISTINCT = 50  # lines, stamped in ms: two shorter runs without a seed may be equal by chance
NAMED = 8


class Recorded(Protocol):
    """What identifies a run."""

    @property
    def variant(self) -> str:
        """The name of its variant's folder."""

    @property
    def number(self) -> int:
        """The number that its folder is named by."""

    @property
    def streams(self) -> Mapping[str, Stream]:
        """Its streams by name."""

    @property
    def state(self) -> str:
        """How it ended."""

    def fact(self, *keys: str) -> Any:
        """A value of meta.json by its path of keys; None if it is not there."""


Run = TypeVar("Run", bound=Recorded)


def identity(run: Recorded) -> str:
    """A digest of how the run ended, its seed and all lines' times; empty if there are few lines.

    It does not cover the lines' text, which a bundle's redaction may have changed.
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
    """The runs without copies within a variant; a problem names the copies."""
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
            f"again: {first_names(names, NAMED)}"
        )
    return kept


def _name(run: Recorded) -> str:
    return f"{safe_line(run.variant, 60)}/{run.number}"
