# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers, writers and an allocator for so many seconds: how long each of their steps took.

A process each. A reader opens a file of the tree, reads it, and reads 64 KiB from anywhere in the
large file. A writer writes 256 KiB and renames them over what it wrote before. The allocator takes
4 MiB that are touched at once (MAP_POPULATE) and lets the oldest go: what it holds is a quarter of
the memory. Latencies are of a whole step, in microseconds.
"""

import contextlib
import mmap
import os
import random
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from workloads.shrinking import sources
from workloads.shrinking.copying import LARGE, TREE
from workloads.shrinking.ground import (
    Scene,
    counters,
    difference,
    percentile,
    telling,
)
from workloads.telling import say

KINDS = {"read": 2, "write": 2, "allocate": 1}  # processes of each
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
READ, WRITTEN, BLOCK = 64 << 10, 256 << 10, 4 << 20
SLOT = 8  # bytes of a count
Step = Callable[[], None]


def work(scene: Scene, seconds: int, headers: int) -> None:
    """KIND-SHARE in µs and KIND-steps of each kind, work-rate and stall-rate a second."""
    begins = [
        (kind, partial(STEPS[kind], scene.folder, number, headers))
        for kind, count in KINDS.items()
        for number in range(count)
    ]
    before, began = counters(), time.monotonic()
    until = began + seconds
    counts = mmap.mmap(-1, SLOT * len(begins))
    children = [_child(begin, until, counts, place) for place, (_, begin) in enumerate(begins)]
    for _ in telling(lambda: time.monotonic() < until):
        say(f"mix: steps={sum(array('q', counts[:]))}")
    found: dict[str, array[int]] = {kind: array("q") for kind in KINDS}
    for (kind, _), (pid, pipe) in zip(begins, children, strict=True):
        with open(pipe, "rb") as file:
            said = file.read()
        # One that was killed may have said a part.
        found[kind].frombytes(said[: len(said) // SLOT * SLOT])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            scene.fail(f"mix: a process that was to {kind} ended with status {status}")
    took = time.monotonic() - began
    scene.figures |= summed_up(found)
    scene.figures["work-rate"] = sum(map(len, found.values())) / took
    stalls = difference(before, counters()).get("allocstall")
    if stalls is not None:
        scene.figures["stall-rate"] = stalls / took


def summed_up(latencies: "dict[str, array[int]]") -> dict[str, float]:
    """KIND-SHARE and KIND-steps of what each kind took, in ns there and µs here."""
    figures: dict[str, float] = {}
    for kind, each in latencies.items():
        figures[f"{kind}-steps"] = len(each)
        ordered = sorted(each)
        if ordered:
            figures |= {
                f"{kind}-{name}": percentile(ordered, share) / 1000
                for name, share in SHARES.items()
            }
    return figures


def _child(
    begin: Callable[[], contextlib.AbstractContextManager[Step]],
    until: float,
    counts: mmap.mmap,
    place: int,
) -> tuple[int, int]:
    """(pid, pipe) of a process that steps until then, and then writes its latencies in ns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.close(reading)
        with open(writing, "wb") as file, begin() as step:
            file.write(_steps(step, until, counts, place).tobytes())
        status = 0
    except OSError as error:
        say(f"mix: {error}")
    finally:
        # Whatever it was: the rest of the program is the parent's.
        os._exit(status)


def _steps(step: Step, until: float, counts: mmap.mmap, place: int) -> "array[int]":
    took = array("q")
    while time.monotonic() < until:
        began = time.monotonic_ns()
        step()
        took.append(time.monotonic_ns() - began)
        at = SLOT * place
        counts[at : at + SLOT] = array("q", [len(took)]).tobytes()
    return took


@contextlib.contextmanager
def reader(folder: Path, number: int, headers: int) -> Iterator[Step]:
    """Small files, and pieces of the large one."""
    chance = random.Random(number)
    with (folder / LARGE).open("rb", buffering=0) as large:
        pieces = os.fstat(large.fileno()).st_size // READ

        def step() -> None:
            name = sources.header(chance.randrange(headers))
            with (folder / TREE / name).open("rb", buffering=0) as small:
                small.read()
            large.seek(READ * chance.randrange(pieces))
            large.read(READ)

        yield step


@contextlib.contextmanager
def writer(folder: Path, number: int, _headers: int) -> Iterator[Step]:
    """A file, replaced again and again."""
    whole, new = folder / f"written-{number}", folder / f"written-{number}.new"
    block = bytes(WRITTEN)

    def step() -> None:
        with new.open("wb", buffering=0) as file:
            file.write(block)
        new.rename(whole)

    yield step


@contextlib.contextmanager
def allocator(_folder: Path, _number: int, _headers: int) -> Iterator[Step]:
    """Memory that no file stands for."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    held: deque[mmap.mmap] = deque()
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE

    def step() -> None:
        if len(held) * BLOCK >= memory // 4:
            held.popleft().close()
        held.append(mmap.mmap(-1, BLOCK, flags=flags))

    yield step


STEPS: dict[str, Callable[[Path, int, int], contextlib.AbstractContextManager[Step]]] = {
    "read": reader,
    "write": writer,
    "allocate": allocator,
}
