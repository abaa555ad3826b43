# SPDX-License-Identifier: GPL-2.0-or-later
"""The readers of evidence, the stacks of several kernels, and the tables of reclaim."""

from pathlib import Path

import pytest

from analysis import reclaim_tables as command
from analysis.reading.evidence_tables import read_failures, read_looks, read_reclaimers, read_tasks
from analysis.stall_causes.stacks import (
    BACKPRESSURE,
    FOLLOW,
    ON_WRITEBACK,
    SOME_IO,
    THROTTLED,
    classify_stack,
)
from benchmarks.synthetic_results.make import line_log
from errors import UserError
from tests.support.loading import one_run

STACKS = {
    # 5.10: as they were seen there
    "io_schedule <- __lock_page_or_retry <- do_swap_page <- handle_mm_fault": "swap_in",
    "io_schedule <- swap_readpage <- swap_cluster_readahead <- swapin_readahead <- do_swap_page": (
        "swap_in"
    ),
    "io_schedule <- wait_on_page_bit_killable <- generic_file_buffered_read <- new_sync_read": (
        "file_read"
    ),
    "io_schedule_timeout <- congestion_wait <- shrink_inactive_list <- shrink_lruvec": (
        "reclaim_writeback"
    ),
    "io_schedule <- wait_on_page_bit <- wait_on_page_writeback <- shrink_page_list.part.0": (
        "reclaim_writeback"
    ),
    "__alloc_pages_slowpath.constprop.0 <- do_swap_page": "reclaim_noprogress",
    # 6.1 on
    "io_schedule <- folio_wait_bit_common <- folio_wait_bit <- do_swap_page": "swap_in",
    "io_schedule <- folio_wait_bit_common <- filemap_fault <- __do_fault <- do_fault": "file_read",
    "io_schedule <- folio_wait_bit_common <- filemap_get_pages <- filemap_read": "file_read",
    "schedule_timeout <- reclaim_throttle <- shrink_node <- do_try_to_free_pages": ON_WRITEBACK,
    "reclaim_throttle <- do_try_to_free_pages <- try_to_free_pages": THROTTLED,
    "reclaim_throttle <- shrink_lruvec <- try_to_free_mem_cgroup_pages": ON_WRITEBACK,
    "schedule_timeout <- throttle_direct_reclaim <- try_to_free_pages": "reclaim_kswapd",
    "schedule_timeout_killable <- __mem_cgroup_handle_over_high <- irqentry_exit_to_user_mode": (
        "reclaim_noprogress"
    ),
    "__cond_resched <- shrink_lruvec <- shrink_node <- try_to_free_pages": "reclaim_scan",
    "evict_folios <- try_to_shrink_lruvec <- lru_gen_shrink_node <- try_to_free_pages": (
        "reclaim_scan"
    ),
    "io_schedule <- blk_mq_get_tag <- blk_mq_submit_bio <- swap_writepage <- pageout": (
        "reclaim_swapout"
    ),
    # 6.12 and 7.2: a bio of the pool, and a place among the swap-out that dm lets be under way
    "mempool_alloc_noprof <- bio_alloc_bioset <- __swap_writepage <- swap_writepage <- pageout": (
        "reclaim_swapout"
    ),
    "mempool_alloc_from_pool <- mempool_alloc_noprof <- bio_alloc_bioset <- bio_alloc_clone <- "
    "alloc_io <- dm_submit_bio <- submit_bio_noacct_nocheck <- swap_writeout <- "
    "shrink_folio_list": "reclaim_swapout",
    "__map_bio <- dm_submit_bio <- __submit_bio <- submit_bio_noacct_nocheck <- swap_writepage": (
        "reclaim_swapout"
    ),
    "down <- __map_bio <- __split_and_process_non_flush <- dm_submit_bio <- submit_bio_noacct <- "
    "__swap_writepage <- pageout": "reclaim_swapout",
    "__map_bio <- dm_submit_bio <- __submit_bio <- submit_bio_noacct_nocheck <- read_pages": (
        "file_read"
    ),
    "io_schedule <- blk_mq_get_tag <- blk_mq_submit_bio <- submit_bio_noacct <- read_pages": (
        "file_read"
    ),
    "migrate_pages <- compact_zone <- try_to_compact_pages <- __alloc_pages_direct_compact": (
        "compaction"
    ),
    "schedule_timeout <- mempool_alloc <- crypt_alloc_buffer <- kcryptd_crypt_write_convert": (
        "dm_crypt"
    ),
    "schedule_timeout <- mempool_alloc <- bio_alloc_bioset <- alloc_tio <- dm_submit_bio": (
        "dm_crypt"
    ),
    "io_schedule <- folio_wait_bit <- folio_wait_writeback <- ext4_sync_file <- do_fsync": (
        "file_write"
    ),
    "io_schedule_timeout <- balance_dirty_pages_ratelimited_flags <- generic_perform_write": (
        "file_write"
    ),
    "wait_transaction_locked <- add_transaction_credits <- start_this_handle": "file_write",
    "rwsem_down_read_slowpath <- down_read_killable <- lock_mm_and_find_vma": "lock",
    "__mutex_lock.constprop.0 <- pipe_write": "lock",
    "futex_wait_queue <- futex_wait <- do_futex": "lock",
    # /proc/PID/stack leaves out the slow paths of locks, which are __sched
    "lock_mm_and_find_vma <- do_user_addr_fault <- exc_page_fault": "lock",
    "ext4_buffered_write_iter <- new_sync_write <- vfs_write": "lock",
    "zcomp_stream_get <- zram_submit_bio <- __submit_bio <- submit_bio_noacct_nocheck <- bio_await "
    "<- submit_bio_wait <- swap_writepage_bdev_sync.isra.0 <- swap_writeout <- shrink_folio_list": (
        "lock"
    ),
    "zcomp_stream_get <- read_from_zspool <- zram_submit_bio <- __submit_bio <- "
    "submit_bio_noacct_nocheck <- bio_await <- submit_bio_wait <- swap_read_folio <- "
    "do_swap_page": "lock",
    "try_to_free_pages <- __alloc_pages_slowpath.constprop.0 <- do_swap_page": "reclaim_kswapd",
    "msleep <- shrink_inactive_list <- shrink_lruvec": THROTTLED,
    "do_signal_stop <- get_signal <- arch_do_signal_or_restart": "stopped",
    "pipe_read <- vfs_read <- ksys_read": FOLLOW,
    "anon_pipe_read <- vfs_read <- ksys_read": FOLLOW,
    "do_wait <- kernel_wait4 <- __do_sys_wait4": FOLLOW,
    "anon_pipe_write <- vfs_write <- ksys_write": BACKPRESSURE,
    "io_schedule <- bit_wait_io <- __wait_on_bit": SOME_IO,
    "hrtimer_nanosleep <- common_nsleep": "",
    "": "",
}


@pytest.mark.parametrize("stack", STACKS)
def test_a_stack_names_a_cause(stack: str, tmp_path: Path) -> None:
    path = tmp_path / "blocked.tsv"
    path.write_text(f"elapsed_s\tstream\tpid\tstate\tstack\n1.5\tgitk-1\t7\tD\t{stack}\n")
    problems: list[str] = []
    looks = read_looks(tmp_path, problems)
    assert looks is not None and not problems
    assert classify_stack(looks[0].stack).kind == STACKS[stack]


def test_the_wait_channel_stands_in_for_a_stack_that_is_not_there() -> None:
    assert classify_stack((), "pipe_read").kind == FOLLOW
    assert classify_stack((), "0").kind == classify_stack((), "").kind == ""


def test_a_pid_that_is_used_again_is_another_task(tmp_path: Path) -> None:
    rows = "".join(f"{n / 4}\tgitk-1\t7\tgit\tD\t{(n % 4) * 1000}\n" for n in range(8))
    (tmp_path / "tasks.tsv").write_text("elapsed_s\tstream\tpid\tcomm\tstate\tcpu_us\n" + rows)
    tasks = read_tasks(tmp_path, [])
    assert tasks is not None and [list(task.stamps) for task in tasks] == [
        [0.0, 0.25, 0.5, 0.75],
        [1.0, 1.25, 1.5, 1.75],
    ]


def test_two_writers_of_one_moment_are_no_two_tasks(tmp_path: Path) -> None:
    cells = [(0.0, 100), (0.25, 200), (0.24, 190), (0.25, 210), (0.5, 300), (0.49, 310)]
    rows = "".join(f"{at}\tgitk-1\t7\tgit\tD\t{cpu}\n" for at, cpu in cells)
    (tmp_path / "tasks.tsv").write_text("elapsed_s\tstream\tpid\tcomm\tstate\tcpu_us\n" + rows)
    [task] = read_tasks(tmp_path, []) or []
    assert list(task.stamps) == [0.0, 0.25, 0.5]
    assert list(task.clocks["cpu_us"]) == [100, 210, 310]


def test_damage_is_named(tmp_path: Path) -> None:
    head = "elapsed_s\tstream\tpid\tcomm\tstate\tcpu_us\n"
    (tmp_path / "tasks.tsv").write_text(head + "1.0\tgitk-1\t7\tgit\tD\t5\nx\ty\n1.2\tgitk-1\t7")
    problems: list[str] = []
    tasks = read_tasks(tmp_path, problems)
    assert tasks is not None and len(tasks[0].stamps) == 1
    assert len(problems) == 2
    (tmp_path / "blocked.tsv").write_text("no\theader\n1\t2\n")
    assert read_looks(tmp_path, problems) is None and "no header" in problems[-1]


def test_failures_and_reclaimers_are_read(tmp_path: Path) -> None:
    (tmp_path / "allocfail.tsv").write_text(
        "elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack\n"
        "3.250\t17\t88\tnode: x\t2\t0x2820\t__alloc_pages <- kmalloc_large_node\n"
    )
    (tmp_path / "reclaim.tsv").write_text(
        "pid\tcomm\tdirect_reclaims\tdirect_reclaim_us\tdirect_reclaim_pages\n"
        "7\ta\t3\t500\t\n8\tb\t4\t900\t12\n"
    )
    [failure] = read_failures(tmp_path, []) or []
    assert (failure.count, failure.order, failure.gfp) == (17, 2, 0x2820)
    longest, other = read_reclaimers(tmp_path, []) or []
    assert longest.comm == "b" and other.pages is None


def trace(**columns: tuple[int, int]) -> str:
    rows = [["elapsed_s", "late_s", *columns], ["0.0", "0.0"], ["9.0", "0.0"]]
    for begin, end in columns.values():
        rows[1].append(str(begin))
        rows[2].append(str(end))
    return "".join("\t".join(row) + "\n" for row in rows)


def run_with(folder: Path, **columns: tuple[int, int]) -> None:
    one_run(
        folder, {"latency-gitk-1.log": line_log([(9.0, "a")], 0.1), "trace.tsv": trace(**columns)}
    )


def test_the_table_of_2010(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_with(
        tmp_path,
        congestion_wait_n=(1, 4),
        congestion_wait_us=(1000, 301_000),
        wait_iff_congested_n=(0, 2),
        wait_iff_congested_us=(0, 5_000),
        kswapd_congestion_wait_n=(0, 9),
        kswapd_congestion_wait_us=(0, 800_000),
        direct_reclaims=(0, 50),
        direct_reclaim_none=(0, 7),
        direct_reclaim_pages=(0, 1600),
        direct_reclaim_us=(0, 2_500_000),
        reclaims_without_page=(2, 14),
    )
    assert command.main([str(tmp_path)]) == 0
    text = capsys.readouterr().out
    lines = [line.split() for line in text.splitlines()]
    heads = [line for line in lines if line[:1] == ["variant"]]
    rows = [line for line in lines if line[:2] == ["k", "1"]]
    figures = dict(zip(heads[0], rows[0], strict=True)) | dict(zip(heads[1], rows[1], strict=True))
    assert figures["pg-Stall"] == "5" and figures["pg-Wait"] == "305"
    assert figures["pg-Rclm"] == "1,600"
    assert figures["ksd-stall"] == "9" and figures["ksd-wait"] == "800"
    assert figures["reclaims"] == "50" and figures["failed"] == "7"
    assert figures["no-page"] == "12" and figures["progress"] == "-"


def test_kernels_with_different_events_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.synthetic_results.make import write_run

    log = line_log([(9.0, "a")], 0.1)
    old, new = trace(congestion_wait_n=(0, 1)), trace(throttled_noprogress_n=(0, 2))
    write_run(tmp_path / "5.10" / "1", {"latency-gitk-1.log": log, "trace.tsv": old})
    write_run(tmp_path / "6.1" / "1", {"latency-gitk-1.log": log, "trace.tsv": new})
    assert command.main([str(tmp_path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "5.10: waits are those of congestion_wait." in text
    assert "6.1: waits are those of mm_vmscan_throttled." in text
    assert "different events" in text


def test_runs_that_were_cut_short_are_in_no_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.synthetic_results.make import write_run

    log = line_log([(9.0, "a")], 0.1)
    who = "pid\tcomm\tdirect_reclaims\tdirect_reclaim_us\tdirect_reclaim_pages\n"
    who += "7\tgit\t400\t1500000\t9000\n8\tgit\t100\t500000\t1000\n9\tsh\t500\t9000\t3\n"
    for number, (count, state) in enumerate(((1000, "completed"), (50, "aborted")), 1):
        sums = trace(direct_reclaims=(0, count))
        run = tmp_path / "6.1" / str(number)
        files: dict[str, str | bytes] = {"latency-gitk-1.log": log, "trace.tsv": sums}
        write_run(run, files | {"reclaim.tsv": who}, state)
    assert command.main([str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "6.1: git 2.0 s in 500 reclaims (10,000 pages), sh 0.0 s in 500 reclaims" in text
    assert "1,000" in text and "Left out (cut short, failed or disturbed): 6.1/2." in text


def test_without_a_trace_there_is_no_table(tmp_path: Path) -> None:
    one_run(tmp_path, {"latency-gitk-1.log": line_log([(9.0, "a")], 0.1)})
    with pytest.raises(UserError):
        command.main([str(tmp_path)])
