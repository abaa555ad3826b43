# SPDX-License-Identifier: GPL-2.0-or-later
"""Stalls and the kernel's log: known answers, worked out by hand."""

from pathlib import Path

import pytest

from analysis.figures.stalls import Total, freezes, lateness, stalled_seconds, stalls, totals, worst
from analysis.kernel_log.records import count_failures
from analysis.reading.load import load_campaign
from benchmarks.synthetic_results.make import line_log, make_run, write_run


def test_stalls_of_a_tiny_run(tmp_path: Path) -> None:
    # gitk-1: silent 1.000 from 0.100, 10.000 from 1.600; gitk-2: 0.999, then open 3.000.
    one = line_log([(0.1, "a"), (1.0, "b"), (0.5, "c"), (10.0, "d")], 0.0)
    two = line_log([(0.999, "a"), (0.001, "b")], 3.0)
    write_run(tmp_path / "k" / "1", {"latency-gitk-1.log": one, "latency-gitk-2.log": two})
    run = load_campaign(tmp_path).runs[0]
    first, second = run.subjects
    assert [(round(s.begin, 3), s.length, s.open) for s in stalls(first)] == [
        (0.1, 1.0, False),
        (1.6, 10.0, False),
    ]
    assert totals(first) == [Total(0.1, 4, 11.6), Total(1.0, 2, 11.0), Total(10.0, 1, 10.0)]
    assert [(s.begin, s.length, s.open) for s in stalls(second)] == [(1.0, 3.0, True)]
    assert (worst(first), worst(second)) == (10.0, 3.0)
    assert stalled_seconds(run) == 14.0
    # 0.1 to 1.1 and 1.0 to 4.0 and 1.6 to 11.6 are one freeze.
    ((begin, end),) = freezes(run.subjects)
    assert (round(begin, 3), round(end, 3)) == (0.1, 11.6)


def test_stalls_agree_with_the_raw_log_read_by_other_means(tmp_path: Path) -> None:
    path = make_run(tmp_path / "6.1" / "1", "6.1", seed=7)
    run = load_campaign(tmp_path).runs[0]
    for stream in run.streams.values():
        rows = (path / f"latency-{stream.name}.log").read_text().splitlines()
        gaps = [float(row.split()[1]) for row in rows]  # like awk '{ s += $2 }'
        assert sum(gaps) == pytest.approx(float(rows[-1].split()[0]), abs=0.001 * len(gaps))
        for total in totals(stream):
            over = [gap for gap in gaps if gap >= total.threshold]
            assert total.count == len(over)
            assert total.seconds == pytest.approx(sum(over))


def test_a_skip_is_a_run_of_late_chunks_as_long_as_its_first(tmp_path: Path) -> None:
    late = [0.0, 0.2, 0.201, 0.5, 0.1, 3.0, 2.9, 0.0]
    log = line_log([(0.1, f"chunk {n} late {s:.3f}") for n, s in enumerate(late)], 0.0)
    write_run(tmp_path / "k" / "1", {"latency-player.log": log + "x\n", "latency-x.log": "\n"})
    player = load_campaign(tmp_path).runs[0].streams["player"]
    found = lateness(player, 0.2)
    assert found is not None
    assert (found.deadlines, found.missed, found.spans, found.worst) == (8, 4, (0.201, 3.0), 3.0)


KERNELS = {
    "2.6.31": (
        "gitk: page allocation failure. order:2, mode:0x4020",
        "__ratelimit: 14 callbacks suppressed",
        "gitk invoked oom-killer: gfp_mask=0x201da, order=0, oomkilladj=0",
        "Out of memory: kill process 2203 (gitk) score 1190 or a child",
        "Killed process 2203 (gitk)",
        "INFO: task kjournald:1012 blocked for more than 120 seconds.",
    ),
    "4.9": (
        "gitk: page allocation failure: order:2, mode:0x2080020(GFP_ATOMIC)",
        "warn_alloc: 14 callbacks suppressed",
        "Out of memory: Kill process 2203 (gitk) score 190 or sacrifice child",
        "Killed process 2204 (git) total-vm:1kB, anon-rss:1kB",
        "INFO: task gitk:2203 blocked for more than 120 seconds.",
        "NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [gitk:2203]",
    ),
    "7.2": (
        "gitk: page allocation failure: order:2, mode:0x820(GFP_ATOMIC), nodemask=(null)",
        "warn_alloc: 14 callbacks suppressed",
        "gitk invoked oom-killer: gfp_mask=0x140cca, order=0, oom_score_adj=0",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=gitk,pid=2203,uid=0",
        "Out of memory: Killed process 2203 (gitk) total-vm:1kB, anon-rss:1kB",
        "oom_reaper: reaped process 2203 (gitk), now anon-rss:0kB",
        "INFO: task gitk:2203 blocked in I/O wait for more than 120 seconds.",
        "      Not tainted 7.2",
        "Future hung task reports are suppressed, see sysctl kernel.hung_task_warnings",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [gitk:2203]",
    ),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_failure_counts_once_in_every_kernels_words(kernel: str) -> None:
    records = [f"[   12.345678] <4> {text}" for text in KERNELS[kernel]]
    log = count_failures([*records, " page allocation failure: of a continuation"])
    assert (log.page_allocation_failures, log.oom_kills, log.hung_tasks) == (1, 1, 1)
    assert log.suppressed == 14 and "page_allocation_failures" in log.at_least
    assert ("hung_tasks" in log.at_least) == (kernel == "7.2")
    twice = count_failures(records * 2)
    assert (twice.page_allocation_failures, twice.oom_kills, twice.hung_tasks) == (2, 2, 2)


def test_a_log_that_lost_records_is_a_lower_bound() -> None:
    log = count_failures(["[    1.000000] <6> hello", "[    2.000000] <missed> 17", "\x00\xff"])
    assert log.missed and "oom_kills" in log.at_least
    assert count_failures([]).at_least == set()
