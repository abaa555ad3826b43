# SPDX-License-Identifier: GPL-2.0-or-later
"""The access pattern while loading: reads runs of earlier rows, as gitk's layout of the graph does.

Every STEP commits on average (uniformly between 0.5 and 1.5 times that, seeded) a layout step is
done at once, between two lines. It reads `touch` times as many commits as were loaded since the
last step. It reads them in runs of RUN rows: a run begins at a random earlier row, and its rows are
STRIDE apart, because gitk looks at one commit of each arc (a line of commits without a branch), not
at all. For each row it reads the whole raw text, each copy, then looks up the children of the
commit and of its parents. So a step costs little CPU but touches many pages: it only shows if
memory is short.
"""

import random

from fake_gitk.history import History

STEP = 512  # commits
RUN = 16  # rows per run
STRIDE = 32  # rows from one to the next in a run


class Layout:
    """Decides when to look back, and does it. touch: earlier commits to read per loaded commit."""

    def __init__(self, touch: float, seed: int, step: int = STEP) -> None:
        self.touched = 0
        self._touch = touch
        self._step = step
        # Two sequences, so that the steps' times do not depend on how much they touch.
        self._when = random.Random(f"when {seed}")
        self._where = random.Random(f"where {seed}")
        self.begin()

    def begin(self) -> None:
        """Start a new pass: nothing is loaded. The random sequences continue."""
        self._loaded = 0
        self._owed = 0.0
        self.due = self._next()

    def look_back(self, history: History, loaded: int) -> None:
        """Do the layout step that is due when `loaded` commits have been loaded."""
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
    for row in rows:
        text, *_ = history.texts(row)
        for name in text.partition(b"\n")[0].split(b" "):
            for child in children.get(name, ()):
                len(child)
