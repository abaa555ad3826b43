# SPDX-License-Identifier: GPL-2.0-or-later
"""seqio without a guest: parameters, fio's words, figures, the array's commands.

What fio does on a RAID is in tests/in_vm/test_seqio_in_vm.py.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.workload import Description
from errors import Exit, UserError
from run.arguments import parse
from workloads import raid, seqio, seqio_load
from workloads.registry import find
from workloads.seqio_load import MODES, Endless, Load, read_seconds

QUICK = ["--workload", "seqio", "--profile", "quick"]
Record = list[tuple[str, ...]]


def described(*argv: str) -> Description:
    options = parse([*QUICK, *argv])
    return find(options.workload).describe(options)


def cells(found: Description) -> set[str]:
    return {key for table in found.tables for row in table.rows for key in row.figures}


@pytest.mark.parametrize(
    "load", ["total=6M", "total=0", "total=25G", "least=3", "most=128", "least=0"]
)
def test_files_are_whole_records_and_processes_double(load: str) -> None:
    with pytest.raises(UserError, match="--load"):
        parse([*QUICK, "--load", load])


def test_fewer_at_last_than_at_first_is_refused() -> None:
    with pytest.raises(UserError, match="most=2 processes are fewer than least=4") as raised:
        parse([*QUICK, "--load", "least=4,most=2"])
    assert raised.value.status == Exit.USAGE


def test_the_mails_processes_and_memory() -> None:
    assert seqio.counts(1, 64) == [1, 2, 4, 8, 16, 32, 64] and seqio.counts(8, 8) == [8]
    full = parse(["--workload", "seqio", "--profile", "full"])
    assert seqio.WORKLOAD.values(full) == {"total": 8 << 30, "least": 1, "most": 64}
    assert full.memory == parse(QUICK).memory == 256 << 20
    assert seqio.WORKLOAD.more_bytes(full) == 8 << 30


def test_each_file_of_any_count_is_whole_records() -> None:
    for n in seqio.counts(1, seqio.MOST):
        assert (seqio.WHOLE // n) % (seqio_load.RECORD_KIB << 10) == 0


def fio_said(mode: str, moved: Any, ms: Any, error: Any = 0) -> str:
    """The parts of fio's JSON that are read, behind a line of its own."""
    job = {"jobname": mode, "error": error, MODES[mode]: {"io_bytes": moved, "runtime": ms}}
    return "fio: a note\n" + json.dumps({"fio version": "fio-3.33", "jobs": [job]})


def test_fios_seconds() -> None:
    assert read_seconds(fio_said("reread", 4096, 2500), "reread", 4096) == 2.5


@pytest.mark.parametrize(
    "text",
    [
        fio_said("write", 4095, 2500),
        fio_said("write", 4096, 0),
        fio_said("write", 4096, 2500, error=28),
        fio_said("write", "4096", 2500),
        fio_said("read", 4096, 2500),
        '{"jobs": []}',
        "",
    ],
)
def test_fio_that_did_not_move_all_has_no_seconds(text: str) -> None:
    with pytest.raises(UserError, match="fio: write: "):
        read_seconds(text, "write", 4096)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=4), each),
)


@given(st.text(max_size=30) | JSON.map(json.dumps), JSON, JSON, JSON)
def test_whatever_fio_says_is_seconds_or_a_users_error(
    text: str, moved: Any, ms: Any, error: Any
) -> None:
    for said in (text, fio_said("read", moved, ms, error)):
        try:
            assert read_seconds(said, "read", 4096) > 0
        except UserError as raised:
            assert "\n" not in str(raised)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """One whose fio takes two seconds and moves 320 MiB, in no time."""
    counts = {"read": 0, "write": 0}

    def fio(self: Load, mode: str, processes: int) -> float:
        counts[MODES[mode]] += 320 << 20
        return 2.0

    monkeypatch.setattr(seqio_load, "moved", lambda disks: dict(counts))
    monkeypatch.setattr(seqio_load, "SEEN_S", 0.0)
    monkeypatch.setattr(raid, "file_system", lambda place: [("sleep", "0.2")])
    monkeypatch.setattr(Load, "fio", fio)
    figures = tmp_path / "figures.json"
    yield Load(argparse.Namespace(place=tmp_path, disks=[], mib=320, rate=0, figures=figures))


@pytest.mark.timeout(60)
def test_a_program_may_complain_at_length(load: Load) -> None:
    """More than a pipe holds; the last line is why it failed."""
    at_length = "head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; echo why >&2"
    load._run("fio", "write", ["sh", "-c", at_length])
    with pytest.raises(UserError, match=r"^fio: why$"):
        load._run("fio", "write", ["sh", "-c", f"{at_length}; exit 3"])


def test_every_cell_is_a_figure_of_the_load_or_recorded(load: Load) -> None:
    load.set_up()
    for n in seqio.counts(4, 16):
        load.measure(n)
    load.write_figures()
    found = described()
    keys = {one.key for one in found.recorded}
    assert cells(found) <= keys | load.figures.keys()
    assert len(keys) == len(found.recorded) and not keys & load.figures.keys()
    moments = {key for one in found.recorded for key in (one.since, one.until) if key}
    assert moments <= load.figures.keys()
    assert load.figures["time"] == 12 * 2.0 and load.figures["mib-rewrite-8"] == 320
    assert load.figures["rate-read-4"] == pytest.approx(320 * 1.048576 / 2)
    spans = [load.figures[key] for key in ("at-write-4-begin", "at-write-4-end", "at-read-4-begin")]
    assert spans == sorted(spans)


def test_what_is_written_without_end_is_a_figure_at_any_time(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run ends it in the middle of fio, and then looks at the file."""
    said = tmp_path / "figures.json"
    options = argparse.Namespace(place=tmp_path, disks=[], mib=64, rate=0, least=1, figures=said)
    endless = Endless(options)
    rounds: list[str] = []

    def fio(mode: str, processes: int) -> float:
        rounds.append(mode)
        Load.fio(endless, mode, processes)
        endless.while_it_works()
        if len(rounds) == 3:
            raise InterruptedError
        return 0.0

    monkeypatch.setattr(endless, "fio", fio)
    with pytest.raises(InterruptedError):
        endless.go_on()
    assert rounds == ["write", "rewrite", "rewrite"]
    assert json.loads(said.read_text())["mib-written"] == 3 * 320


def test_no_description_is_more_than_a_result_holds(load: Load) -> None:
    """docs/reference/results-format.md: at most 200 figures, 8 tables of 60 rows and 12 columns."""
    load.set_up()
    for n in seqio.counts(1, 64):
        load.measure(n)
    found = described("--load", "least=1,most=64")
    assert len(load.figures) <= 200 and len(found.recorded) <= 200 and len(found.tables) <= 8
    assert all(len(table.rows) <= 60 and len(table.columns) <= 12 for table in found.tables)


def test_an_array_is_taken_apart_however_its_run_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: Record = []
    monkeypatch.setattr(raid, "command", lambda *argv: said.append(argv))
    place = tmp_path / "raid"
    with pytest.raises(InterruptedError), raid.assembled(("vdb", "vdc"), place):
        assert place.is_dir()
        ((*create, one, other),) = said
        assert create[:2] == ["mdadm", "--create"] and (one, other) == ("/dev/vdb", "/dev/vdc")
        assert not any("chunk" in word for word in create)
        raise InterruptedError
    assert [argv[1] for argv in said] == ["--create", "--stop"] and not place.exists()
