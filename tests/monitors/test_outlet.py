# SPDX-License-Identifier: GPL-2.0-or-later
"""The outlet with known answers: order, ends, outputs that fail, block, recover and go away."""

import array
import contextlib
import fcntl
import functools
import os
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors import outlet as outlet_module
from monitors.outlet import Outlet, open_all
from tests.support.kernel_logs import wait_for

pytestmark = pytest.mark.clock


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


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=9000)), max_size=4),
            st.sampled_from([0.0, 0.0, 0.0, 0.0005, 0.002]),
        ),
        max_size=12,
    ),
    st.sampled_from([0.0002, 0.001, 30.0]),
)
def test_every_file_gets_its_bytes_in_order(
    puts: list[tuple[list[tuple[str, bytes]], float]], batch_s: float
) -> None:
    expected = dict.fromkeys("abc", b"")
    with memory_files(*"abc") as fds:
        outlet = Outlet(fds, batch_s)
        outlet.start(0)
        for pieces, pause in puts:
            assert outlet.put(pieces)
            for name, data in pieces:
                expected[name] += data
            if pause:
                time.sleep(pause)
        # What was put last is written, however far away the thread's next look is.
        assert outlet.finish(20.0) == 0 and outlet.waiting == 0
        assert {name: content(fd) for name, fd in fds.items()} == expected
    assert not outlet.dropped and not outlet.errors and not outlet.gone


def test_a_fast_producer_loses_and_doubles_nothing() -> None:
    with memory_files("a", "b") as fds:
        outlet = Outlet(fds, batch_s=0.0001)
        outlet.start(0)
        fitted = []
        for n in range(60_000):
            if outlet.put([("ab"[n % 2], b"%d\n" % n)], 20_000):
                fitted.append(n)
            elif n % 7 == 0:
                time.sleep(0.0002)
        assert outlet.finish(20.0) == 0
        for at, name in enumerate("ab"):
            expected = [n for n in fitted if n % 2 == at]
            assert [int(line) for line in content(fds[name]).splitlines()] == expected
            lost = set(range(at, 60_000, 2)) - set(expected)
            size = sum(len(b"%d\n" % n) for n in lost)
            assert outlet.dropped.get(name, [0, 0]) == [len(lost), size]
        assert len(fitted) > 1000


def test_a_full_queue_is_said_aloud(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "f")
    reader = os.open(tmp_path / "f", os.O_RDONLY | os.O_NONBLOCK)
    outlet = Outlet(open_all(str(tmp_path), ["f"]))
    outlet.start(0)
    fitted = [outlet.put([("f", b"x" * 999 + b"\n")], 200_000) for _ in range(400)]
    assert fitted[0] and not fitted[-1]
    assert outlet.dropped == {"f": [fitted.count(False), 1000 * fitted.count(False)]}
    os.set_blocking(reader, True)
    got = 0
    while got < fitted.count(True) * 1000:
        got += len(os.read(reader, 1 << 16))
    assert outlet.finish(20.0) == 0
    os.close(reader)


@pytest.mark.parametrize("order", [("bad", "good"), ("good", "bad")])
def test_a_failing_output_does_not_hold_others_up(
    order: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlet_module, "CLOSE_S", 0.1)
    with open("/dev/full", "wb") as full, memory_files("good") as files:
        fds = {"bad": full.fileno(), **files}
        outlet = Outlet({name: fds[name] for name in order}, batch_s=0.01)
        outlet.start(0)
        for n in range(5):
            assert outlet.put([(name, b"%d\n" % n) for name in order])
            wait_for(functools.partial(written, files["good"], n + 1))
            wait_for(lambda: outlet.failing)
        assert outlet.waiting == 10
        assert outlet.finish(20.0) == 10
        assert content(files["good"]) == b"0\n1\n2\n3\n4\n"
    assert outlet.dropped == {"bad": [5, 10]}
    assert outlet.errors == {"bad": "No space left on device"} and not outlet.gone


def test_an_output_that_recovers_gets_everything_once() -> None:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    outlet = Outlet({"late": writer}, batch_s=0.01)
    outlet.start(0)
    expected = b"".join(b"%07d\n" % n for n in range(30_000))  # more than a pipe holds
    for at in range(0, len(expected), 8000):
        assert outlet.put([("late", expected[at : at + 8000])])
    wait_for(lambda: outlet.failing)
    assert 0 < outlet.waiting < len(expected)
    got = b""

    def read_on() -> bool:
        nonlocal got
        with contextlib.suppress(BlockingIOError):
            got += os.read(reader, 1 << 16)
        return len(got) >= len(expected)

    wait_for(read_on)
    assert outlet.finish(20.0) == 0 and not outlet.dropped
    assert not read_on() or got == expected
    os.close(reader)
    os.close(writer)


def test_a_reader_that_goes_away_is_known_and_others_go_on() -> None:
    reader, writer = os.pipe()
    with memory_files("good") as fds:
        outlet = Outlet({"gone": writer, **fds}, batch_s=0.01)
        outlet.start(0)
        outlet.put([("gone", b"heard\n")])
        assert os.read(reader, 100) == b"heard\n"
        assert not outlet.gone
        os.close(reader)
        outlet.put([("gone", b"not heard\n"), ("good", b"1\n")])
        wait_for(lambda: outlet.gone)
        outlet.put([("gone", b"not heard\n"), ("good", b"2\n")])
        assert outlet.finish(20.0) == 0 and outlet.errors == {"gone": "Broken pipe"}
        assert not outlet.failing and content(fds["good"]) == b"1\n2\n"
    os.close(writer)


def in_pipe(reader: int) -> int:
    """Bytes that a pipe holds."""
    held = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, held)
    return held[0]


def test_what_is_behind_a_write_that_never_returns_is_counted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stuck")
    reader = os.open(tmp_path / "stuck", os.O_RDONLY | os.O_NONBLOCK)
    fds = open_all(str(tmp_path), ["stuck", "good"])
    outlet = Outlet(fds, batch_s=0.01)
    outlet.start(0)
    line = b"x" * 999 + b"\n"
    outlet.put([("stuck", line * 100)])
    wait_for(lambda: in_pipe(reader) >= 1 << 16)  # the thread stands in that write
    outlet.put([("stuck", line * 3), ("good", line * 2)])
    assert outlet.finish(0.3) == 105_000
    assert outlet.dropped == {"stuck": [103, 103_000], "good": [2, 2000]}
    os.set_blocking(reader, True)
    got = b""
    while len(got) < 103_000:
        got += os.read(reader, 1 << 16)
    wait_for(lambda: outlet.waiting == 0)
    assert got == line * 103
    for fd in (reader, *fds.values()):
        os.close(fd)
