# SPDX-License-Identifier: GPL-2.0-or-later
"""The sums of monitors/trace against the kernel's own counters, in a guest.

5.10 is the oldest one, and alone in some ways (congestion_wait, no compare-and-exchange, a bio
that names its disk), 7.3 the newest. TRACE_KERNELS="debian:6.1 debian:7.2" tries others.
"""

import re
from typing import Any

import pytest

from contract.run_record import read_events
from run.arguments import parse
from tests.guest.tracing_check import FAILING_WRITES, MANY, READS
from tests.support.kernel_parameters import kernels
from tests.support.vms import OWN_CLOCK, guest, run_in_vm

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]
KERNELS = kernels("TRACE_KERNELS", "debian:7.3", more=("debian:5.10",))
NOWARN, MAY_RECLAIM, NO_RETRY = 0x2000, 0x400, 0x10000

Facts = dict[str, Any]


@pytest.fixture(scope="module", params=KERNELS)
def events(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Facts]:
    """What tests/guest/tracing_check.py said on this kernel."""
    # Of a disk that takes its time: 5.10 counts busy time in whole ticks.
    argv = [*OWN_CLOCK, "--machine", "laptop", "--kernel", request.param]
    folder = tmp_path_factory.mktemp("tracing")
    program = "python3 /suite/tests/guest/tracing_check.py"
    state, why = run_in_vm(folder, parse(argv), ready=guest(*argv), program=program)
    console = (folder / "console.log").read_text(errors="replace")
    assert state == "completed", f"{why}\n{console[-3000:]}"
    assert "BUG:" not in console and "WARNING:" not in console, console[-3000:]
    return read_events(folder / "events.jsonl")


@pytest.fixture
def trace(events: list[Facts]) -> Facts:
    """What was attached."""
    return next(event for event in events if event["event"] == "trace")


class Part:
    """What one piece of work added to the sums and to the kernel's counters."""

    def __init__(self, events: list[Facts], name: str) -> None:
        self.facts = next(e for e in events if e["event"] == "part" and e["name"] == name)
        self.us = 1e6 * self.facts["s"]

    def sum(self, name: str) -> int:
        return int(self.facts["trace"].get(name, 0))

    def kernel(self, name: str) -> int:
        return int(self.facts["kernel"].get(name, 0))


def test_what_this_kernel_offers(trace: Facts) -> None:
    columns = set(trace["columns"])
    assert len(columns) == len(trace["columns"])
    assert {"direct_reclaims", "kswapd_awake_us", "crypt_alone_us", "alloc_failures"} <= columns
    assert {"reclaims_progress_without_page", "slow_path_waits_us"} <= columns
    # One of the two generations of waits, and what is missing is said.
    old, new = "congestion_wait_us" in columns, "throttled_noprogress_us" in columns
    assert old != new
    missing = {name for name in trace["not_available"] if "/" in name}
    assert len(missing) == (1 if old else 2), missing
    assert trace["gfp_flags"]["__GFP_NOWARN"] == NOWARN
    # As trace.bpf.c has them.
    assert trace["gfp_flags"]["__GFP_DIRECT_RECLAIM"] == MAY_RECLAIM
    assert trace["gfp_flags"]["__GFP_NORETRY"] == NO_RETRY


def test_a_kernel_whose_types_are_not_known(events: list[Facts]) -> None:
    found = next(event for event in events if event["event"] == "no_types")
    assert found["columns"] == found["problems"] == []
    assert [line for line in found["not_available"] if "CONFIG_DEBUG_INFO_BTF" in line]


def test_reads_of_a_known_number(events: list[Facts]) -> None:
    disk, crypt = Part(events, "disk"), Part(events, "crypt")
    assert disk.sum("disk_reads") == disk.kernel("disk_reads") == READS
    assert disk.sum("crypt_reads") == disk.sum("crypt_busy_us") == 0
    for prefix in ("disk", "crypt"):
        assert crypt.sum(f"{prefix}_reads") == crypt.kernel(f"{prefix}_reads") == READS
    # One at a time: busy is the sum of the spans, up to a µs for each.
    for part, prefix in ((disk, "disk"), (crypt, "disk"), (crypt, "crypt")):
        busy, spans = part.sum(f"{prefix}_busy_us"), part.sum(f"{prefix}_read_us")
        assert abs(busy - spans) <= READS
        assert 0 < busy < part.us
    # The crypt device waits for the disk, and then works alone.
    alone = crypt.sum("crypt_busy_us") - crypt.sum("disk_busy_us")
    assert 0 < crypt.sum("crypt_alone_us") <= alone + READS


def test_writes(events: list[Facts]) -> None:
    part = Part(events, "writes")
    for prefix in ("disk", "crypt"):
        assert part.sum(f"{prefix}_writes") >= READS
        assert part.sum(f"{prefix}_writes") == pytest.approx(
            part.kernel(f"{prefix}_writes"), rel=0.1
        )


def test_compaction_that_was_asked_for(events: list[Facts]) -> None:
    part = Part(events, "compaction")
    assert part.sum("compactions") >= 1
    assert part.sum("compaction_us") > 0


def test_a_control_group_at_its_limit(events: list[Facts]) -> None:
    part = Part(events, "memcg")
    assert part.sum("memcg_reclaims") >= 1
    # 36 MiB were touched where 32 may be.
    assert part.sum("memcg_reclaim_pages") >= (2 << 20) >> 12
    assert part.sum("memcg_reclaim_us") > 0


def test_reclaim_is_what_the_kernel_counts(events: list[Facts]) -> None:
    part = Part(events, "pressure")
    assert part.facts["status"] == [0, 0]
    stalls = sum(v for name, v in part.facts["kernel"].items() if name.startswith("allocstall"))
    reclaims = part.sum("direct_reclaims")
    assert stalls > 0
    # try_to_free_pages may go round again, and is then counted twice by the kernel.
    assert 0.9 * stalls <= reclaims <= stalls + 2
    # What slab shrinkers free is reclaimed, too, and not stolen from a list.
    stolen, pages = part.kernel("pgsteal_direct"), part.sum("direct_reclaim_pages")
    assert 0.8 * stolen <= pages <= 2 * stolen + 1000
    assert part.sum("direct_reclaim_none") <= reclaims
    assert part.sum("direct_reclaim_us") > 0
    assert part.sum("kswapd_wakes") >= 1
    assert 0 < part.sum("kswapd_awake_us") <= 1.01 * part.us


def test_reclaims_that_brought_no_page(events: list[Facts]) -> None:
    for name in ("pressure", "failures"):
        part = Part(events, name)
        without = part.sum("reclaims_without_page")
        assert part.sum("reclaims_progress_without_page") <= without
        assert without <= part.sum("direct_reclaims")
    # No page of that order is left at the end of each write, whatever was reclaimed for it.
    assert part.sum("direct_reclaims") and without >= 1


def test_waits_in_the_slow_path_are_among_all(events: list[Facts]) -> None:
    part = Part(events, "pressure")
    waits = {
        name: value
        for name, value in part.facts["trace"].items()
        if re.match(r"(throttled_|congestion_wait_|wait_iff_congested_)", name)
    }
    for what in ("n", "us"):
        all_of_them = sum(value for name, value in waits.items() if name.endswith(f"_{what}"))
        assert part.sum(f"slow_path_waits_{what}") <= all_of_them


def test_who_reclaimed(events: list[Facts]) -> None:
    part = Part(events, "pressure")
    rows = next(event["rows"] for event in events if event["event"] == "reclaimers")
    assert sum(row[2] for row in rows) >= part.sum("direct_reclaims")
    assert sum(row[4] for row in rows) >= part.sum("direct_reclaim_pages")
    assert "python3" in [row[1] for row in rows]
    assert all(row[0] > 0 for row in rows)


@pytest.mark.parametrize("prefix", ["disk", "crypt"])
def test_block_io_is_what_the_kernel_counts(events: list[Facts], prefix: str) -> None:
    part = Part(events, "pressure")
    for what in ("reads", "writes"):
        # /proc/diskstats counts the parts of a bio that dm splits.
        seen, counted = part.sum(f"{prefix}_{what}"), part.kernel(f"{prefix}_{what}")
        assert 0.9 * counted - 20 <= seen <= 1.02 * counted + 20, what
    assert part.kernel(f"{prefix}_writes") > 100
    busy = part.sum(f"{prefix}_busy_us")
    assert 0 < busy <= 1.01 * part.us
    # io_ms counts in ticks, and a whole one for each request of a disk that is not always busy.
    assert busy <= 2000 * part.kernel(f"{prefix}_io_ms") + 100_000
    assert busy >= 300 * part.kernel(f"{prefix}_io_ms") - 100_000
    if prefix == "crypt":
        assert 0 < part.sum("crypt_alone_us") <= busy


def test_failed_allocations(events: list[Facts]) -> None:
    part = Part(events, "failures")
    rows = part.facts["rows"]
    huge = [row for row in rows if any("hugepages" in name for name in row["stack"])]
    # The kernel counts these, too; each write asks until it gets no more.
    failed = part.kernel("htlb_buddy_alloc_fail")
    assert sum(row["count"] for row in huge) == failed >= FAILING_WRITES
    # Others may fail to get memory before and after the rows are read.
    assert abs(part.sum("alloc_failures") - sum(row["count"] for row in rows)) <= 5
    silent = sum(row["count"] for row in rows if row["gfp"] & NOWARN)
    assert part.sum("alloc_failures") + 5 >= silent + part.facts["logged"]
    for row in huge:
        assert (row["comm"], row["order"]) == ("python3", 9)
        assert row["gfp"] & NOWARN
        assert not row["stack"][0].startswith(("warn_alloc", "0x"))


def test_many_kinds_of_failures_between_two_looks(events: list[Facts]) -> None:
    part = Part(events, "many")
    rows = part.facts["rows"]
    children = dict(part.facts["children"])
    assert len(children) == MANY and set(children.values()) == {0}
    assert set(children) <= {row["pid"] for row in rows}
    assert abs(part.sum("alloc_failures") - sum(row["count"] for row in rows)) <= 5
    assert (part.facts["many"], part.facts["many_left"]) == (["1"], ["0"])


def test_what_it_costs(events: list[Facts]) -> None:
    cost = next(event for event in events if event["event"] == "cost")
    kib = sum(int(fd["memlock"]) for fd in cost["fds"].values()) / 1024
    assert kib < 1024
    problems = next(event for event in events if event["event"] == "problems")
    assert problems["problems"] == []
