# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory that a guest's results leave it by: both writers, what the host makes of it."""

import mmap
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import results_memory
from contract.results_memory import (
    LANE_BYTES,
    LANES,
    LINK,
    MEMORY_BYTES,
    PUT,
    RING_BYTES,
    Lane,
    open_appended,
)
from contract.run_record import Events, read_events
from errors import UserError
from tests.monitors.test_outlet import PARTS
from tests.support.observers import Driven, driver
from vm.results_memory import Damaged, ResultsMemory, appending, recover

NAMES = ["events.jsonl", "kern.log", "vmstat.tsv"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    results_memory._lanes.clear()


class Observer(Driven):
    """outlet.c in a guest: a process that writes a lane."""

    def __init__(self, folder: Path, lane: int) -> None:
        super().__init__(driver("outlet_driver", *PARTS, flags=("-Wl,--wrap=sem_post",)))
        self._folder, self._lane = folder, lane

    def ask(self, order: str, data: bytes = b"") -> int:
        self.tell(order.encode() + b"\n" + data)
        return int(self.line())

    def open(self, name: str) -> int:
        return self.ask(f"open {self._lane} {self._folder} {name}")

    def put(self, file: int, data: bytes) -> bool:
        return bool(self.ask(f"put {file} {len(data)} 0", data))


def test_what_each_process_writes_is_in_its_file_in_the_order_of_writing(folder: Path) -> None:
    memory = ResultsMemory(folder, NAMES)
    events = Events(folder / "events.jsonl")
    with Observer(folder, 1) as sampler, Observer(folder, 2) as recorder:
        log, table = sampler.open("kern.log"), sampler.open("vmstat.tsv")
        mixed = recorder.open("events.jsonl")
        for number in range(100):
            events.write("note", number=2 * number)
            assert recorder.put(mixed, b'{"event": "note", "number": %d}\n' % (2 * number + 1))
            assert sampler.put(log, b"record %d\n" % number)
            assert sampler.put(table, b"%d\t0.1\n" % number)
            if number % 7 == 0:
                memory.take()
        assert sampler.ask("finish 0") == 0
        memory.close()
    told = [event["number"] for event in read_events(folder / "events.jsonl")]
    assert told == list(range(200))
    expected = b"".join(b"record %d\n" % number for number in range(100))
    assert (folder / "kern.log").read_bytes() == expected
    assert (folder / "vmstat.tsv").read_text().splitlines()[-1] == "99\t0.1"
    assert not (folder / LINK).exists()


def test_no_thread_no_file_and_no_queue_is_made_for_it(folder: Path) -> None:
    memory = ResultsMemory(folder, NAMES)
    with Observer(folder, 1) as sampler:
        file = sampler.open("kern.log")
        sampler.ask("start")
        assert len(list(Path(f"/proc/{sampler._child.pid}/task").iterdir())) == 1
        assert sampler.put(file, b"x\n")
        assert sampler.ask("posts") == 0
        assert sampler.ask("waiting") > 0
        memory.take(last=True)
        assert sampler.ask("waiting") == 0
    memory.close()
    assert {path.name for path in folder.iterdir()} == {"kern.log"}


def test_a_ring_that_nobody_empties_drops_whole_lines_and_counts_them(folder: Path) -> None:
    memory = ResultsMemory(folder, NAMES)
    line = b"y" * 99_999 + b"\n"
    with Observer(folder, 3) as evidence:
        file = evidence.open("kern.log")
        fitted = [evidence.put(file, line) for _ in range(50)]
        assert fitted == [True] * 41 + [False] * 9  # of 100,000 bytes in 4 MiB
        memory.take(last=True)
        assert evidence.put(file, line)  # there is room again, across the ring's end
        memory.close()
        evidence.tell(b"facts\n")
        assert '"kern.log": [9, 900000]' in evidence.line()
    assert (folder / "kern.log").read_bytes() == line * 42


@given(st.lists(st.binary(min_size=1, max_size=200_000), max_size=60))
@settings(max_examples=20, deadline=None)
def test_any_bytes_come_through_whole(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with appending(folder, ["runs.tar"]):  # it empties the ring while a writer waits for room
        sent = open_appended(folder / "runs.tar")
        for piece in pieces:
            assert sent.write(piece) == len(piece)
        sent.close()
    assert (folder / "runs.tar").read_bytes() == b"".join(pieces)


def test_a_disk_that_is_full_loses_nothing_that_the_ring_holds(folder: Path) -> None:
    memory = ResultsMemory(folder, NAMES)
    lane = Lane(memory.path)
    log, table = lane.add("kern.log"), lane.add("vmstat.tsv")
    lane.put(table, b"1\n")
    lane.put(log, b"z" * 50_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            memory.take(last=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(folder / name).stat().st_size for name in ("kern.log", "vmstat.tsv")] == [0, 0]
    memory.close()
    assert (folder / "kern.log").read_bytes() == b"z" * 50_000
    assert (folder / "vmstat.tsv").read_bytes() == b"1\n"


def test_what_a_killed_runner_left_is_recovered(folder: Path) -> None:
    memory = ResultsMemory(folder, NAMES)
    for name in NAMES:
        (folder / name).touch()
    (folder / "console.log").write_text("booted\n")
    lane = Lane(memory.path)
    file = lane.add("kern.log")
    lane.put(file, b"taken\n")
    memory.take(last=True)
    lane.put(file, b"left\n")
    recover(folder)  # its runner holds it: not ours
    assert (folder / "kern.log").read_bytes() == b"taken\n"
    # As the kernel does for a process that was killed.
    memory._counters.release()
    memory._memory.close()
    os.close(memory._file)
    recover(folder)
    assert (folder / "kern.log").read_bytes() == b"taken\nleft\n"
    assert not (folder / LINK).exists()
    recover(folder)


@pytest.mark.parametrize("name", ["../kern.log", "meta.json", "", "k" * 63])
def test_a_guest_names_no_other_file(folder: Path, name: str) -> None:
    with pytest.raises(UserError, match="damaged: a file"), appending(folder, NAMES) as memory:
        lane = Lane(memory.path)
        lane.put(lane.add(name), b"evil")
    assert {path.name for path in folder.iterdir()} == {*NAMES, LINK}


@given(
    st.binary(min_size=64, max_size=512),
    st.integers(0, 2**64 - 1) | st.integers(0, 4096) | st.integers(0, RING_BYTES),
)
@settings(max_examples=200, deadline=None)
def test_a_guest_that_writes_anything_is_named(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, put: int
) -> None:
    folder = tmp_path_factory.mktemp("run")
    memory = ResultsMemory(folder, NAMES)
    with open(memory.path, "r+b") as file, mmap.mmap(file.fileno(), MEMORY_BYTES) as wild:
        for number in range(len(LANES)):
            start = number * LANE_BYTES
            wild[start + 4096 : start + 4096 + len(data)] = data
            wild[start + PUT : start + PUT + 8] = put.to_bytes(8, "little")
    try:
        memory.take(last=True)
    except Damaged as error:
        assert str(error)
    else:
        assert put == 0
