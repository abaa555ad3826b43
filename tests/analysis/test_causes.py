# SPDX-License-Identifier: GPL-2.0-or-later
"""analysis.causes on evidence made by hand, whose answer is known for each cause."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis import causes as command
from analysis.reading.evidence_tables import Task
from analysis.stall_causes.causes import BY_KEY
from analysis.stall_causes.clocks import Clocks
from analysis.stall_causes.run_causes import run_causes
from analysis.text.causes import card_lines, totals_lines
from benchmarks.synthetic_results.make import line_log, meta
from tests.support.cause_evidence import (
    BEGIN,
    CLOCKS,
    FILE_READ,
    PIPE_READ,
    SWAP_IN,
    Program,
    card,
    evidence,
    share,
)
from tests.support.loading import one_run

FAULT = "do_swap_page <- __handle_mm_fault <- handle_mm_fault <- exc_page_fault"
SLOW_PATH = f"__alloc_pages_slowpath.constprop.0 <- __alloc_pages <- {FAULT}"
RECLAIM = f"try_to_free_pages <- {SLOW_PATH}"
ALONE = {
    "swap_in": Program(7, rates={"blkio_us": 0.97, "cpu_us": 0.01}, looks=[("D", SWAP_IN)]),
    "file_read": Program(7, rates={"blkio_us": 0.97}, looks=[("D", FILE_READ)]),
    "file_write": Program(
        7,
        looks=[("D", "io_schedule_timeout <- balance_dirty_pages <- ext4_file_write_iter")],
        rates={"blkio_us": 0.95},
    ),
    "reclaim_scan": Program(
        7, state="R", rates={"cpu_us": 0.98, "freepages_us": 0.97}, looks=[("R", "")]
    ),
    "reclaim_swapout": Program(
        7,
        rates={"freepages_us": 0.98},
        looks=[
            (
                "D",
                "__map_bio <- dm_submit_bio <- submit_bio_noacct_nocheck <- swap_writepage <- "
                f"shrink_folio_list <- {RECLAIM}",
            )
        ],
    ),
    "reclaim_writeback": Program(
        7,
        rates={"blkio_us": 0.95, "freepages_us": 0.98},
        looks=[
            ("D", f"io_schedule_timeout <- congestion_wait <- shrink_inactive_list <- {RECLAIM}")
        ],
    ),
    "reclaim_noprogress": Program(
        7,
        at_end={"freepages_us": 9.9},
        looks=[("D", f"reclaim_throttle <- do_try_to_free_pages <- {RECLAIM}")],
    ),
    "reclaim_kswapd": Program(
        7, looks=[("S", f"schedule_timeout <- throttle_direct_reclaim <- {RECLAIM}")], state="S"
    ),
    "compaction": Program(
        7, state="R", rates={"cpu_us": 0.97, "compact_us": 0.96}, looks=[("R", "")]
    ),
    "cpu_starved": Program(7, state="R", at_end={"rq_us": 9.8}, looks=[("R", "exit_to_user_mode")]),
    "cpu_running": Program(7, state="R", rates={"cpu_us": 0.99}, looks=[("R", "")]),
    "lock": Program(
        7, looks=[("D", "rwsem_down_read_slowpath <- down_read <- do_user_addr_fault")]
    ),
    "stopped": Program(7, state="T", looks=[("T", "do_signal_stop <- get_signal")]),
    "unexplained": Program(7, state="S", looks=[("S", "hrtimer_nanosleep <- do_nanosleep")]),
}


@pytest.mark.parametrize("cause", ALONE)
def test_a_stall_of_one_cause_only_has_that_cause(cause: str, tmp_path: Path) -> None:
    one = card(tmp_path, evidence([ALONE[cause]]))
    assert one.main == cause and share(one, cause) > 0.9
    assert sum(one.seconds.values()) == pytest.approx(one.stall.length)


@pytest.mark.parametrize("cause", [name for name in ALONE if name != "cpu_running"])
def test_the_stacks_alone_tell(cause: str, tmp_path: Path) -> None:
    files = {**evidence([ALONE[cause]]), "tasks.tsv": ""}
    # What runs on a CPU shows no stack: without clocks no stack tells what it was about.
    expected = "unexplained" if cause in ("reclaim_scan", "compaction") else cause
    assert share(card(tmp_path, files), expected) > 0.9


@pytest.mark.parametrize(
    "cause", ["reclaim_scan", "compaction", "cpu_starved", "cpu_running", "stopped", "swap_in"]
)
def test_the_clocks_alone_tell(cause: str, tmp_path: Path) -> None:
    program = ALONE[cause]
    program = Program(7, state=program.state, rates=program.rates, at_end=program.at_end)
    files = evidence([program])
    files["vmstat.tsv"] = (
        "elapsed_s\tlate_s\tpswpin\tpgpgin\n0.0\t0.0\t0\t0\n20.0\t0.0\t2500\t10000\n"
    )
    one = card(tmp_path, files)
    assert one.samples == 0 and share(one, cause) > 0.9


def test_a_parent_that_waits_for_its_child_has_the_childs_causes(tmp_path: Path) -> None:
    parent = Program(7, state="S", rates={"cpu_us": 0.1}, looks=[("S", PIPE_READ)])
    child = Program(8, "git", rates={"blkio_us": 0.8, "cpu_us": 0.2}, looks=[("D", FILE_READ)])
    one = card(tmp_path, evidence([child, parent]))
    assert 0.65 < share(one, "file_read") < 0.8
    assert one.who["file_read"][0][0] == "git"
    assert share(one, "unexplained") < 0.02


def test_the_states_alone_tell_who_is_waited_for(tmp_path: Path) -> None:
    parent = Program(7, state="S", rates={"cpu_us": 0.1})
    child = Program(8, "git", state="R", rates={"cpu_us": 0.5}, at_end={"rq_us": 5.0})
    one = card(tmp_path, evidence([parent, child]))
    assert share(one, "cpu_starved") == pytest.approx(0.45, abs=0.05)
    assert one.who["cpu_starved"][0][0] == "git"
    assert share(one, "unexplained") < 0.02


def test_what_was_not_watched_is_unexplained(tmp_path: Path) -> None:
    """The machine went on sending for 18 s after its last sample: those were not seen."""
    files = evidence([ALONE["swap_in"]])
    files["latency-gitk-1.log"] = line_log([(BEGIN, "a")], None)
    files["vmstat.tsv"] = "elapsed_s\tlate_s\tpgpgin\n0.0\t0.0\t1\n35.0\t0.0\t2\n"
    one = card(tmp_path, files)
    assert one.stall.open and one.stall.length == 30.0
    assert one.seconds["unexplained"] == pytest.approx(18, abs=2.1)


def test_the_longer_of_two_sources_does_not_count_twice(tmp_path: Path) -> None:
    """A delay of 8 s shows in its clock at its end only; the looks saw it all the time."""
    program = Program(
        7, at_end={"blkio_us": 8.0}, rates={"rq_us": 0.15}, looks=[("D", SWAP_IN), ("D", SWAP_IN)]
    )
    one = card(tmp_path, evidence([program]))
    assert share(one, "swap_in") == pytest.approx(0.85, abs=0.02)
    assert share(one, "cpu_starved") == pytest.approx(0.15, abs=0.02)


def test_the_wait_for_a_cpu_says_amid_what(tmp_path: Path) -> None:
    program = Program(
        7, state="R", rates={"rq_us": 0.9, "cpu_us": 0.1}, looks=[("R", SWAP_IN), ("R", "")]
    )
    one = card(tmp_path, evidence([program]))
    assert share(one, "cpu_starved") == pytest.approx(0.9, abs=0.02)
    assert one.who["cpu_starved"][0][0] == "python3: amid swap-in"


def test_dm_crypt_has_the_share_in_which_the_disk_was_idle(tmp_path: Path) -> None:
    trace: dict[str, float] = {"crypt_busy_us": 1_000_000, "crypt_alone_us": 800_000}
    one = card(tmp_path, evidence([ALONE["swap_in"]], trace=trace))
    assert share(one, "dm_crypt") == pytest.approx(0.8, abs=0.03)
    assert share(one, "swap_in") == pytest.approx(0.2, abs=0.03)
    assert "dm-crypt alone at work 80 %" in one.machine


def test_the_kernel_says_what_a_task_was_throttled_for(tmp_path: Path) -> None:
    trace: dict[str, float] = {
        "throttled_writeback_n": 9,
        "throttled_writeback_us": 600_000,
        "throttled_noprogress_n": 3,
        "throttled_noprogress_us": 200_000,
    }
    one = card(tmp_path, evidence([ALONE["reclaim_noprogress"]], trace=trace))
    assert share(one, "reclaim_writeback") == pytest.approx(0.75, abs=0.03)
    assert share(one, "reclaim_noprogress") == pytest.approx(0.25, abs=0.03)


def test_compaction_that_no_clock_counts_is_told_by_the_kernels_sum(tmp_path: Path) -> None:
    drain = "flush_work <- __lru_add_drain_all <- sysctl_compaction_handler"
    looked = [("R", ""), ("R", ""), ("R", ""), ("R", ""), ("D", drain)]
    program = Program(7, state="R", rates={"cpu_us": 0.95}, looks=looked)
    one = card(tmp_path, evidence([program], trace={"compaction_us": 930_000}))
    assert share(one, "compaction") > 0.9
    program.looks = [("R", "")]  # not seen in it: kcompactd may have been
    one = card(tmp_path / "b", evidence([program], trace={"compaction_us": 930_000}))
    assert share(one, "cpu_running") > 0.9


def test_a_locks_holder_is_named_by_what_it_was_in(tmp_path: Path) -> None:
    holder = Program(9, "other", looks=[("D", FILE_READ)], stream="-")
    one = card(tmp_path, evidence([ALONE["lock"], holder]))
    assert one.who["lock"][0][0] == "python3: lock, its holder in file read"


STREAM = (
    "zcomp_stream_get <- zram_submit_bio <- submit_bio_wait <- swap_writepage_bdev_sync <- "
    f"shrink_folio_list <- {RECLAIM}"
)
COMPRESSING = (
    "irqentry_exit <- asm_sysvec_apic_timer_interrupt <- LZ4_compress_fast_extState <- "
    f"zcomp_compress <- zram_submit_bio <- submit_bio_wait <- shrink_folio_list <- {RECLAIM}"
)


def test_only_a_task_within_zram_holds_zrams_stream(tmp_path: Path) -> None:
    waiting = Program(7, at_end={"freepages_us": 9.9}, looks=[("D", STREAM)])
    writer = Program(9, "kworker", looks=[("D", FILE_READ)], stream="-")
    without_holder = card(tmp_path / "without", evidence([waiting, writer]))
    assert share(without_holder, "lock") > 0.9
    assert without_holder.who["lock"][0][0] == "python3"
    holder = Program(11, "git", looks=[("R", COMPRESSING)], stream="-")
    with_holder = card(tmp_path / "with", evidence([waiting, writer, holder]))
    assert share(with_holder, "lock") > 0.9
    assert with_holder.who["lock"][0][0] == "python3: lock, its holder in reclaim"


def test_a_step_longer_than_the_time_since_the_last_is_no_wait() -> None:
    # As on 6.12: waits of 0.2 s in each quarter of a second, and amid them 141 s.
    moved = [0.0, 1.2, 0.2, 0.2, 141.0, 0.2, 0.0, 0.0, 0.9, 1.1]
    blkio = np.cumsum(np.array(moved)) * 1e6
    stamps = np.arange(len(moved), dtype=np.float64) * 0.25
    task = Task("gitk-1", 7, "python3", stamps, "D" * len(moved), {"blkio_us": blkio})
    spent = Clocks(task).over(0.0, float(stamps[-1]))
    # 1.2 s may have begun before anybody looked, and has 0.25 s of room; 1.1 s after 0.9 s cannot.
    assert spent.blkio == pytest.approx(0.25 + 0.2 * 3 + 0.9)


@pytest.mark.parametrize(("busy", "kept"), [(0.0, 10.0), (1.0, 0.0), (0.5, 0.0)])
def test_no_wait_reaches_back_over_time_on_a_cpu(busy: float, kept: float) -> None:
    """The clock moves by 10 s within 0.25 s, 12 s after it moved last."""
    stamps = np.arange(0.0, 14.0, 0.25)
    ran = np.clip(stamps - 1.0, 0.0, 11.0) * busy * 1e6
    blkio = (np.where(stamps >= 1.0, 0.2, 0.0) + np.where(stamps >= 13.0, 10.0, 0.0)) * 1e6
    clocks = {"cpu_us": ran, "blkio_us": blkio}
    task = Task("gitk-1", 7, "python3", stamps, "D" * len(stamps), clocks)
    assert Clocks(task).over(0.0, float(stamps[-1])).blkio == pytest.approx(0.2 + kept)


def test_a_first_step_longer_than_the_task_was_watched_takes_nothing(tmp_path: Path) -> None:
    """It was stopped for 10 s; 30 s later its clock of block IO moves for the first time."""
    files = evidence([ALONE["stopped"]])
    head, *rows = str(files["tasks.tsv"]).splitlines()
    last = rows[-1].split("\t")
    for n in range(1, 121):
        cells = [f"{float(last[0]) + n / 4:.3f}", *last[1:]]
        if n == 120:
            cells[head.split("\t").index("blkio_us")] = "141000000"
        rows.append("\t".join(cells))
    one = card(tmp_path, files | {"tasks.tsv": "\n".join([head, *rows]) + "\n"})
    assert share(one, "stopped") > 0.98


def test_looks_are_those_of_the_task_that_had_the_pid_then(tmp_path: Path) -> None:
    """Of two children in turn with one pid only the second one was there in the stall."""
    files = evidence([Program(7, state="S", looks=[("S", PIPE_READ)])])
    rates = {"blkio_us": 0.5, "cpu_us": 0.5}
    child = evidence([Program(8, "git", rates=rates, looks=[("D", FILE_READ)])])
    rows = str(child["tasks.tsv"]).splitlines()[1:]
    late = [row for row in rows if float(row.split("\t")[0]) >= BEGIN]
    begin = "\t".join(["0.000", *rows[0].split("\t")[1:6], *["9" for _ in CLOCKS]])
    files["tasks.tsv"] = str(files["tasks.tsv"]) + "\n".join([begin, *late]) + "\n"
    whole = str(child["blocked.tsv"]).splitlines()[1:]
    files["blocked.tsv"] = str(files["blocked.tsv"]) + "\n".join(whole) + "\n"
    one = card(tmp_path, files)
    assert share(one, "file_read") == pytest.approx(0.5, abs=0.05)
    assert one.who["file_read"][0][0] == "git"


def test_before_5_17_the_swap_in_clock_is_apart_from_that_of_block_io(tmp_path: Path) -> None:
    program = Program(7, rates={"swapin_us": 0.6, "blkio_us": 0.3})
    clocks = tuple(name for name in CLOCKS if name != "compact_us")
    files = evidence([program], clocks=clocks)
    files["vmstat.tsv"] = "elapsed_s\tlate_s\tpswpin\tpgpgin\n0.0\t0.0\t0\t0\n20.0\t0.0\t0\t10000\n"
    one = card(tmp_path, files)
    assert share(one, "swap_in") == pytest.approx(0.6, abs=0.02)
    assert share(one, "file_read") == pytest.approx(0.3, abs=0.02)


def test_without_evidence_there_are_no_causes(tmp_path: Path) -> None:
    files = evidence([])
    del files["tasks.tsv"], files["blocked.tsv"]
    assert run_causes(one_run(tmp_path, files)) is None


def test_the_text_and_the_json_say_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = one_run(tmp_path, evidence([ALONE["swap_in"]], trace={"disk_busy_us": 970_000}))
    found = run_causes(run)
    assert found is not None
    longest = found.cards[0]
    text = "\n".join(card_lines(longest))
    assert "gitk-1 was silent for 10.0 s (from 5.0 s, to 15.0 s)" in text
    assert "waiting for swap-in from disk" in text and "disk busy 97 %" in text
    assert "unexplained" in text
    assert all(len(line) <= 100 for line in card_lines(longest))
    assert any("swap-in" in line for line in totals_lines(found, "gitk"))
    assert command.main([str(tmp_path), "--json"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    values = json.loads(line)
    assert values["cards"][0]["main"] == "swap_in"
    assert sum(values["seconds"].values()) == pytest.approx(values["total_s"], abs=0.01)
    assert command.main([str(tmp_path)]) == 0
    assert "k run 1: 15.0 s of stalls, four gitk's added up\n" in capsys.readouterr().out


WORDS = st.sampled_from(
    [
        *("0", "1", "-1", "5.25", "9.5", "14.75", "1e9", "nan", "99999999999999999999"),
        *("R", "S", "D", "T", "gitk-1", "-", "7", "8", "", "é\x00"),
    ]
)
ROW = st.lists(WORDS | st.sampled_from([SWAP_IN, PIPE_READ]), max_size=14).map("\t".join)
HEADER = st.sampled_from(
    [
        "elapsed_s\tlate_s\tstream\tpid\tcomm\tstate\tcpu_us\trq_us",
        "elapsed_s\tlate_s\tstream\tsilent_s\tpid\tcomm\tstate\twchan\tmajflt\tminflt\tstack",
        "elapsed_s\tlate_s\tcrypt_busy_us\tcrypt_alone_us",
        "elapsed_s\telapsed_s",
        "",
    ]
)
FILE = st.tuples(HEADER, st.lists(ROW, max_size=6)).map(lambda f: "\n".join((f[0], *f[1])) + "\n")
NAMES = ("tasks.tsv", "blocked.tsv", "trace.tsv", "allocfail.tsv", "reclaim.tsv")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(files=st.fixed_dictionaries({name: FILE | st.binary(max_size=200) for name in NAMES}))
def test_garbage_never_raises_and_the_seconds_add_up(
    files: dict[str, str | bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = {name: text for name, text in evidence([]).items() if name.startswith("latency")}
    found = run_causes(one_run(tmp_path_factory.mktemp("run"), {**base, **files}))
    for one in found.cards if found else []:
        assert sum(one.seconds.values()) == pytest.approx(one.stall.length)
        assert all(value >= 0 and key in BY_KEY for key, value in one.seconds.items())


RATE = st.floats(0, 1.5)
CLOCKED = st.dictionaries(st.sampled_from(CLOCKS), RATE)
LOOKED = st.lists(
    st.tuples(
        st.sampled_from("RSDT"), st.sampled_from([SWAP_IN, FILE_READ, PIPE_READ, RECLAIM, ""])
    ),
    max_size=3,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    programs=st.lists(st.tuples(st.sampled_from("RSDT"), CLOCKED, CLOCKED, LOOKED), max_size=3),
    length=st.sampled_from([1.0, 2.5, 7.0]),
)
def test_whatever_the_evidence_says_the_seconds_add_up(
    programs: list[tuple[str, dict[str, float], dict[str, float], list[tuple[str, str]]]],
    length: float,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    tasks = [
        Program(7 + n, state=state, rates=rates, at_end=late, looks=looked)
        for n, (state, rates, late, looked) in enumerate(programs)
    ]
    one = card(tmp_path_factory.mktemp("run"), evidence(tasks, length))
    assert sum(one.seconds.values()) == pytest.approx(length)
    assert all(value >= 0 and key in BY_KEY for key, value in one.seconds.items())
    shown = sum(seconds for whose in one.who.values() for _, seconds in whose)
    assert shown <= length + 1e-6


DM_POOL = (
    "mempool_alloc <- bio_alloc_bioset <- bio_alloc_clone <- dm_submit_bio <- __submit_bio <- "
    "submit_bio_noacct_nocheck <- swap_readpage <- swap_cluster_readahead <- do_swap_page"
)
MIGRATION = (
    "migration_entry_wait_on_locked <- migration_entry_wait <- do_swap_page <- __handle_mm_fault "
    "<- handle_mm_fault <- do_user_addr_fault <- exc_page_fault <- asm_exc_page_fault"
)
COMPACTING = (
    "compact_zone <- compact_zone_order <- try_to_compact_pages <- __alloc_pages_direct_compact "
    "<- __alloc_pages_slowpath <- __alloc_pages"
)
SHRINKER_LOCK = (
    "__mutex_lock.constprop.0 <- shrink_slab <- shrink_node <- do_try_to_free_pages <- "
    "try_to_free_pages <- __alloc_pages_slowpath <- __alloc_pages"
)


@pytest.mark.parametrize(("alone", "cause"), [(0.01, "swap_in"), (0.98, "dm_crypt")])
def test_the_device_mappers_pool_waits_for_whoever_is_slow(
    tmp_path: Path, alone: float, cause: str
) -> None:
    program = Program(7, rates={"blkio_us": 0.97}, looks=[("D", DM_POOL)])
    trace = {"crypt_busy_us": 1_000_000, "crypt_alone_us": 1_000_000 * alone}
    trace |= {"disk_busy_us": 1_000_000 * (1 - alone), "disk_reads": 100.0}
    assert share(card(tmp_path, evidence([program], trace=trace)), cause) > 0.9


@pytest.mark.parametrize(
    ("clock", "stack", "told"),
    [
        ({"compact_us": 0.0}, MIGRATION, 0.0),  # it only waits for somebody else's
        ({"compact_us": 0.0}, COMPACTING, 0.0),  # the clock says that it took none
        (None, COMPACTING, 0.75),  # before 5.17 no clock counts
    ],
)
def test_somebody_elses_compaction_is_not_the_programs(
    tmp_path: Path, clock: dict[str, float] | None, stack: str, told: float
) -> None:
    looks = [("R", "")] * 9 + [("D", stack)]
    rates = {"cpu_us": 0.9, "blkio_us": 0.05} | (clock or {})
    program = Program(7, state="R", rates=rates, looks=looks)
    clocks = CLOCKS if clock else tuple(name for name in CLOCKS if name != "compact_us")
    files = evidence([program], 20.0, clocks=clocks, trace={"compaction_us": 800_000})
    files["vmstat.tsv"] = "elapsed_s\tlate_s\tcompact_daemon_migrate_scanned\n0\t0\t0\n30\t0\t900\n"
    found = share(card(tmp_path, files), "compaction")
    assert found == pytest.approx(told, abs=0.1)


def test_a_lock_within_reclaim_is_counted_once(tmp_path: Path) -> None:
    looks = [("D", SHRINKER_LOCK)] * 6 + [("R", "")] * 4
    program = Program(7, rates={"cpu_us": 0.4, "freepages_us": 0.55}, looks=looks)
    found = card(tmp_path, evidence([program], 20.0))
    assert share(found, "lock") == pytest.approx(0.55, abs=0.08)
    assert share(found, "cpu_running") == pytest.approx(0.4, abs=0.05)
    assert share(found, "reclaim_scan") < 0.05


def test_two_kinds_of_waits_share_the_time_that_dm_crypt_was_alone(tmp_path: Path) -> None:
    program = Program(7, rates={"blkio_us": 0.98}, looks=[("D", SWAP_IN), ("D", FILE_READ)])
    trace: dict[str, float] = {"crypt_busy_us": 500_000, "crypt_alone_us": 400_000}
    found = card(tmp_path, evidence([program], trace=trace))
    assert share(found, "dm_crypt") == pytest.approx(0.4, abs=0.02)
    assert share(found, "swap_in") == pytest.approx(share(found, "file_read"), abs=0.1)


ZRAM = {"kind": "zram", "device": "/dev/zram1", "size_kib": 99_996, "algorithm": "lz4"}


def on_zram(files: dict[str, str | bytes]) -> dict[str, str | bytes]:
    return {**files, "meta.json": json.dumps(meta("k", swap=ZRAM))}


def test_with_zram_no_swap_in_is_a_wait_for_dm_crypt(tmp_path: Path) -> None:
    program = Program(7, rates={"blkio_us": 0.98}, looks=[("D", SWAP_IN), ("D", FILE_READ)])
    trace: dict[str, float] = {"crypt_busy_us": 500_000, "crypt_alone_us": 400_000}
    found = card(tmp_path, on_zram(evidence([program], trace=trace)))
    assert share(found, "swap_in") == pytest.approx(0.49, abs=0.05)
    assert share(found, "dm_crypt") == pytest.approx(0.39, abs=0.05)
    said = "\n".join(card_lines(found))
    assert "waiting for swap-in from zram" in said and "swap-in from disk" not in said


@pytest.mark.parametrize("cause", ["swap_in", "file_read"])
def test_without_a_look_the_disk_is_read_for_swap_unless_that_is_zram(
    tmp_path: Path, cause: str
) -> None:
    files = evidence([Program(7, rates={"blkio_us": 0.98})])
    rows = [f"{n}\t0\t{n * 256}\t{n * 1024}\n" for n in range(20)]
    files["vmstat.tsv"] = "elapsed_s\tlate_s\tpswpin\tpgpgin\n" + "".join(rows)
    found = card(tmp_path, files if cause == "swap_in" else on_zram(files))
    assert share(found, cause) > 0.9
