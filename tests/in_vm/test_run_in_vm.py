# SPDX-License-Identifier: GPL-2.0-or-later
"""The main job on a real kernel: the freeze, and that the figures mean what they say."""

import itertools
import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from run.arguments import parse
from tests.support.vms import command, nothing_left

RUN_S = 900  # within which one run is over, with what it has to make ready first
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
COMMITS = 40000
CONTROL_COMMITS = 20000
OBSERVING_KIB = 8 << 10
CONTROL = ["--commits", str(CONTROL_COMMITS), "--memory", "2G"]


def campaign(out: Path, label: str, *more: str) -> Path:
    """The campaign folder of one quick run, made as a user makes it."""
    argv = ["--profile", "quick", *more, "--label", label, "--out", str(out)]
    with nothing_left(), command(*argv) as process:
        printed, errors = process.communicate(timeout=RUN_S)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "the workload starts" in printed
    assert (out / "report" / "summary.txt").read_text() in printed
    return out


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quick run on the stock kernel."""
    return campaign(tmp_path_factory.mktemp("quick") / "out", "stock", "--commits", str(COMMITS))


@pytest.fixture(scope="module")
def control(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same kernel and programs, with memory to spare."""
    return campaign(tmp_path_factory.mktemp("control") / "out", "control", *CONTROL)


def lines(run: Path, stream: str) -> list[tuple[int, int, str]]:
    """(elapsed ms, gap ms, text) of each line, read without the suite's own reader."""
    text = (run / f"latency-{stream}.log").read_text()
    assert text.endswith("\n")
    found = []
    for line in text.splitlines():
        elapsed, gap, rest = line.split(" ", 2)
        found.append((round(float(elapsed) * 1000), round(float(gap) * 1000), rest))
    return found


def stalls(run: Path, stream: str, least_ms: int = 1000) -> list[int]:
    """The gaps of at least that many ms, the open one at the end included."""
    return [gap for _, gap, _ in lines(run, stream) if gap >= least_ms]


def stalled_ms(run: Path) -> int:
    """What the gitk's stood still in gaps of 1 s or more, added up."""
    return sum(sum(stalls(run, gitk)) for gitk in GITKS)


def table(run: Path, name: str) -> list[dict[str, str]]:
    header, *rows = (run / f"{name}.tsv").read_text().splitlines()
    columns = header.split("\t")
    return [dict(zip(columns, row.split("\t"), strict=True)) for row in rows]


@dataclass(frozen=True)
class Row:
    """A stream's row of summary.txt, in seconds; at: (count, seconds) at 0.1, 1 and 10 s."""

    elapsed: float
    at: list[tuple[str, str]]
    worst: float
    open: float


def summary_rows(summary: str) -> dict[str, Row]:
    """The table of the streams, by its columns (analysis/summary.py)."""
    widths = [12, 8, *[5, 8] * 3, 8, 8]
    ends = list(itertools.accumulate(widths))
    found = {}
    _, _, below = summary.partition(f"\n{'stream':<12}{'elapsed':>8}")
    for row in itertools.takewhile(lambda row: len(row) == ends[-1], below.splitlines()[1:]):
        cells = [row[end - width : end].strip() for width, end in zip(widths, ends, strict=True)]
        at = [(cells[i], cells[i + 1]) for i in (2, 4, 6)]
        found[cells[0]] = Row(float(cells[1]), at, float(cells[8]), float(cells[9]))
    return found


GITKS = ["gitk-1", "gitk-2", "gitk-3", "gitk-4"]
STREAMS = ["heartbeat", "player", *GITKS]
ROUNDED = 0.0501  # s: the summary has one decimal


def test_it_froze(quick: Path) -> None:
    assert max(gap for n in GITKS for _, gap, _ in lines(quick / "stock" / "1", n)) >= 2000


@pytest.mark.timeout(2 * RUN_S + 60)
def test_with_memory_to_spare_it_does_not(quick: Path, control: Path) -> None:
    run = control / "control" / "1"
    assert json.loads((run / "status.json").read_text())["state"] == "completed"
    for gitk in GITKS:
        assert lines(run, gitk)[-2][2] == f"pass 1 commits {CONTROL_COMMITS}"
    # No absolute time: another's load on this machine holds a line up, too.
    assert stalled_ms(run) < stalled_ms(quick / "stock" / "1") / 4
    rows = table(run, "vmstat")
    assert len(rows) > 20
    assert {row["pswpout"] for row in rows} == {"0"}


def test_the_plan_is_what_was_asked_for(quick: Path) -> None:
    plan = tomllib.loads((quick / "plan.toml").read_text())
    (run,) = plan["run"]
    assert (run["variant"], run["number"], run["order"]) == ("stock", 1, 1)
    (variant,) = plan["variant"]
    default = parse(["--profile", "quick", "--commits", str(COMMITS)])
    assert (variant["label"], variant["kernel"]) == ("stock", default.variants[0].kernel)
    parameters = default.parameters
    assert plan["parameters"] == parameters
    assert (quick / "stock" / "config").read_text().count("CONFIG_") > 1000
    meta = json.loads((quick / "stock" / "1" / "meta.json").read_text())
    assert meta["parameters"] == parameters


def test_it_ran_to_its_end(quick: Path) -> None:
    run = quick / "stock" / "1"
    status = json.loads((run / "status.json").read_text())
    assert status["state"] == "completed"
    for n in range(1, 5):
        *_, last, end = lines(run, f"gitk-{n}")
        assert last[2] == f"pass 1 commits {COMMITS}"
        assert end[2] == "[end]"
    meta: dict[str, Any] = json.loads((run / "meta.json").read_text())
    quick_s = parse(["--profile", "quick"])
    assert 0.8 * (quick_s.memory >> 10) < meta["mem_total_kib"] < quick_s.memory >> 10
    assert meta["cpus"] == quick_s.cpus == 1
    assert (meta["clock"]["kind"], meta["machine"]["name"]) == ("guest", "laptop")
    assert meta["crypt"].startswith("aes-xts")
    assert meta["swap"]["size_kib"] > 1 << 20
    assert {o["name"] for o in meta["observers"]} == {"recorder", "sampler", "evidence", "keys"}


def test_keys_are_shown_and_their_observer_costs_little(quick: Path) -> None:
    run = quick / "stock" / "1"
    said = [text.split() for _, _, text in lines(run, "keys")]
    due = [words for words in said if words[0] == "due"]
    shown = [words for words in said if words[0] == "key"]
    # Three together, 11 s after those before.
    assert len(due) >= 6 and {words[2] for words in shown} == {"shell", "editor", "pager"}
    assert {words[1] for words in shown} <= {words[1] for words in due}
    meta: dict[str, Any] = json.loads((run / "meta.json").read_text())
    (keys,) = (one for one in meta["observers"] if one["name"] == "keys")
    assert keys["major_faults"] == 0 and keys["keys"] == len(due)
    assert not any("keys" in problem for problem in meta["observer_problems"])
    assert 0 < meta["observing"]["memory_kib"] <= OBSERVING_KIB
    assert "\nkeys " in (quick / "report" / "summary.txt").read_text()


@pytest.mark.parametrize("stream", STREAMS)
def test_gaps_add_up_to_the_elapsed_time(quick: Path, stream: str) -> None:
    found = lines(quick / "stock" / "1", stream)
    assert len(found) > 10
    # monitors/lines.py: gaps are differences of whole milliseconds, so not one is lost on the way.
    gaps = [gap for _, gap, _ in found]
    assert min(gaps) >= 0
    assert sum(gaps) == found[-1][0]
    assert list(itertools.accumulate(gaps)) == [elapsed for elapsed, _, _ in found]


def test_counters_are_those_of_the_kernel(quick: Path) -> None:
    run = quick / "stock" / "1"
    rows = table(run, "vmstat")
    assert len(rows) > 20
    for name in ("pswpin", "pswpout", "pgpgin", "pgpgout", "pgfault", "pgmajfault"):
        values = [int(row[name]) for row in rows]
        assert values == sorted(values), name
        assert values[-1] > values[0], name
    assert "nr_writeback" in rows[0]
    # Two tables of the same moment agree: swapped-out pages are what the swap device was written.
    disks = table(run, "diskstats")
    written = int(disks[-1]["swap_write_sectors"]) - int(disks[0]["swap_write_sectors"])
    swapped = int(rows[-1]["pswpout"]) - int(rows[0]["pswpout"])
    assert written * 512 == pytest.approx(swapped * 4096, rel=0.1)
    memory = table(run, "meminfo")
    assert min(int(row["SwapFree"]) for row in memory) < int(memory[0]["SwapTotal"]) - 50_000


def tasks_of(run: Path) -> dict[tuple[str, str, str], list[dict[str, str]]]:
    """tasks.tsv's rows by (stream, pid, comm)."""
    found: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for row in table(run, "tasks"):
        found.setdefault((row["stream"], row["pid"], row["comm"]), []).append(row)
    return found


def test_the_evidence_of_each_program_is_plausible(quick: Path) -> None:
    run = quick / "stock" / "1"
    meta = json.loads((run / "meta.json").read_text())
    evidence = meta["evidence"]
    assert evidence["asked"] and evidence["delayacct"] and evidence["taskstats_version"] >= 10
    assert meta["observer_problems"] == []
    found = tasks_of(run)
    seen = {(stream, comm) for stream, _, comm in found}
    assert {("-", "kswapd0"), ("heartbeat", "python3"), ("player", "python3")} <= seen
    assert {(gitk, comm) for gitk in GITKS for comm in ("python3", "git")} <= seen
    for rows in found.values():
        first, last = rows[0], rows[-1]
        elapsed = float(last["elapsed_s"]) - float(first["elapsed_s"])
        clocks = [name for name in first if name.endswith("_us")]
        assert clocks[:2] == ["cpu_us", "rq_us"] and len(clocks) >= 6
        # A task that has ended has no accounts any more.
        grown = {}
        for name in (*clocks, "majflt", "minflt"):
            values = [int(row[name]) for row in rows if row[name]]
            assert values == sorted(values), name
            grown[name] = (values[-1] - values[0]) / 1e6
        # No clock outruns the time, nor do two that exclude each other. A wait is charged when it
        # has ended: what began before the first row is in the second.
        before = int(first["rq_us"] or 0) / 1e6 + 1.0
        for name in clocks:
            if name == "blkio_us":
                continue  # 6.12 and 7.2 add what no task waited: docs/explain/causes.md
            assert grown[name] <= 1.1 * elapsed + before, name
        assert grown["cpu_us"] + grown["rq_us"] <= 1.1 * elapsed + before
    for gitk in GITKS:
        own = [rows for (stream, _, comm), rows in found.items() if (stream, comm) == (gitk, "git")]
        assert max(int(row["cpu_us"] or 0) for rows in own for row in rows) > 0


def test_silences_have_been_looked_at(quick: Path) -> None:
    run = quick / "stock" / "1"
    looks = [(r["stream"], float(r["elapsed_s"])) for r in table(run, "blocked") if r["silent_s"]]
    long = [
        (gitk, (end - gap) / 1000, end / 1000)
        for gitk in GITKS
        for end, gap, _ in lines(run, gitk)
        if gap >= 2000
    ]
    seen = [one for one in long if any(s == one[0] and one[1] < at <= one[2] for s, at in looks)]
    assert len(seen) > len(long) / 2 > 0
    stacks = [row["stack"] for row in table(run, "blocked") if row["state"] == "D"]
    assert any("<-" in stack for stack in stacks)


def stands_still(rows: list[dict[str, str]]) -> list[str]:
    """Times of rows in which reads of the crypt device ended and it was never busy."""
    return [
        after["elapsed_s"]
        for before, after in itertools.pairwise(rows)
        if int(after["crypt_reads"]) - int(before["crypt_reads"]) >= 20
        and after["crypt_busy_us"] == before["crypt_busy_us"]
    ]


def test_the_kernels_own_sums_only_grow(quick: Path) -> None:
    run = quick / "stock" / "1"
    rows = table(run, "trace")
    assert len(rows) > 20
    for name in rows[0]:
        if name not in ("elapsed_s", "late_s"):
            values = [int(row[name]) for row in rows]
            assert values == sorted(values), name
    assert {"direct_reclaims", "kswapd_awake_us", "alloc_failures"} <= set(rows[0])
    assert stands_still(rows) == []
    for name in ("kswapd_awake_us", "disk_reads", "disk_busy_us", "crypt_reads"):
        assert int(rows[-1][name]) > int(rows[0][name]), name
    for row in table(run, "reclaim"):
        assert int(row["direct_reclaims"]) > 0
    header = (run / "allocfail.tsv").read_text().splitlines()[0]
    assert header == "elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack"


def test_kernel_log_and_pictures(quick: Path) -> None:
    log = (quick / "stock" / "1" / "kern.log").read_text()
    assert "Linux version" in log
    report = quick / "report"
    for name in ("gitk-latency.png", "gitk-latency-smooth.png", "timeline-stock-1.png"):
        assert (report / name).read_bytes().startswith(b"\x89PNG"), name
    assert all(len(line) <= 75 for line in (report / "summary.txt").read_text().splitlines())


@pytest.mark.parametrize("gitk", GITKS)
def test_the_summary_agrees_with_the_log(quick: Path, gitk: str) -> None:
    run = quick / "stock" / "1"
    rows = summary_rows((quick / "report" / "summary.txt").read_text())
    assert sorted(rows) == sorted(STREAMS)
    row, raw = rows[gitk], lines(run, gitk)
    assert row.elapsed == pytest.approx(raw[-1][0] / 1000, abs=ROUNDED)
    assert row.open == pytest.approx(raw[-1][1] / 1000, abs=ROUNDED)
    assert row.worst == pytest.approx(max(gap for _, gap, _ in raw) / 1000, abs=ROUNDED)
    for (count, seconds), least_ms in zip(row.at, (100, 1000, 10_000), strict=True):
        found = stalls(run, gitk, least_ms)
        assert int(count) == len(found), least_ms
        assert float(seconds) == pytest.approx(sum(found) / 1000, abs=ROUNDED), least_ms


def test_the_headline_agrees_with_the_log(quick: Path) -> None:
    words = " ".join((quick / "report" / "summary.txt").read_text().split())
    run = quick / "stock" / "1"
    said = re.search(r"Frozen for (\d+) % .* of four gitk's add up to ([\d,]+\.\d) s", words)
    assert said is not None
    stalled = stalled_ms(run)
    assert float(said[2].replace(",", "")) == pytest.approx(stalled / 1000, abs=ROUNDED)
    whole = sum(gap for gitk in GITKS for _, gap, _ in lines(run, gitk))
    assert int(said[1]) == pytest.approx(100 * stalled / whole, abs=0.51)
