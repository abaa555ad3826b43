# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's evidence: each table is read when it is asked for, once, and few are kept in memory."""

import pickle
from collections import Counter
from pathlib import Path

import pytest

from analysis.figures.failed_allocations import look
from analysis.reading import files
from analysis.reading.evidence import KEPT, Evidence
from analysis.reading.evidence_tables import read_trace
from analysis.stall_causes.run_causes import run_causes
from tests.support.loading import one_run

TRACE = "elapsed_s\tlate_s\talloc_failures\n0.0\t0.0\t3\n1.0\t0.0\t5\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was opened, by its name."""
    counts: Counter[str] = Counter()
    whole = files.open_plain

    def counting(path: Path) -> object:
        counts[path.name] += 1
        return whole(path)

    monkeypatch.setattr(files, "open_plain", counting)
    return counts


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path, opened: Counter[str]) -> None:
    run = one_run(tmp_path, {"trace.tsv": TRACE})
    assert opened["trace.tsv"] == 0
    assert run.evidence.trace is not None and run.evidence.tells
    assert opened["trace.tsv"] == 1


def test_causes_and_failed_allocations_read_a_table_once(
    tmp_path: Path, opened: Counter[str]
) -> None:
    run = one_run(tmp_path, {"trace.tsv": TRACE})
    assert run_causes(run) is not None
    assert look(run).happened == look(run).happened == 2
    for name in ("trace.tsv", "tasks.tsv", "blocked.tsv", "allocfail.tsv", "kern.log"):
        assert opened[name] <= 1, name


def test_the_tables_of_few_runs_stay_in_memory(tmp_path: Path, opened: Counter[str]) -> None:
    each = []
    for number in range(KEPT + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "trace.tsv").write_text(TRACE)
        each.append(Evidence(folder))
        assert each[-1].trace is not None
    assert each[-1].trace is not None and opened["trace.tsv"] == KEPT + 1
    assert each[0].trace is not None and opened["trace.tsv"] == KEPT + 2


def test_damage_is_named_as_often_as_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "trace.tsv").write_text(TRACE + "2.0\t0.0")
    evidence = Evidence(tmp_path)
    problem = "trace.tsv: its last line was cut short and is left out"
    assert evidence.table(read_trace)[1] == evidence.problems == [problem]


def test_another_process_reads_for_itself(tmp_path: Path) -> None:
    (tmp_path / "trace.tsv").write_text(TRACE)
    evidence = Evidence(tmp_path)
    before = len(pickle.dumps(evidence))
    assert evidence.trace is not None
    assert len(pickle.dumps(evidence)) == before
    again = pickle.loads(pickle.dumps(evidence)).trace
    assert again is not None and list(again.columns["alloc_failures"]) == [3, 5]
