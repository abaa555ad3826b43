# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers, writers and an allocator work for some seconds; measures how long their steps take.

Each is a process. A reader's step opens and reads a file of the tree, then reads 64 KiB from a
random place of the large file. A writer's step writes a file of 256 KiB and renames it over its
previous one. The allocator's step maps 4 MiB, touched at once (MAP_POPULATE), and frees its oldest
ones: it holds a quarter of the memory. A latency is that of a whole step, in microseconds.
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

from workloads.load_output import say
from workloads.shrinking import sources
from workloads.shrinking.copying import LARGE, TREE
from workloads.shrinking.measuring import (
    Scene,
    counters,
    difference,
    percentile,
    ticks_while,
)

KINDS = {"read": 2, "write": 2, "allocate": 1}  # processes of each
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
READ, WRITTEN, BLOCK = 64 << 10, 256 << 10, 4 << 20
SLOT = 8  # bytes per count
Step = Callable[[], None]


def work(scene: Scene, seconds: int, headers: int) -> None:
    """Run the mix; adds KIND-SHARE (µs), KIND-steps, work-rate and stall-rate (per second)."""
    begins = [
        (kind, partial(STEPS[kind], scene.folder, number, headers))
        for kind, count in KINDS.items()
        for number in range(count)
    ]
    before, began = counters(), time.monotonic()
    until = began + seconds
    counts = mmap.mmap(-1, SLOT * len(begins))
    children = [_child(begin, until, counts, place) for place, (_, begin) in enumerate(begins)]
    for _ in ticks_while(lambda: time.monotonic() < until):
        say(f"mix: steps={sum(array('q', counts[:]))}")
    latencies: dict[str, array[int]] = {kind: array("q") for kind in KINDS}
    for (kind, _), (pid, pipe) in zip(begins, children, strict=True):
        with open(pipe, "rb") as file:
            content = file.read()
        # A killed process may have written only a part.
        latencies[kind].frombytes(content[: len(content) // SLOT * SLOT])
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            scene.fail(f"mix: a process (kind: {kind}) ended with status {status}")
    took = time.monotonic() - began
    scene.figures |= summed_up(latencies)
    scene.figures["work-rate"] = sum(map(len, latencies.values())) / took
    stalls = difference(before, counters()).get("allocstall")
    if stalls is not None:
        scene.figures["stall-rate"] = stalls / took


def summed_up(latencies: "dict[str, array[int]]") -> dict[str, float]:
    """KIND-SHARE (µs) and KIND-steps (count) from each kind's latencies, which are in ns."""
    figures: dict[str, float] = {}
    for kind, durations in latencies.items():
        figures[f"{kind}-steps"] = len(durations)
        ordered = sorted(durations)
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
    """Start a process that steps until then and then writes its latencies (ns).

    Returns its pid and pipe.
    """
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
        # In any case: only the parent runs the rest of the program.
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
    """Steps that read a small file and a piece of the large one."""
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
    """Steps that replace a file."""
    whole, new = folder / f"written-{number}", folder / f"written-{number}.new"
    block = bytes(WRITTEN)

    def step() -> None:
        with new.open("wb", buffering=0) as file:
            file.write(block)
        new.rename(whole)

    yield step


@contextlib.contextmanager
def allocator(_folder: Path, _number: int, _headers: int) -> Iterator[Step]:
    """Steps that take anonymous memory."""
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
