# SPDX-License-Identifier: GPL-2.0-or-later
"""What is found in each run of a campaign, by several processes if the runs are many."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import sched_getaffinity
from signal import SIG_IGN, SIGINT, signal
from typing import Any, TypeVar

from analysis.reading.load import Run

FORKS = 8  # runs, from which on further processes pay off
Found = TypeVar("Found")


def in_every_run(runs: Sequence[Run], look: Callable[[Run], Found]) -> list[Found]:
    """look(run) of each, in order; an error of any is raised."""
    if len(runs) < FORKS:
        return [look(run) for run in runs]
    # Forked, the workers have the runs already; only what they find is sent.
    with ProcessPoolExecutor(
        len(sched_getaffinity(0)),
        mp_context=get_context("fork"),
        initializer=_Worker.begin,
        initargs=(runs, look),
    ) as pool:
        return list(pool.map(_Worker.run, range(len(runs)), chunksize=4))


class _Worker:
    """What a process of the pool knows: the runs, and what is looked for in them."""

    runs: Sequence[Run]
    look: Callable[[Run], Any]

    @classmethod
    def begin(cls, runs: Sequence[Run], look: Callable[[Run], Any]) -> None:
        signal(SIGINT, SIG_IGN)
        cls.runs, cls.look = runs, staticmethod(look)

    @classmethod
    def run(cls, index: int) -> Any:
        return cls.look(cls.runs[index])
