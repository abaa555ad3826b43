# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run's evidence lacks: what is then not claimed, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.stall_causes.run_causes import as_json, run_causes
from analysis.text.causes import card_lines
from benchmarks.synthetic_results.make import line_log, meta
from graphs.page.run_data import run_block
from tests.support.cause_evidence import BEGIN, SWAP_IN, Program, evidence
from tests.support.loading import one_run

SWAPPING = Program(7, rates={"blkio_us": 0.97}, looks=[("D", SWAP_IN)])
BUSY: dict[str, float] = {"crypt_busy_us": 1_000_000, "crypt_alone_us": 800_000}
IO_MS = (
    "elapsed_s\tlate_s\tdisk_io_ms\tcrypt_io_ms\tdisk_read_sectors\n"
    "0.0\t0.0\t0\t0\t0\n17.0\t0.0\t1000\t10000\t40000\n"
)
NOT_APART = "dm-crypt is not told apart from the disk"


def judged(folder: Path, files: dict[str, str | bytes], **facts: Any) -> Any:
    if facts:
        files = files | {"meta.json": json.dumps(meta("k", **facts))}
    found = run_causes(one_run(folder, files))
    assert found is not None
    return found


def card_of(found: Any) -> Any:
    return next(one for one in found.cards if one.stall.begin == BEGIN)


def test_io_ms_alone_tells_nothing_of_dm_crypt_or_an_idle_disk(tmp_path: Path) -> None:
    files = evidence([SWAPPING]) | {"diskstats.tsv": IO_MS}
    found = judged(tmp_path, files)
    one = card_of(found)
    assert "dm_crypt" not in found.seconds and one.main == "swap_in"
    assert not any("disk" in clause or "dm-crypt" in clause for clause in one.machine)
    assert any("MB/s read" in clause for clause in one.machine)
    assert f"{NOT_APART}: no trace." in found.notes and not found.apart
    none = judged(tmp_path / "none", files, crypt="none")
    assert none.apart and not any(NOT_APART in note for note in none.notes)


def test_a_disk_without_request_queues_is_not_called_idle(tmp_path: Path) -> None:
    trace: dict[str, float] = {
        **{"disk_reads": 0, "disk_writes": 0, "disk_busy_us": 0, "crypt_reads": 100},
        **{"crypt_busy_us": 1_000_000, "crypt_alone_us": 1_000_000},
    }
    found = judged(tmp_path, evidence([SWAPPING], trace=trace))
    one = card_of(found)
    assert "dm_crypt" not in found.seconds and not found.apart
    assert not any("disk" in clause or "dm-crypt" in clause for clause in one.machine)
    assert any(NOT_APART in note and "no request queue" in note for note in found.notes)
    seen = judged(tmp_path / "seen", evidence([SWAPPING], trace=trace | {"disk_reads": 1}))
    assert seen.apart and "disk idle 100 %" in card_of(seen).machine


def test_the_workload_s_own_disks_have_a_clause_of_their_own(tmp_path: Path) -> None:
    # 17 s; 17 MB and 34 MB written, 8.5 MB read.
    head = "elapsed_s\tlate_s\tdata-1_read_sectors\tdata-1_write_sectors"
    rows = [f"{head}\tdata-2_read_sectors\tdata-2_write_sectors", "0.0\t0.0\t0\t0\t0\t0"]
    rows.append("\t".join(str(one) for one in (17.0, 0.0, 16602, 33203, 0, 66406)))
    table: dict[str, str | bytes] = {"diskstats.tsv": "\n".join(rows) + "\n"}
    one = card_of(judged(tmp_path / "two", evidence([SWAPPING]) | table))
    moved = "0.5 MB/s read and 3.0 MB/s written"
    assert f"on the workload's own disks {moved}" in one.machine
    traced = evidence([SWAPPING], trace={"data_busy_us": 420_000})
    one = card_of(judged(tmp_path / "busy", traced | table))
    assert f"the workload's own disks busy 42 % with {moved}" in one.machine
    alone = card_of(judged(tmp_path / "none", evidence([SWAPPING]) | {"diskstats.tsv": IO_MS}))
    assert not any("own disks" in clause for clause in alone.machine)


def test_guessed_stacks_are_doubted(tmp_path: Path) -> None:
    note = "This kernel guesses its stacks"
    guessed = judged(tmp_path / "guessed", evidence([SWAPPING]), kernel={"unwinder": "guess"})
    assert any(one.startswith(note) for one in guessed.notes)
    known = judged(tmp_path / "known", evidence([SWAPPING]), kernel={"release": "6.12"})
    assert not any(one.startswith(note) for one in known.notes)


def test_a_trace_that_ends_early_is_no_zero(tmp_path: Path) -> None:
    files = evidence([SWAPPING], trace=BUSY | {"kswapd_awake_us": 500_000})
    whole = judged(tmp_path / "whole", files)
    assert not any("ends at" in note for note in whole.notes) and whole.apart
    assert "kswapd awake 50 %" in card_of(whole).machine
    rows = str(files["trace.tsv"]).splitlines(keepends=True)
    cut = "".join([rows[0], *(row for row in rows[1:] if float(row.split("\t")[0]) <= 9)])
    found = judged(tmp_path / "cut", files | {"trace.tsv": cut})
    one = card_of(found)
    assert "trace.tsv ends at 9.0 s." in found.notes and not found.apart
    assert not any("kswapd" in clause or "disk" in clause for clause in one.machine)
    # Of its 10 s, 4 were traced, and 0.8 of these dm-crypt's.
    assert one.seconds["dm_crypt"] == pytest.approx(0.8 * 4, abs=0.7)


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"samples": 900, "missed": 100}, "The evidence missed 100 of 1,000 samples: the causes"),
        ({"samples": 990, "missed": 10, "worst_late_s": 2.6}, "The evidence was 2.6 s late: the"),
        ({"samples": 990, "missed": 10, "worst_late_s": 1.1}, ""),
        ({"samples": "x", "missed": [], "worst_late_s": None}, ""),
    ],
)
def test_evidence_that_came_late_is_called_rough(
    tmp_path: Path, said: dict[str, Any], note: str
) -> None:
    observers = [{"name": "evidence", **said}]
    found = judged(tmp_path, evidence([SWAPPING], trace=BUSY), observers=observers)
    told = [one for one in found.notes if one.startswith("The evidence")]
    assert told == ([] if not note else told) and len(told) == bool(note)
    assert all(one.startswith(note) for one in told)


def test_two_clocks_of_dm_crypt_that_disagree_are_named(tmp_path: Path) -> None:
    files = evidence([SWAPPING], trace=BUSY)  # busy for 10 s
    agreed = judged(tmp_path / "agreed", files | {"diskstats.tsv": IO_MS})
    assert not any("rough" in note for note in agreed.notes)
    rough = judged(tmp_path / "rough", files | {"diskstats.tsv": IO_MS.replace("10000", "5000")})
    assert any("busy for 10 s by its requests, for 5 s by" in note for note in rough.notes)


def test_player_and_heartbeat_have_cards_and_are_in_no_sum(tmp_path: Path) -> None:
    player = Program(20, "player", rates={"blkio_us": 0.9}, looks=[("D", SWAP_IN)], stream="player")
    files = evidence([SWAPPING, player])
    files["latency-player.log"] = line_log([(BEGIN, "chunk 1 late 0.0"), (10.0, "chunk 2")], 0.1)
    run = one_run(tmp_path, files)
    found = run_causes(run)
    assert found is not None
    assert {one.stall.stream for one in found.cards} == {"gitk-1"}
    assert [one.stall.stream for one in found.others] == ["player", "player"]
    longest = found.others[0]
    assert longest.main == "swap_in" and card_lines(longest)[0].startswith("player was silent")
    assert found.total == pytest.approx(sum(one.stall.length for one in found.cards))
    assert as_json(run, found)["others"][0]["stream"] == "player"
    for whole in (True, False):
        block = run_block(run, whole, found)
        names = [block["streams"][index]["name"] for index in block["stalls"]["stream"]]
        told = dict(zip(names, block["stalls"]["why"], strict=True))
        assert "swap-in" in told["player"] and "swap-in" in told["gitk-1"]


OLD = ["writeback/writeback_congestion_wait", "writeback/writeback_wait_iff_congested"]
NEW = "vmscan/mm_vmscan_throttled"


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        (OLD, []),  # since 5.16
        ([NEW, "taskstats irq", "taskstats wpcopy", "taskstats compact"], []),  # 5.10
        ([*OLD, NEW], [*OLD, NEW]),
        ([*OLD, "trace of crypt: no such device here"], ["trace of crypt: no such device here"]),
    ],
)
def test_what_no_kernel_of_its_age_has_is_told_where_a_cause_is_lost_by_it(
    tmp_path: Path, missing: list[str], told: list[str]
) -> None:
    files = evidence([SWAPPING], trace={"compaction_us": 0})
    facts = {"evidence": {"asked": True, "delayacct": True, "not_available": missing}}
    notes = [one for one in judged(tmp_path, files, **facts).notes if "Not available" in one]
    said = [f"Not available on this kernel: {', '.join(told)}."] if told else []
    assert notes == said


def test_a_clock_of_compaction_is_missed_where_no_trace_has_its_time(tmp_path: Path) -> None:
    facts = {"evidence": {"not_available": ["taskstats compact"]}}
    found = judged(tmp_path, evidence([SWAPPING]), **facts)
    assert "Not available on this kernel: taskstats compact." in found.notes
