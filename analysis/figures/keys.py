# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of key presses: shares of keys by how long they took, the worst, the first after a pause.

A key that no program has shown took at least as long as the run waited for it. If that does not
show whether it reached a threshold (a key just before the run's end), that share leaves it out.
"""

from dataclasses import dataclass

from analysis.reading.keys import EndedProgram, Key, Keys
from analysis.reading.words import plural, safe_line, seconds

TOOK = (0.1, 1.0, 10.0)  # s
IDLE_S = 30.0  # s since a program's previous key: the user comes back to the program


@dataclass(frozen=True)
class KeyFigures:
    """shares: threshold (s) -> per cent of the keys that took at least as long; None: no key known.

    worst: the key that took longest. first: mean seconds of the `firsts` keys that came after
    IDLE_S. open: the number of keys that were never shown.
    """

    count: int
    shares: dict[float, float | None]
    worst: Key
    first: float | None
    firsts: int
    open: int
    ended: tuple[EndedProgram, ...]


def key_figures(keys: Keys) -> KeyFigures | None:
    """The figures; None if no key was due."""
    if not keys.keys:
        return None
    firsts = [key.late for key in keys.keys if key.idle >= IDLE_S]
    return KeyFigures(
        count=len(keys.keys),
        shares={threshold: _share(keys.keys, threshold) for threshold in TOOK},
        worst=max(keys.keys, key=lambda key: key.late),
        first=sum(firsts) / len(firsts) if firsts else None,
        firsts=len(firsts),
        open=sum(not key.shown for key in keys.keys),
        ended=keys.ended,
    )


def _share(keys: tuple[Key, ...], threshold: float) -> float | None:
    known = [key.late >= threshold for key in keys if key.shown or key.late >= threshold]
    return 100 * sum(known) / len(known) if known else None


def words(figures: KeyFigures) -> str:
    """Clauses for the summary."""
    shares = [
        f"{share:.0f} % took at least {took:g} s"
        for took, share in figures.shares.items()
        if share is not None
    ]
    least = "" if figures.worst.shown else "at least "
    text = f"{plural(figures.count, 'key')}: {', '.join(shares)}; "
    text += (
        f"the worst {least}{seconds(figures.worst.late)} ({safe_line(figures.worst.program, 20)})"
    )
    if figures.first is not None:
        text += f"; the first after {IDLE_S:.0f} s of idleness {seconds(figures.first)} on average"
    if figures.open:
        text += f"; {figures.open:,} never shown"
    for program in figures.ended:
        text += (
            f"; {safe_line(program.name, 20)} ended with status {program.status} "
            f"at {seconds(program.at)}"
        )
    return text
