# SPDX-License-Identifier: GPL-2.0-or-later
"""seqio and mixed in a guest: a known load on a RAID, and what their tables make of it.

The oldest kernel, which waits for congestion; on the newest one the desktop beside a copy. What its
throttles come to is in test_tracing_in_vm.py; SEQIO_KERNELS="debian:6.12 debian:7.3" tries others.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.workload_tables import of_run
from analysis.reading.load import Run, load_campaign
from tests.support.vms import one_small_run

RUN_S = 1800  # beside other work, and with a guest image to make first
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
KERNELS = os.environ.get("SEQIO_KERNELS", "debian:5.10").split()
TOTAL, PROCESSES = 192, 4  # MiB
MODES = ("write", "rewrite", "read", "reread")
RATE = 8  # MiB/s


def one_run(out: Path, kernel: str, workload: str, load: str, *more: str) -> Run:
    """A campaign of one small run."""
    (run,) = load_campaign(one_small_run(out, kernel, workload, load, *more, within_s=RUN_S)).runs
    console = (run.path / "console.log").read_text(errors="replace")
    assert run.state == "completed" and "BUG:" not in console and "WARNING:" not in console
    assert {one["name"]: one["major_faults"] for one in run.meta["observers"]} == dict.fromkeys(
        ("recorder", "sampler", "evidence"), 0
    )
    return run


@pytest.fixture(scope="module", params=KERNELS)
def seqio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    load = f"total={TOTAL}M,least={PROCESSES},most={PROCESSES}"
    out = tmp_path_factory.mktemp("seqio") / "out"
    return one_run(out, request.param, "seqio", load)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("mixed") / "out"
    more = ["--commits", "24000", "--gitk", "2"]
    return one_run(out, "debian:7.3", "mixed", f"total=64M,rate={RATE}M", *more)


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
            assert 0.5 * TOTAL < mib < 1.5 * TOTAL
    assert seqio.figures["time"] == pytest.approx(
        sum(seqio.figures[f"seconds-{mode}-{PROCESSES}"] for mode in MODES)
    )


def test_the_array_spreads_it_over_its_disks(seqio: Run) -> None:
    assert seqio.fact("disk", "more") == 4
    each = written(seqio)
    assert 2 * TOTAL <= sum(each) < 2.2 * TOTAL
    assert max(each) < 1.3 * min(each)


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
    assert 0 < reclaims <= grown(seqio, "direct_reclaims")
    assert found["pg-rclm-setup"] <= found["pg-rclm-io"]
    for where in spans:
        assert found[f"slow-{where}"] <= found[f"waits-{where}"]
        assert found[f"progress-{where}"] <= found[f"failed-{where}"] <= found[f"reclaims-{where}"]


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
