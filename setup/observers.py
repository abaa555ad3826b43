# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the observers' one program and an editor: a guest has them packed, else the cache does."""

import functools
from pathlib import Path

PACKED = Path(__file__).resolve().parent.parent / "monitors" / "observers"
PACKED_BUSYBOX = PACKED.with_name("busybox")


@functools.cache
def program() -> Path:
    """The compiled program; UserError (3) with the reason if it cannot be compiled."""
    if PACKED.exists():
        return PACKED
    # Not at the top: a guest lacks the modules that compile.
    from setup import compile_observers

    return compile_observers.program()


def busybox() -> Path:
    """Of the suite's own tools, linked statically: a guest's image has no editor."""
    if PACKED_BUSYBOX.exists():
        return PACKED_BUSYBOX
    from setup import compile_observers

    return compile_observers.busybox()
