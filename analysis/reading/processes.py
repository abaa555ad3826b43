# SPDX-License-Identifier: GPL-2.0-or-later
"""Applies a function to many items, in several processes if that is faster."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import sched_getaffinity
from signal import SIG_IGN, SIGINT, signal
from typing import Any, TypeVar

MANY = 8  # runs; from this number on several processes are faster at reading their tables
Item = TypeVar("Item")
Made = TypeVar("Made")


def done_to_each(
    items: Sequence[Item], do: Callable[[Item], Made], fewest: int = MANY, at_once: int = 4
) -> list[Made]:
    """do(item) of all items, in order; raises what any of them raises.

    fewest: number of items from which on several processes work; at_once: items that a process
    takes at a time.
    """
    if len(items) < fewest:
        return list(map(do, items))
    # Forked workers already have the items; only the results are sent.
    with ProcessPoolExecutor(
        len(sched_getaffinity(0)),
        mp_context=get_context("fork"),
        initializer=_Worker.begin,
        initargs=(items, do),
    ) as pool:
        return list(pool.map(_Worker.run, range(len(items)), chunksize=at_once))


class _Worker:
    """State of a process of the pool: the items and the function."""

    items: Sequence[Any]
    do: Callable[[Any], Any]

    @classmethod
    def begin(cls, items: Sequence[Any], do: Callable[[Any], Any]) -> None:
        signal(SIGINT, SIG_IGN)
        cls.items, cls.do = items, staticmethod(do)

    @classmethod
    def run(cls, index: int) -> Any:
        return cls.do(cls.items[index])
