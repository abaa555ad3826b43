# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the observers' program: a guest gets it compiled; elsewhere it is in the cache."""

import functools
from pathlib import Path

PACKED = Path(__file__).resolve().parent.parent / "monitors" / "observers"


@functools.cache
def program() -> Path:
    """The compiled program; UserError (3) with the reason if it cannot be compiled."""
    if PACKED.exists():
        return PACKED
    # Not at the top: a guest lacks the modules that compile.
    from setup import compile_observers

    return compile_observers.program()
