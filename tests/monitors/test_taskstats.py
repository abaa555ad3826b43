# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay accounting as four kernels told it, beside what /proc said of the same stopped task."""

import contextlib
import itertools
import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.evidence_parts import Parts, Refused
from tests.support.kernel_logs import state_of, wait_for

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "taskstats"
VERSIONS = {"5.10": 10, "6.1": 13, "6.12": 14, "7.2": 17}
TICK_NS = 10_000_000  # of /proc/PID/stat: USER_HZ is 100
NAMES = ("cpu", "rq", "blkio", "swapin", "freepages", "thrashing", "compact", "wpcopy", "irq")
# Of include/uapi/linux/taskstats.h.
SIZES = {10: 352, 11: 368, 12: 400, 13: 416, 14: 432, 15: 560, 16: 560, 17: 688}


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with Parts() as found:
        yield found


@dataclass(frozen=True)
class Layout:
    """Where everything is; delays: those that it has."""

    known: int
    comm: int
    pid: int
    ppid: int
    delays: dict[str, int]


def layout_of(parts: Parts, version: int, size: int) -> Layout:
    known, comm, pid, ppid, *delays = parts.numbers("layout", version, size)
    names = zip(NAMES, delays, strict=True)
    offsets = {name: at for name, at in names if at}
    return Layout(known, comm, pid, ppid, offsets)


def golden(kernel: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{kernel}.json").read_text())
    return found


def stats_of(parts: Parts, message: bytes) -> bytes:
    begin, end = parts.numbers("find", message)
    assert begin <= end <= len(message)
    return message[begin:end]


def delays_of(stats: bytes, layout: Layout) -> dict[str, int]:
    return {name: struct.unpack_from("=Q", stats, at)[0] for name, at in layout.delays.items()}


@pytest.mark.parametrize("kernel", VERSIONS)
def test_a_stopped_tasks_accounts_are_those_of_proc(parts: Parts, kernel: str) -> None:
    found = golden(kernel)
    assert found["release"].startswith(f"{kernel}.")
    # The task stood still while /proc was read: only its age grew (ac_etime, ac_tgetime).
    reply, again = bytes.fromhex(found["reply"]), bytes.fromhex(found["again"])
    stats = stats_of(parts, reply)
    (version,) = struct.unpack_from("=H", stats)
    assert version == VERSIONS[kernel]
    layout = layout_of(parts, version, len(stats))
    assert layout.known
    ns = delays_of(stats, layout)
    assert ns == delays_of(stats_of(parts, again), layout)
    # As they are told: 0 of what there is not.
    told = [int(us) for us in parts("replay", reply, version).split(",")]
    assert told == [ns.get(name, 0) // 1000 for name in NAMES]
    cpu, rq, _slices = map(int, found["proc"]["schedstat"].split())
    assert (ns["cpu"], ns["rq"]) == (cpu, rq) and cpu > 0
    head, _, rest = found["proc"]["stat"].rpartition(") ")
    fields = rest.split()
    comm = stats[layout.comm : layout.comm + 32].partition(b"\0")[0]
    assert comm.decode() == head.partition("(")[2] == "a (b) c"
    assert struct.unpack_from("=I", stats, layout.pid) == (found["pid"],)
    assert struct.unpack_from("=I", stats, layout.ppid) == (int(fields[1]),) == (found["parent"],)
    line = parts("stat", found["proc"]["stat"].encode())
    assert line == f"{comm.hex()} T {fields[7]} {fields[9]}"
    assert int(fields[7]) > 2000  # 8 MiB, a page each
    assert fields[0] == "T"
    # It read from a disk, and nothing was swapped: field 42 is its block delay in clock ticks.
    assert ns["blkio"] > 0 == ns["swapin"]
    assert ns["blkio"] // TICK_NS == int(fields[39])
    known = {"cpu", "rq", "blkio", "swapin", "freepages", "thrashing"}
    more = {10: set(), 13: {"compact", "wpcopy"}, 14: {"compact", "wpcopy", "irq"}}
    assert set(ns) == known | more.get(VERSIONS[kernel], {"compact", "wpcopy", "irq"})


@given(st.binary(max_size=900))
def test_no_answer_breaks_the_decoder(parts: Parts, data: bytes) -> None:
    with contextlib.suppress(Refused):
        stats_of(parts, data)


@given(st.integers(0, 800), st.integers(0, 40))
def test_no_structure_breaks_the_decoder(parts: Parts, size: int, version: int) -> None:
    try:
        found = layout_of(parts, version, size)
    except Refused as error:
        assert str(error) == f"taskstats: version {version} with {size} bytes only"
        return
    assert len(found.delays) >= 4
    assert max(found.comm + 32, found.ppid + 4, *[at + 8 for at in found.delays.values()]) <= size


@given(cut=st.integers(0, 2000), at=st.integers(0, 2000), byte=st.integers(0, 255))
@pytest.mark.parametrize("kernel", VERSIONS)
def test_a_damaged_answer_is_told(parts: Parts, kernel: str, cut: int, at: int, byte: int) -> None:
    message = bytearray.fromhex(golden(kernel)["reply"])
    message[at % len(message)] = byte
    try:
        stats_of(parts, bytes(message[:cut]))
    except Refused as error:
        assert str(error).startswith("taskstats: ")


def test_an_error_is_told_by_its_name(parts: Parts) -> None:
    answer = struct.pack("=IHHIIi", 36, 2, 0, 1, 0, -3) + bytes(16)
    with pytest.raises(Refused, match=r"^taskstats: No such process$"):
        parts("find", answer)


def test_layouts_do_not_overlap(parts: Parts) -> None:
    for version, size in SIZES.items():
        layout = layout_of(parts, version, size)
        assert layout.known
        spans = [(at, at + 8) for at in layout.delays.values()]
        spans += [(at, at + 4) for at in (layout.pid, layout.ppid)]
        spans = sorted([*spans, (layout.comm, layout.comm + 32)])
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), version
        assert spans[-1][1] <= size


def test_version_15_put_two_fields_behind_each_total(parts: Parts) -> None:
    # include/uapi/linux/taskstats.h of 6.14: count, total, max, min of each.
    before, moved = (layout_of(parts, version, SIZES[version]) for version in (14, 15))
    order = sorted(NAMES, key=lambda name: before.delays[name])
    for number, name in enumerate(name for name in order if name != "cpu"):
        assert moved.delays[name] == before.delays[name] + 16 * number
    assert moved.delays["cpu"] == before.delays["cpu"] + 48 == 120
    assert moved.comm == before.comm + 48


@pytest.mark.parametrize(("version", "size"), [(18, 900), (14, 560), (9, 344)])
def test_of_an_unknown_layout_only_the_head_is_read(parts: Parts, version: int, size: int) -> None:
    layout = layout_of(parts, version, size)
    assert not layout.known
    assert [*layout.delays] == ["cpu", "rq", "blkio", "swapin"]


def test_own_children_many_at_once(parts: Parts) -> None:
    try:
        parts("taskstats")
    except Refused as error:
        pytest.skip(f"not permitted, or not there, on this machine: {error}")
    spin = "t = 0\nfor n in range(300000): t += n\nprint(t, flush=True)\ninput()"
    children = [
        subprocess.Popen([sys.executable, "-S", "-c", spin], stdin=-1, stdout=-1) for _ in range(3)
    ]
    try:
        for child in children:
            assert child.stdout and child.stdout.readline()
        wait_for(lambda: {state_of(child.pid) for child in children} == {"S"})
        pids = [child.pid for child in children]
        gone = subprocess.Popen(["true"])
        gone.wait()
        # As many as there are at once, and one among them that is no more.
        asked = [*(pids * 9), gone.pid, *pids]
        answers = parts("read", *asked).split()
        assert len(answers) == len(asked)
        assert answers[27] == "gone"
        for pid, answer in zip(asked, answers, strict=True):
            if pid != gone.pid:
                ns = map(int, Path(f"/proc/{pid}/schedstat").read_text().split()[:2])
                # They wait for a line: nothing changes any more.
                assert [int(us) for us in answer.split(",")[:2]] == [each // 1000 for each in ns]
                stats = stats_of(parts, bytes.fromhex(parts("ask", pid)))
                (version,) = struct.unpack_from("=H", stats)
                layout = layout_of(parts, version, len(stats))
                assert struct.unpack_from("=I", stats, layout.pid) == (pid,)
    finally:
        for child in children:
            child.communicate(b"\n")
