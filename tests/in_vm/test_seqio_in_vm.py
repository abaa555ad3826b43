# SPDX-License-Identifier: GPL-2.0-or-later
"""seqio and mixed in a guest: a known load on a RAID, and what their tables make of it.

The oldest kernel, which waits for congestion, with dirty limits so high and disks so slow that it
does; on the newest one the desktop beside a copy. SEQIO_KERNELS="debian:6.1" tries others, which
need not wait.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.workload_tables import of_run
from analysis.reading.load import Run, load_campaign
from contract.run_files import more_disks
from contract.run_record import read_events
from graphs.report import make_report
from run.arguments import parse
from tests.support.kernel_parameters import kernels
from tests.support.vms import guest, one_small_run, run_in_vm

RUN_S = 1800  # beside other work, and with a guest image to make first
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
KERNELS = kernels("SEQIO_KERNELS", more=("debian:5.10",))
TOTAL, PROCESSES = 160, 4  # MiB
THROTTLED = [
    *("--profile", "quick", "--accel", "tcg", "--clock", "guest", "--workload", "seqio"),
    *("--load", f"total={TOTAL}M,least={PROCESSES},most={PROCESSES}", "--disk-bps", "8M"),
    *("--knob", "/proc/sys/vm/dirty_ratio=90", "--knob", "/proc/sys/vm/dirty_background_ratio=80"),
]
PROGRAM = "python3 /suite/tests/guest/waits_run.py"
MODES = ("write", "rewrite", "read", "reread")
RATE = 8  # MiB/s
MIB = 1 << 20


def loaded(campaign: Path) -> Run:
    """Its only run, with which nothing is wrong."""
    (run,) = load_campaign(campaign).runs
    console = (run.path / "console.log").read_text(errors="replace")
    assert run.state == "completed" and "BUG:" not in console and "WARNING:" not in console
    assert {one["name"]: one["major_faults"] for one in run.meta["observers"]} == dict.fromkeys(
        ("recorder", "sampler", "evidence", "keys"), 0
    )
    return run


@pytest.fixture(scope="module", params=KERNELS)
def seqio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    argv = [*THROTTLED, "--kernel", request.param]
    out = tmp_path_factory.mktemp("seqio")
    run_in_vm(out / "one" / "1", parse(argv), ready=guest(*argv), label="one", program=PROGRAM)
    make_report(load_campaign(out), out / "report")
    return loaded(out)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("mixed") / "out"
    more = ["--commits", "24000", "--gitk", "2"]
    load = f"total=64M,rate={RATE}M"
    return loaded(one_small_run(out, "debian:7.3", "mixed", load, *more, within_s=RUN_S))


def figures(run: Run) -> dict[str, float]:
    return of_run(run, run.workload.tables)


def grown(run: Run, *names: str) -> int:
    """By how much these columns of trace.tsv grew in the whole run."""
    header, first, *_, last = (run.path / "trace.tsv").read_text().splitlines()
    rows = [dict(zip(header.split("\t"), row.split("\t"), strict=True)) for row in (first, last)]
    return sum(int(rows[1][name]) - int(rows[0][name]) for name in names if name in rows[0])


def written(run: Run) -> list[float]:
    """MiB that each disk of the array wrote while it was watched."""
    found: list[float] = []
    for number in range(1, 5):
        column = run.column("diskstats", f"data-{number}_write_sectors")
        assert column is not None
        found.append(float(column[1][-1] - column[1][0]) / 2048)
    return found


def test_what_was_written_and_read_is_in_the_tables(seqio: Run) -> None:
    found = figures(seqio)
    for mode in MODES:
        seconds = seqio.figures[f"seconds-{mode}-{PROCESSES}"]
        assert found[f"rate-{mode}-{PROCESSES}"] * seconds == pytest.approx(TOTAL * 1.048576)
        mib = found[f"mib-{mode}-{PROCESSES}"]
        if "write" in mode:
            # Data, and little else: inodes, indirect blocks.
            assert TOTAL <= mib < 1.03 * TOTAL
        else:
            # Some was still in memory, and some was read ahead and dropped before it was used.
            assert 0.8 * TOTAL < mib < 1.2 * TOTAL
    assert seqio.figures["time"] == pytest.approx(
        sum(seqio.figures[f"seconds-{mode}-{PROCESSES}"] for mode in MODES)
    )


def test_the_array_spreads_it_over_its_disks(seqio: Run) -> None:
    assert seqio.fact("disk", "more") == 4
    each = written(seqio)
    assert 2 * TOTAL <= sum(each) < 2.2 * TOTAL
    assert max(each) < 1.3 * min(each)


def counted(run: Run, name: str, *disks: str) -> float:
    """By how much these disks' column of /proc/diskstats grew together."""
    columns = [run.column("diskstats", f"{disk}_{name}") for disk in disks]
    return sum(float(one[1][-1] - one[1][0]) for one in columns if one)


def tells_its_disks(run: Run, rate: float) -> None:
    """By their requests, which /proc/diskstats counts too; rate: bytes a second of each disk."""
    own = more_disks(4)
    for way in ("reads", "writes"):
        for prefix, disks in (("data", own), ("disk", ["disk"])):
            requests = counted(run, way, *disks)
            assert grown(run, f"{prefix}_{way}") == pytest.approx(requests, rel=0.05, abs=4)
    sectors = counted(run, "read_sectors", *own) + counted(run, "write_sectors", *own)
    elapsed = json.loads((run.path / "status.json").read_text())["elapsed_s"]
    busy = grown(run, "data_busy_us") / 1e6
    assert 0 < sectors * 512 / (4 * rate) <= 1.02 * busy and busy <= elapsed


def test_how_busy_its_disks_were_is_told(seqio: Run) -> None:
    tells_its_disks(seqio, 8 * MIB)


def test_how_busy_the_disks_of_the_copy_were_is_told(mixed: Run) -> None:
    tells_its_disks(mixed, 58_000_000)


def test_figures_of_the_trace_are_its_sums(seqio: Run) -> None:
    found = figures(seqio)
    assert found["pg-rclm-io"] == grown(seqio, "direct_reclaim_pages") > 0
    waits = ["congestion_wait_n", "wait_iff_congested_n"]
    waits += [
        f"throttled_{reason}_n" for reason in ("writeback", "isolated", "noprogress", "congested")
    ]
    assert found["pg-stall-io"] == grown(seqio, *waits)
    assert found["ksd-stall-io"] == grown(seqio, *(f"kswapd_{name}" for name in waits))
    spans = [f"{way}-{PROCESSES}" for way in ("write", "read")]
    # Nobody else reclaims so much: all of it is in one of the spans, or between them.
    reclaims = sum(found[f"reclaims-{where}"] for where in spans)
    assert 0 < reclaims <= grown(seqio, "direct_reclaims") <= reclaims / 0.9
    assert found["pg-rclm-setup"] <= found["pg-rclm-io"]
    for where in spans:
        assert found[f"slow-{where}"] <= found[f"waits-{where}"]
        assert found[f"progress-{where}"] <= found[f"failed-{where}"] <= found[f"reclaims-{where}"]


def test_waits_are_those_that_the_kernel_notes(seqio: Run) -> None:
    """Known by another way: its own trace's text, of the same time."""
    (found,) = (one for one in read_events(seqio.path / "events.jsonl") if one["event"] == "waits")
    assert len(found["each"]) == found["noted"]
    stamped = (seqio.path / "trace.tsv").read_text().splitlines()
    t0 = seqio.meta["t0"]
    began, ended = (t0 + float(stamped[place].split("\t")[0]) for place in (1, -1))
    noted = [one for one in found["each"] if began < one[0] <= ended]
    tasks = [us for _, kswapd, us in noted if not kswapd]
    kswapds = [us for _, kswapd, us in noted if kswapd]
    told = figures(seqio)
    assert told["pg-stall-io"] == len(tasks)
    assert told["ksd-stall-io"] == len(kswapds)
    assert told["pg-wait-io"] == pytest.approx(sum(tasks) / 1000)
    assert told["ksd-wait-io"] == pytest.approx(sum(kswapds) / 1000)
    if "wait_iff_congested_n" not in stamped[0].split("\t"):
        return
    # Where congestion is waited for: amid the writes, and nearly all by the allocator itself. In a
    # run in which kswapd alone waited, no task shows where.
    assert sum(tasks) + sum(kswapds) > 0
    if not tasks:
        return
    where = f"write-{PROCESSES}"
    assert 0 < told[f"waits-{where}"] <= len(noted)
    assert 0.9 * len(tasks) <= told[f"slow-{where}"] <= len(tasks)
    share = told[f"slow-{where}"] / told[f"waits-{where}"]
    assert told[f"slow-share-{where}"] == pytest.approx(100 * share)


def test_the_tables_are_in_the_summary(seqio: Run) -> None:
    said = (seqio.path.parents[1] / "report" / "summary.txt").read_text()
    for table in seqio.workload.tables:
        assert f"{table.title}:" in " ".join(said.split())
    _, _, below = said.partition(f"MB/s of {TOTAL} MiB, by processes:")
    rates = next(line for line in below.splitlines() if line.startswith(f"{PROCESSES} ")).split()
    assert [float(rate) for rate in rates[1:]] == pytest.approx(
        [seqio.figures[f"rate-{mode}-4"] for mode in ("write", "rewrite", "read", "reread")],
        rel=0.006,  # three digits
    )


def test_each_stream_prints_while_it_works(seqio: Run) -> None:
    status: dict[str, Any] = json.loads((seqio.path / "status.json").read_text())
    beats = (seqio.path / "latency-heartbeat.log").read_text().count(" beat ")
    assert beats == pytest.approx(10 * status["elapsed_s"], rel=0.1)
    said = (seqio.path / "latency-io.log").read_text()
    assert "the file system is made" in said and said.count(" done after ") == len(MODES)
    assert f"reread, {PROCESSES}: " in said


def test_the_desktop_beside_a_copy(mixed: Run) -> None:
    assert [stream.name for stream in mixed.subjects] == ["gitk-1", "gitk-2"]
    found = figures(mixed)
    assert 0 < found["rate-written"] < 1.1 * RATE * 1.048576
    assert 0 < found["mib-written"] <= sum(written(mixed))
    assert found["pg-rclm-all"] == grown(mixed, "direct_reclaim_pages")
