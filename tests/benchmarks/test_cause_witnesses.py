# SPDX-License-Identifier: GPL-2.0-or-later
"""Causes and their witnesses: known answers from runs that are made up, and from real ones."""

import re
from pathlib import Path

import numpy as np
import pytest

from analysis.stall_causes.causes import CAUSES, UNEXPLAINED
from benchmarks.cause_witnesses.__main__ import HEAD, main
from benchmarks.cause_witnesses.agreement import Tally
from benchmarks.cause_witnesses.counters import OF
from benchmarks.synthetic_results.make import table
from errors import UserError
from tests.analysis.test_causes import ALONE
from tests.support.cause_evidence import BEGIN, evidence
from tests.support.loading import one_run

LENGTH, END, STEP = 10.0, 20.0, 0.25
PER_S = 400.0
COUNTERS = {
    "vmstat": (
        *("pswpin", "pswpout", "workingset_refault_anon", "workingset_refault_file"),
        *("pgscan_direct", "pgscan_direct_throttle", "allocstall_normal", "allocstall_movable"),
        *("compact_stall", "compact_migrate_scanned", "compact_free_scanned"),
    ),
    "diskstats": (
        *("swap_read_sectors", "swap_write_sectors", "fs_read_sectors", "fs_write_sectors"),
    ),
    "psi": ("cpu_some_us",),
}
TRACE = (
    *("direct_reclaim_us", "throttled_writeback_us", "throttled_noprogress_us"),
    *("kswapd_awake_us", "compaction_us"),
)


def stall_of(cause: str) -> tuple[float, float]:
    """Where it begins, and its length: who is always runnable lacked a CPU before, too."""
    return (0.0, BEGIN + LENGTH) if cause == "cpu_starved" else (BEGIN, LENGTH)


def written(folder: Path, cause: str, *, inside: float, outside: float) -> Path:
    """A run whose only stall has this cause; counters grow by so much a second, in it and else."""
    stamps = np.arange(0.0, END + STEP, STEP)
    begin, length = stall_of(cause)
    within = np.clip(stamps - begin, 0, length)
    sums = np.rint(within * inside + (stamps - within) * outside).astype(int)
    busy = (stamps > begin) & (stamps <= begin + length)
    gauge = np.where(busy, inside, outside).astype(int)
    # Everybody waits for IO but in the stall of a program that runs.
    waiting = np.rint(1e6 * (stamps - within * (inside > outside))).astype(int)
    more = {
        "vmstat": {"nr_writeback": gauge, "pgpgin": 8 * sums},  # KiB; of pages 4 would be swap-ins
        "diskstats": {"crypt_in_flight": gauge, "disk_in_flight": 0 * gauge},
        "psi": {"io_full_us": waiting},
    }
    files = evidence([ALONE[cause]], LENGTH, trace=dict.fromkeys(TRACE, 0.0))
    for name, counters in {**COUNTERS, "trace": TRACE}.items():
        columns = {one: sums.tolist() for one in counters}
        columns |= {one: values.tolist() for one, values in more.get(name, {}).items()}
        head = {"elapsed_s": stamps.tolist(), "late_s": [0.0] * len(stamps)}
        files[f"{name}.tsv"] = table({**head, **columns})
    one_run(folder, files)
    return folder


def rows(text: str, cause: str) -> list[list[str]]:
    """The cells of the table's rows of a cause, without its key."""
    found = [line.strip("| ").split(" | ") for line in text.splitlines()]
    return [cells[1:] for cells in found if cells[0] == f"`{cause}`"]


WITNESSED = [cause for cause, counters in OF.items() if counters and cause in ALONE]


def test_every_cause_is_there_with_witnesses_or_without() -> None:
    assert set(OF) == {cause.key for cause in CAUSES} - {UNEXPLAINED}
    assert set(WITNESSED) >= {"swap_in", "file_read", "reclaim_swapout", "cpu_starved"}
    for counters in OF.values():
        assert len({one.name for one in counters}) == len(counters)


@pytest.mark.parametrize("cause", WITNESSED)
def test_a_witness_that_moves_in_the_stall_alone_agrees(
    cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(written(tmp_path, cause, inside=PER_S, outside=0.0))])
    found = rows(capsys.readouterr().out, cause)
    assert [cells[0] for cells in found] == [one.name for one in OF[cause]]
    for _, seconds, more, without, there, higher in found:
        assert int(seconds) == stall_of(cause)[1] and int(without) >= 4
        assert (more, there, higher) == ("100 %", "0 %", "100 %")


@pytest.mark.parametrize("cause", ["swap_in", "reclaim_swapout", "cpu_starved"])
def test_a_witness_that_does_not_is_seen_to_disagree(
    cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(written(tmp_path / "never", cause, inside=0.0, outside=PER_S))])
    for _, _, more, _, _, higher in rows(capsys.readouterr().out, cause):
        assert (more, higher) == ("0 %", "0 %")
    main([str(written(tmp_path / "always", cause, inside=PER_S, outside=PER_S))])
    for _, _, more, _, there, higher in rows(capsys.readouterr().out, cause):
        assert (more, there, higher) == ("0 %", "0 %", "50 %")


def test_what_a_kernel_does_not_count_is_not_zero(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, "swap_in", inside=PER_S, outside=0.0)
    vmstat = folder / "k" / "1" / "vmstat.tsv"
    vmstat.write_text(vmstat.read_text().replace("workingset_refault_anon", "another"))
    main([str(folder)])
    text = capsys.readouterr().out
    by_name = {cells[0]: cells[1:] for cells in rows(text, "swap_in")}
    assert by_name["`workingset_refault_anon`"][:2] == ["10", "not available"]
    assert by_name["`pswpin`"][:2] == ["10", "100 %"]
    assert text.startswith("1 run: k (1).\n\n| " + " | ".join(HEAD))
    assert "In no second: `file_read`, `file_write`, " in text


def test_the_documents_figures_are_the_tools_own() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    output = (docs / "example" / "cause-witnesses.txt").read_text()
    lines = [line for line in output.splitlines() if line.startswith("|")]
    assert lines[0] == f"| {' | '.join(HEAD)} |" and len(lines) > 2
    page = " ".join((docs / "explain" / "causes.md").read_text().split())
    assert "](../example/cause-witnesses.txt)" in page
    cited = (
        (
            "file_read",
            "`pgpgin` without `pswpin`",
            "`pgpgin` without `pswpin` moved more than in the run's median second without the "
            "cause in {} of the seconds with `file_read` and in {} of those without",
        ),
        ("reclaim_swapout", "`pswpout`", "`pswpout` in {} with `reclaim_swapout` and {} without"),
        ("swap_in", "`pswpin`", "`pswpin` in {} with `swap_in` and {} without"),
    )
    for cause, witness, words in cited:
        (row,) = [line for line in lines if line.startswith(f"| `{cause}` | {witness} |")]
        cells = [cell.strip() for cell in row.split("|")]
        assert words.format(cells[4], cells[6]) in page, row
    keys = {line.split("`")[1] for line in lines[2:]}
    never = set(re.findall(r"`(\w+)`", output.partition("In no second: ")[2]))
    assert keys | never == set(OF) and not keys & never


def test_runs_are_added_and_each_is_its_own_measure() -> None:
    """In the second run all moves a hundred times as much: it is held to its own seconds."""
    tally = Tally()
    tally.add(np.array([2.0, 3.0]), np.array([0.0, 1.0, 1.0]))
    tally.add(np.array([50.0, 300.0]), np.array([100.0, 100.0]))
    tally.add(np.array([0.0, 1.0]), np.zeros(0))
    assert (tally.seconds, tally.more) == (6, 2 + 1 + 1)
    assert (tally.without, tally.more_without) == (5, 0)
    assert (tally.pairs, tally.higher) == (6 + 4, 6 + 2)


def test_a_folder_without_evidence_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, "swap_in", inside=1.0, outside=0.0)
    for name in ("tasks", "blocked", "trace"):
        (folder / "k" / "1" / f"{name}.tsv").unlink()
    with pytest.raises(UserError, match="no run has evidence"):
        main([str(folder)])
    assert re.fullmatch(r".*: k/1 has no evidence about causes\n", capsys.readouterr().err)
