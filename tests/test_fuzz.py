# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzzer detects faults, repeats a case exactly, and finds nothing within a minute."""

import subprocess
import sys
import tempfile
import types
from pathlib import Path
from random import Random

import pytest

from benchmarks.synthetic_results.make import make_campaign
from tests.fuzz import child
from tests.fuzz.cases import make_bases, play
from tests.fuzz.mutations import OF_FOLDERS
from tests.support.suite_copy import SUITE


def ended(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> child.Ended:
    """The end of a command with this main()."""
    module = types.ModuleType("wrong")
    exec(f"import os, sys\ndef main():\n    {body}\n", module.__dict__)
    monkeypatch.setitem(sys.modules, "wrong", module)
    return child.run("wrong", [], folder / "log")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("return 0", ""),
        ("print('wrong: one line', file=sys.stderr); return 3", ""),
        ("return 1", "status 1"),
        ("return 3", "status 3 with 0 lines of error"),
        ("print('two\\nlines', file=sys.stderr); return 3", "status 3 with 2 lines of error"),
        ("return [][1]", "traceback: IndexError: list index out of range"),
        ("return len(bytearray(3 << 30))", "traceback: MemoryError"),
        ("os.kill(os.getpid(), 9)", "killed by signal 9"),
    ],
)
def test_what_a_reader_must_not_do_is_a_fault(
    body: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    detected = ended(monkeypatch, tmp_path, body).fault
    assert detected.startswith(fault) and bool(detected) == bool(fault)


def test_too_much_cpu_time_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "CPU_S", 1)
    detected = ended(monkeypatch, tmp_path, "exec('while True: pass')").fault
    assert detected.startswith("killed by signal 24")


def test_each_mutation_changes_something(tmp_path: Path) -> None:
    for name, mutate in OF_FOLDERS.items():
        changed = 0
        for seed in range(4):
            folder = make_campaign(tmp_path / f"{name}-{seed}", 1, 2)
            before = contents(folder)
            mutate(Random(seed), folder)
            changed += contents(folder) != before
        assert changed, name


def contents(folder: Path) -> dict[str, bytes]:
    """The plain files below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_case_is_the_same_again(tmp_path: Path) -> None:
    bases = make_bases(tmp_path / "bases")
    first, again = (play(7, 5, bases, tmp_path / place) for place in ("a", "b"))
    assert first == again and first.mutations
    trees = [contents(tmp_path / place / "results") for place in ("a", "b")]
    assert trees[0] == trees[1] != {}


def test_a_case_leaves_nothing_outside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, *_, bundle = make_bases(tmp_path / "bases")
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(outside))
    for number in range(4):
        assert not play(1, number, [bundle], tmp_path / "case").ended.fault
    assert not list(outside.iterdir())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_minute_finds_nothing() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", "60"]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
