# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay accounting as four kernels told it, beside what /proc said of the same stopped task."""

import itertools
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.evidence.taskstats import (
    KNOWN,
    NAMES,
    SIZES,
    Layout,
    Reading,
    Taskstats,
    TaskstatsError,
    layout_of,
    statistics,
)
from tests.support.kernel_logs import state_of, wait_for

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "taskstats"
VERSIONS = {"5.10": 10, "6.1": 13, "6.12": 14, "7.2": 17}
TICK_NS = 10_000_000  # of /proc/PID/stat: USER_HZ is 100


def golden(kernel: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"{kernel}.json").read_text())
    return found


def stats_of(message: bytes) -> bytes:
    begin, end = statistics(message)
    return message[begin:end]


@pytest.mark.parametrize("kernel", VERSIONS)
def test_a_stopped_tasks_accounts_are_those_of_proc(kernel: str) -> None:
    found = golden(kernel)
    assert found["release"].startswith(f"{kernel}.")
    # The task stood still while /proc was read: only its age grew (ac_etime, ac_tgetime).
    stats, again = stats_of(bytes.fromhex(found["reply"])), stats_of(bytes.fromhex(found["again"]))
    layout = layout_of(stats)
    assert struct.unpack_from("=H", stats)[0] == VERSIONS[kernel]
    assert layout.known
    one = Reading(stats, layout)
    assert one.ns == Reading(again, layout).ns
    ns = dict(zip(layout.names, one.ns, strict=True))
    cpu, rq, _slices = map(int, found["proc"]["schedstat"].split())
    assert (ns["cpu"], ns["rq"]) == (cpu, rq) and cpu > 0
    head, _, rest = found["proc"]["stat"].rpartition(") ")
    fields = rest.split()
    assert one.comm.decode() == head.partition("(")[2] == "a (b) c"
    assert (one.pid, one.ppid) == (found["pid"], int(fields[1])) == (found["pid"], found["parent"])
    assert (one.minflt, one.majflt) == (int(fields[7]), int(fields[9]))
    assert one.minflt > 2000  # 8 MiB, a page each
    assert fields[0] == "T"
    # It read from a disk, and nothing was swapped: field 42 is its block delay in clock ticks.
    assert ns["blkio"] > 0 == ns["swapin"]
    assert ns["blkio"] // TICK_NS == int(fields[39])
    known = {"cpu", "rq", "blkio", "swapin", "freepages", "thrashing"}
    more = {10: set(), 13: {"compact", "wpcopy"}, 14: {"compact", "wpcopy", "irq"}}
    assert set(ns) == known | more.get(VERSIONS[kernel], {"compact", "wpcopy", "irq"})


@given(st.binary(max_size=900))
def test_no_answer_breaks_the_decoder(data: bytes) -> None:
    try:
        stats = stats_of(data)
        Reading(stats, layout_of(stats))
    except TaskstatsError:
        pass


@given(st.binary(max_size=800), st.integers(0, 40))
def test_no_structure_breaks_the_decoder(data: bytes, version: int) -> None:
    stats = struct.pack("=H", version) + data
    try:
        found = Reading(stats, layout_of(stats))
    except TaskstatsError:
        return
    assert len(found.ns) >= 4


@given(cut=st.integers(0, 2000), at=st.integers(0, 2000), byte=st.integers(0, 255))
@pytest.mark.parametrize("kernel", VERSIONS)
def test_a_damaged_answer_raises_the_decoders_own_error(
    kernel: str, cut: int, at: int, byte: int
) -> None:
    message = bytearray.fromhex(golden(kernel)["reply"])
    message[at % len(message)] = byte
    try:
        stats = stats_of(bytes(message[:cut]))
        Reading(stats, layout_of(stats))
    except TaskstatsError:
        pass


def test_layouts_do_not_overlap() -> None:
    for version in KNOWN:
        layout = Layout(version, SIZES[version])
        places = [*layout.offsets.values(), layout.minflt, layout.majflt]
        spans = sorted([(at, at + 8) for at in places] + [(layout.comm, layout.comm + 32)])
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans)), version
        assert spans[-1][1] <= SIZES[version]


def test_version_15_put_two_fields_behind_each_total() -> None:
    # include/uapi/linux/taskstats.h of 6.14: count, total, max, min of each.
    before, moved = Layout(14, SIZES[14]), Layout(15, SIZES[15])
    order = sorted(NAMES, key=lambda name: before.offsets[name])
    delays = [name for name in order if name != "cpu"]
    for number, name in enumerate(delays):
        assert moved.offsets[name] == before.offsets[name] + 16 * number
    assert moved.offsets["cpu"] == before.offsets["cpu"] + 48 == 120
    assert moved.comm == before.comm + 48


@pytest.mark.parametrize(("version", "size"), [(18, 900), (14, 560), (9, 344)])
def test_of_an_unknown_layout_only_the_head_is_read(version: int, size: int) -> None:
    layout = Layout(version, size)
    assert not layout.known
    assert layout.names == ["cpu", "rq", "blkio", "swapin"]


@pytest.fixture
def taskstats() -> Taskstats:
    """This machine's own."""
    try:
        return Taskstats()
    except TaskstatsError as error:
        pytest.skip(f"not permitted, or not there, on this machine: {error}")


def test_own_children_many_at_once(taskstats: Taskstats) -> None:
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
        # More than fit into one message, and one among them that is no more.
        asked = [*(pids * 20)[:40], gone.pid, *pids]
        answers = taskstats.read(asked)
        assert len(answers) == len(asked)
        assert answers[40] is None
        for pid, answer in zip(asked, answers, strict=True):
            if pid != gone.pid:
                assert answer is not None
                *micros, nothing = answer.split(b"\t")
                assert len(micros) == len(taskstats.names) and not nothing
                ns = map(int, Path(f"/proc/{pid}/schedstat").read_text().split()[:2])
                # They wait for a line: nothing changes any more.
                assert list(map(int, micros[:2])) == [each // 1000 for each in ns]
    finally:
        for child in children:
            child.communicate(b"\n")
        taskstats.close()


def test_what_it_costs_is_little(taskstats: Taskstats) -> None:
    pids = [os.getpid()] * 20
    taskstats.read(pids)
    before = sys.getallocatedblocks()
    for _ in range(50):
        taskstats.read(pids)
    assert sys.getallocatedblocks() - before < 200
    taskstats.close()
