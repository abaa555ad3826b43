# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' outlet with known answers: order, ends, outputs that fail, block and recover."""

import array
import contextlib
import fcntl
import functools
import json
import os
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernel_logs import wait_for
from tests.support.observers import PLAIN, SANITIZERS, THREADS, Driven, driver

pytestmark = pytest.mark.clock

BOUND, READY, URGENT = 4 << 20, 192 << 10, 1 << 20
CHECKS = (SANITIZERS, THREADS)
PARTS = ("outlet.c", "lane.c", "queue.c", "text.c", "clock.c", "lock.c", "channel.c")


@contextlib.contextmanager
def memory_files(*names: str) -> Iterator[dict[str, int]]:
    """Files that are nowhere, open for writing at their end."""
    fds = {name: os.memfd_create(name) for name in names}
    try:
        yield fds
    finally:
        for fd in fds.values():
            os.close(fd)


def content(fd: int) -> bytes:
    """All that is in a file."""
    return os.pread(fd, os.fstat(fd).st_size, 0)


def written(fd: int, lines: int) -> bool:
    """Whether a file has so many lines."""
    return content(fd).count(b"\n") == lines


def in_pipe(reader: int) -> int:
    """Bytes that a pipe holds."""
    held = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, held)
    return held[0]


class Outlet(Driven):
    """outlet.c, with these files; early: its thread is there before them."""

    def __init__(
        self,
        fds: dict[str, int],
        *,
        early: bool = False,
        sanitizers: tuple[str, ...] = SANITIZERS,
    ) -> None:
        wrap = ("-Wl,--wrap=sem_post",)
        program = driver("outlet_driver", *PARTS, flags=wrap, sanitizers=sanitizers)
        super().__init__(program, fds=tuple(fds.values()))
        if early:
            self.ask("start")
        self._names = list(fds)
        for number, (name, fd) in enumerate(fds.items()):
            assert self.ask(f"add {fd} {name}") == number

    def ask(self, order: str, data: bytes = b"") -> int:
        self.tell(order.encode() + b"\n" + data)
        return int(self.line())

    def put(self, name: str, data: bytes, limit: int = 0) -> bool:
        return bool(self.ask(f"put {self._names.index(name)} {len(data)} {limit}", data))

    @property
    def failing(self) -> bool:
        return bool(self.ask("failing"))

    def facts(self) -> dict[str, Any]:
        self.tell(b"facts\n")
        facts = json.loads(self.line())
        assert isinstance(facts, dict)
        return facts


started = functools.partial(Outlet, early=True)


@contextlib.contextmanager
def full_pipe(size: int = 1 << 16) -> Iterator[tuple[int, int, int]]:
    """Its ends, neither of which waits, and what is in it: it takes nothing."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, size)
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"y" * 4096)
    try:
        yield reader, writer, in_pipe(reader)
    finally:
        os.close(reader)
        os.close(writer)


def drain(reader: int, size: int) -> bytes:
    """So many bytes, when they have come."""
    got = b""

    def read_on() -> bool:
        nonlocal got
        with contextlib.suppress(BlockingIOError):
            got += os.read(reader, 1 << 20)
        return len(got) >= size

    wait_for(read_on)
    return got


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=9000)), max_size=40),
    st.integers(0, 40),
    st.sampled_from(CHECKS),
)
def test_every_file_gets_its_bytes_in_order(
    puts: list[tuple[str, bytes]], start: int, sanitizers: tuple[str, ...]
) -> None:
    expected = dict.fromkeys("abc", b"")
    with memory_files(*"abc") as fds, Outlet(fds, sanitizers=sanitizers) as outlet:
        for at, (name, data) in enumerate(puts):
            if at == start:
                outlet.ask("start")
            assert outlet.put(name, data)
            expected[name] += data
        # What was put last is written, however far away the thread's next look is.
        assert outlet.ask("finish 20") == 0 and outlet.ask("waiting") == 0
        assert {name: content(fd) for name, fd in fds.items()} == expected
        facts = outlet.facts()
        assert not facts["dropped"] and not facts["write_errors"]


@pytest.mark.parametrize("sanitizers", CHECKS)
def test_a_fast_producer_loses_and_doubles_nothing(sanitizers: tuple[str, ...]) -> None:
    count, width = 60_000, 199
    with memory_files("a", "b") as fds, started(fds, sanitizers=sanitizers) as outlet:
        fitted = outlet.ask(f"flood {count} {width} {BOUND}")
        assert outlet.ask("finish 20") == 0
        dropped = outlet.facts()["dropped"]
        found = 0
        for at, name in enumerate("ab"):
            numbers = [int(line) for line in content(fds[name]).splitlines()]
            assert numbers == sorted(set(numbers)) and {n % 2 for n in numbers} == {at}
            lost = count // 2 - len(numbers)
            assert dropped.get(name, [0, 0]) == [lost, lost * (width + 1)]
            found += len(numbers)
        assert found == fitted > BOUND // (width + 1)


def test_the_thread_is_woken_once_when_much_waits() -> None:
    with full_pipe() as (reader, writer, full), started({"f": writer}) as outlet:
        os.set_blocking(writer, True)
        full -= len(os.read(reader, 4096))  # room for one piece
        assert outlet.put("f", b"x" * 8000)
        # It stands in the write of the second one.
        wait_for(lambda: 0 < outlet.ask("waiting") < 8000)
        waiting = outlet.ask("waiting")
        while waiting < URGENT:
            size = min(1 << 16, URGENT - waiting)
            assert outlet.put("f", b"x" * size)
            waiting += size
        assert outlet.ask("waiting") == URGENT and outlet.ask("posts") == 0
        assert outlet.put("f", b"\n") and outlet.ask("posts") == 1
        assert outlet.put("f", b"x\n") and outlet.ask("posts") == 1
        drain(reader, full + (8000 - 4096) + URGENT)
        wait_for(lambda: outlet.ask("waiting") == 0)
        assert outlet.ask("finish 20") == 0


def test_what_waits_some_seconds_makes_no_page_fault() -> None:
    with (
        full_pipe() as (_reader, writer, _full),
        started({"f": writer}, sanitizers=PLAIN) as outlet,
    ):
        assert outlet.ask("flood 100 100 0") == 100  # all else was done once
        before = [outlet.ask("faults") for _ in range(3)][-1]
        outlet.ask(f"flood {READY // 1024 - 12} 999 0")
        assert outlet.ask("waiting") > READY * 0.9
        assert outlet.ask("faults") == before
        outlet.ask("flood 100 999 0")
        assert outlet.ask("faults") > before


def test_what_is_queued_when_it_fails_is_written() -> None:
    with memory_files("a") as fds:
        with started(fds) as outlet:
            outlet.put("a", b"last words\n")
            outlet.status = 3
            outlet.tell(b"fail\n")
        assert content(fds["a"]) == b"last words\n"


@pytest.mark.parametrize(("limit", "kept"), [(200_000, 200), (0, BOUND // 1000)])
def test_a_full_queue_is_said_aloud(limit: int, kept: int) -> None:
    with full_pipe(1 << 20) as (reader, writer, full), started({"f": writer}) as outlet:
        count = kept + 50
        fitted = [outlet.put("f", b"x" * 999 + b"\n", limit) for _ in range(count)]
        assert fitted == [True] * kept + [False] * 50
        assert outlet.facts()["dropped"] == {"f": [50, 50_000]}
        got = drain(reader, full + kept * 1000)
        assert outlet.ask("finish 20") == 0
        assert got[full:] == (b"x" * 999 + b"\n") * kept


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_a_failing_output_does_not_hold_others_up(order: tuple[str, str]) -> None:
    with open("/dev/full", "wb") as full, memory_files("good") as files:
        fds = {"bad": full.fileno(), **files}
        with started({name: fds[name] for name in order}) as outlet:
            for n in range(3):
                for name in order:
                    assert outlet.put(name, b"%d\n" % n)
                wait_for(functools.partial(written, files["good"], n + 1))
                wait_for(lambda: outlet.failing)
            assert outlet.ask("waiting") == 6
            assert outlet.ask("finish 20") == 6
            assert content(files["good"]) == b"0\n1\n2\n"
            facts = outlet.facts()
            assert facts["dropped"] == {"bad": [3, 6]}
            assert facts["write_errors"] == {"bad": "No space left on device"}


def test_a_reader_that_goes_away_is_known_and_others_go_on() -> None:
    reader, writer = os.pipe()
    with memory_files("good") as fds, started({"gone": writer, **fds}) as outlet:
        outlet.put("gone", b"heard\n")
        assert os.read(reader, 100) == b"heard\n"
        os.close(reader)
        outlet.put("gone", b"not heard\n")
        outlet.put("good", b"1\n")
        wait_for(lambda: "gone" in outlet.facts()["write_errors"])
        outlet.put("gone", b"not heard\n")
        outlet.put("good", b"2\n")
        assert outlet.ask("finish 20") == 0 and not outlet.failing
        assert outlet.facts()["write_errors"] == {"gone": "Broken pipe"}
        assert content(fds["good"]) == b"1\n2\n"
    os.close(writer)


@pytest.mark.parametrize("sanitizers", CHECKS)
def test_what_is_behind_a_write_that_never_returns_is_counted(
    tmp_path: Path, sanitizers: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "stuck")
    reader = os.open(tmp_path / "stuck", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "stuck", os.O_WRONLY)
    line = b"x" * 999 + b"\n"
    with (
        memory_files("good") as fds,
        started({"stuck": writer, **fds}, sanitizers=sanitizers) as outlet,
    ):
        outlet.put("stuck", line * 100)
        wait_for(lambda: outlet.ask("waiting") < 40_000)
        time.sleep(0.1)  # the thread stands in that write
        left = outlet.ask("waiting")
        outlet.put("stuck", line * 3)
        outlet.put("good", line * 2)
        began = time.monotonic()
        assert outlet.ask("finish 0.3") == left + 5000
        assert time.monotonic() - began < 2
        dropped = outlet.facts()["dropped"]
        assert dropped["good"] == [2, 2000]
        assert dropped["stuck"] == [103 - (100_000 - left) // 1000, left + 3000]
        os.set_blocking(reader, True)
        got = b""
        while len(got) < 103_000:
            got += os.read(reader, 1 << 16)
        wait_for(lambda: outlet.ask("waiting") == 0)
        assert got == line * 103
    os.close(reader)
    os.close(writer)
