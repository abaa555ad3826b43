# SPDX-License-Identifier: GPL-2.0-or-later
"""The same done to many things, by several processes if they are so many that it pays off."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import sched_getaffinity
from signal import SIG_IGN, SIGINT, signal
from typing import Any, TypeVar

MANY = 8  # runs of whose tables several processes are sooner done than one
Item = TypeVar("Item")
Made = TypeVar("Made")


def done_to_each(
    items: Sequence[Item], do: Callable[[Item], Made], fewest: int = MANY, at_once: int = 4
) -> list[Made]:
    """do(item) of each, in order; an error of any is raised.

    fewest: items from which on there are several processes; at_once: items that one takes.
    """
    if len(items) < fewest:
        return list(map(do, items))
    # Forked, the workers have the items already; only what they make is sent.
    with ProcessPoolExecutor(
        len(sched_getaffinity(0)),
        mp_context=get_context("fork"),
        initializer=_Worker.begin,
        initargs=(items, do),
    ) as pool:
        return list(pool.map(_Worker.run, range(len(items)), chunksize=at_once))


class _Worker:
    """What a process of the pool knows: the items, and what is done to them."""

    items: Sequence[Any]
    do: Callable[[Any], Any]

    @classmethod
    def begin(cls, items: Sequence[Any], do: Callable[[Any], Any]) -> None:
        signal(SIGINT, SIG_IGN)
        cls.items, cls.do = items, staticmethod(do)

    @classmethod
    def run(cls, index: int) -> Any:
        return cls.do(cls.items[index])
