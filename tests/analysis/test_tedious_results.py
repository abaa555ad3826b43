# SPDX-License-Identifier: GPL-2.0-or-later
"""Results made to take long: the work grows with the bytes, not with a number or a square."""

import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.figures.stalls import Stall
from analysis.reading.counter_tables import MOST_COLUMNS, MOST_ROWS, parse_table
from analysis.reading.evidence_tables import MOST_TASKS, Look, Task, read_tasks
from analysis.reading.latency_log import MOST_EVENTS, parse_events, parse_lines
from analysis.reading.load import MOST_FACTS, load_campaign
from analysis.stall_causes import critical_path
from analysis.stall_causes.critical_path import MOST_SPANS, MOST_WITNESSES, CriticalPath
from analysis.stall_causes.machine import RunCounters
from analysis.stall_causes.run_causes import MOST_CARDS, run_causes
from analysis.text.summary_files import summary
from benchmarks.synthetic_results.make import line_log, meta, write_run
from errors import UserError
from graphs.page.run_data import run_block
from tests.support.cause_evidence import SWAP_IN, Program, evidence
from tests.support.loading import one_run


def cpu_s(work: Callable[[], object]) -> float:
    """Seconds of this process's CPU time, the least of three times."""
    took = []
    for _ in range(3):
        begin = time.process_time()
        work()
        took.append(time.process_time() - begin)
    return min(took)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The length of each span that a stall is divided into."""
    found: list[float] = []
    whole = CriticalPath._span

    def counted(self: CriticalPath, shares, witnesses, begin, end) -> float:  # type: ignore[no-untyped-def]
        found.append(end - begin)
        return whole(self, shares, witnesses, begin, end)

    monkeypatch.setattr(CriticalPath, "_span", counted)
    return found


ALIVE = evidence([Program(7, looks=[("D", SWAP_IN)], rates={"cpu_us": 0.1})])
FAR = 99_999_999.0
LATE: dict[str, dict[str, str | bytes]] = {
    "a gap": {"latency-gitk-1.log": f"{FAR:.3f} {FAR:.3f} a\n"},
    "an open gap": {"latency-gitk-1.log": f"1.000 1.000 a\n{FAR:.3f} {FAR - 1:.3f} [end]\n"},
    "an event": {
        "latency-gitk-1.log": "1.000 1.000 a\n",
        "events.jsonl": json.dumps({"t": FAR, "event": "end", "elapsed": FAR}) + "\n",
    },
}


@pytest.mark.parametrize("files", LATE.values(), ids=LATE)
def test_a_number_alone_makes_no_work(
    tmp_path: Path, files: dict[str, str | bytes], spans: list[float]
) -> None:
    run = one_run(tmp_path, {**ALIVE, **files})
    found = run_causes(run)
    assert found is not None and 0 < len(spans) <= 2 * MOST_SPANS
    assert found.total == pytest.approx(FAR, rel=1e-6)
    assert found.unexplained > 0.99


@pytest.mark.parametrize("number", [1e8, 1e15, 1e17, 1e308, -1.0, 10**400])
def test_a_time_that_no_run_lasts_is_none(tmp_path: Path, number: float) -> None:
    events = [
        {"t": number, "event": "end", "elapsed": number},
        {"t": number, "event": "stream-end", "stream": "gitk-1", "elapsed": number},
    ]
    files: dict[str, str | bytes] = {
        **ALIVE,
        "latency-gitk-1.log": line_log([(5.0, "a"), (2.0, "b")], None),
        "events.jsonl": "".join(json.dumps(event) + "\n" for event in events),
        "vmstat.tsv": "elapsed_s\tpgpgin\n1.000\t5\n" + "9" * 18 + "\t6\n",
    }
    run = one_run(tmp_path, files, elapsed_s=number)
    assert run.last_sent == 7.0 and run.streams["gitk-1"].open_gap == 0
    assert any("of a time that no run lasts" in warning for warning in run.warnings)
    assert summary(load_campaign(tmp_path)) and run_block(run, True, run_causes(run))


def test_stalls_beyond_the_longest_are_unexplained_and_that_is_said(tmp_path: Path) -> None:
    gaps = [(10.0, "a"), *[(1.0, "b")] * (MOST_CARDS + 9)]
    found = run_causes(one_run(tmp_path, {**ALIVE, "latency-gitk-1.log": line_log(gaps, 0.1)}))
    assert found is not None and len(found.cards) == MOST_CARDS
    assert found.total == pytest.approx(10 + MOST_CARDS + 9)
    assert any("5,000 longest of 5,010 stalls" in note for note in found.notes)


def path_of(run: Path, tasks: list[Task], looks: list[Look]) -> CriticalPath:
    machine = RunCounters(one_run(run, {}))
    return CriticalPath(tasks, sorted(looks, key=lambda one: one.at), machine, {})


def looks_at(count: int, at: Callable[[int], float], stack: str = SWAP_IN) -> list[Look]:
    frames = tuple(stack.split(" <- "))
    return [Look(at(n), "gitk-1", 1 + n % 3, "x", "D", "", frames) for n in range(count)]


def test_the_looks_of_a_stall_are_found_without_seeing_the_others(tmp_path: Path) -> None:
    def spent(count: int) -> float:
        path = path_of(tmp_path / str(count), [], looks_at(count, lambda n: n / 4))
        each = [Stall(n / 4, 1.5, "gitk-1") for n in range(0, count, 8)]
        return cpu_s(lambda: [path.shares(stall) for stall in each])

    assert spent(8000) < 12 * max(spent(2000), 0.01)


def test_locks_at_one_moment_take_no_square(tmp_path: Path) -> None:
    lock = "rwsem_down_read_slowpath <- down_read <- do_user_addr_fault"

    def spent(count: int) -> float:
        path = path_of(tmp_path / str(count), [], looks_at(count, lambda n: 5 + n * 1e-6, lock))
        return cpu_s(lambda: path.shares(Stall(4, 3, "gitk-1")))

    assert spent(12_000) < 12 * max(spent(3000), 0.01)


def test_a_stall_has_so_many_witnesses_and_no_more(tmp_path: Path) -> None:
    looks = [Look(5 + n / 1000, "gitk-1", 100 + n, "x", "D", "", ()) for n in range(500)]
    looks += looks_at(20, lambda n: 5 + n / 10)
    found = path_of(tmp_path, [], looks).witnesses(Stall(4, 3, "gitk-1"))
    assert len(found) == MOST_WITNESSES == critical_path.MOST_WITNESSES
    assert {one.pid for one in found[:3]} == {1, 2, 3}


def test_more_tasks_than_a_run_has_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    rows = ["elapsed_s\tstream\tpid\tstate\tcpu_us"]
    rows += [f"{n}.000\tgitk-1\t{7 + n % 2 * n}\tR\t{n}" for n in range(2 * MOST_TASKS + 10)]
    (tmp_path / "tasks.tsv").write_text("\n".join(rows) + "\n")
    problems: list[str] = []
    tasks = read_tasks(tmp_path, problems)
    assert tasks is not None and len(tasks) == MOST_TASKS
    assert len(tasks[0].stamps) == MOST_TASKS + 5
    assert problems == [f"tasks.tsv: only its first {MOST_TASKS:,} tasks are read"]


SWOLLEN: dict[str, bytes] = {
    "newlines": b"\n" * (4 << 20),
    "blanks": b" " * (4 << 20) + b"\n",
    "lines": b"1.000 0.000\n" * 400_000,
    "lines of which one is damaged": b"x\n" + b"1.000 0.000\n" * 400_000,
}


@pytest.mark.parametrize("raw", SWOLLEN.values(), ids=SWOLLEN)
def test_a_log_takes_a_few_times_its_bytes(raw: bytes) -> None:
    tracemalloc.start()
    assert len(parse_lines(raw).elapsed) in (0, 400_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(raw)


def test_a_table_of_empty_cells_takes_a_few_times_its_bytes() -> None:
    head = b"elapsed_s" + b"".join(b"\tc%d" % n for n in range(999))
    raw = head + b"\n" + (b"1" + b"\t" * 999 + b"\n") * 4000
    tracemalloc.start()
    table = parse_table(raw, ("c1",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert table is not None and len(table.columns["elapsed_s"]) == 4000
    assert peak < 5 * len(raw)


def test_rows_columns_and_events_beyond_any_runs_are_left_out_and_that_is_said() -> None:
    rows = MOST_ROWS + 200_000
    table = parse_table(b"elapsed_s\n" + b"1\n" * rows)
    assert table is not None and MOST_ROWS < len(table.columns["elapsed_s"]) < rows
    assert any("rows are read" in problem for problem in table.problems)
    assert parse_table(b"elapsed_s" + b"\tx" * MOST_COLUMNS + b"\n") is None
    events, problems = parse_events(b'{"event": "x"}\n' * (MOST_EVENTS + 5))
    assert len(events) == MOST_EVENTS and problems == ["only its first 10,000 events are read"]


def test_more_json_than_fits_is_one_line(tmp_path: Path) -> None:
    for number in range(1, 4):
        run = write_run(tmp_path / "a" / str(number), {})
        with (run / "meta.json").open("wb") as sparse:
            sparse.truncate(MOST_FACTS // 2)
    with pytest.raises(UserError, match="have 48 MiB together"):
        load_campaign(tmp_path)


def test_a_run_without_an_end_ends_where_its_lines_do(tmp_path: Path) -> None:
    write_run(
        tmp_path / "a" / "1",
        {"meta.json": json.dumps(meta("a")), "latency-gitk-1.log": "1.000 1.000 a\n"},
    )
    assert load_campaign(tmp_path).runs[0].last_sent == 1.0
