# SPDX-License-Identifier: GPL-2.0-or-later
"""The access pattern while loading: runs of rows read again, as gitk's layout of the graph does.

Every STEP commits on average (uniform between half and one and a half of it, seeded) a layout step
is done in one go, between two lines. It reads as many commits as were loaded since the last step,
times `touch`: runs of RUN rows, each beginning at a random earlier row and going on by STRIDE, as
gitk looks at one commit of each arc (a line of commits without a branch), not at all of them. For
each row the whole raw text is read, then the children of the commit and of its parents are looked
up. So a step costs little CPU and many pages: without a shortage of memory nobody notices it.
"""

import random

from fake_gitk.history import History

STEP = 512  # commits
RUN = 16  # rows looked at
STRIDE = 32  # rows from one to the next


class Layout:
    """Decides when to look back, and does it. touch: earlier commits read per commit loaded."""

    def __init__(self, touch: float, seed: int, step: int = STEP) -> None:
        self.touched = 0
        self._touch = touch
        self._step = step
        # Two sequences: when steps are due does not depend on how much they touch.
        self._when = random.Random(f"when {seed}")
        self._where = random.Random(f"where {seed}")
        self.begin()

    def begin(self) -> None:
        """A new pass: nothing is loaded. The random sequence goes on."""
        self._loaded = 0
        self._owed = 0.0
        self.due = self._next()

    def look_back(self, history: History, loaded: int) -> None:
        """The layout step that is due when `loaded` commits have been loaded."""
        self._owed += self._touch * (loaded - self._loaded)
        self._loaded = loaded
        while self._owed >= 1:
            first = self._where.randrange(loaded)
            rows = range(first, loaded, STRIDE)[: min(RUN, int(self._owed))]
            _lay_out(history, rows)
            self._owed -= len(rows)
            self.touched += len(rows)
        self.due = loaded + self._next()

    def _next(self) -> int:
        half = self._step // 2
        return self._when.randint(self._step - half, self._step + half)


def _lay_out(history: History, rows: range) -> None:
    children = history.children
    text = history.text
    for row in rows:
        for name in text(row).partition(b"\n")[0].split(b" "):
            for child in children.get(name, ()):
                len(child)
