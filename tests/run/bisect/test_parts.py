# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of a bisect by themselves: its command line, rows, hunks, memory, builder, state."""

import json
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.synthetic_results.make import table
from errors import UserError
from run import arguments
from run.bisect import hunks, options, rows, state
from run.bisect.builder import Builder
from run.bisect.memory import Memory, available, unmatched
from run.bisect.state import RunFacts, Stage, State, Step
from setup import apt, package_lists
from setup.trees import sources
from setup.trees.failures import DoesNotCompile
from tests.support.played_bisect import MARKS, commit, git, linear

REVISIONS = ["--bisect", "v7.1", "v7.2", "--tree", "linux"]


def refused(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        options.parse(argv)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_what_is_not_its_own_is_of_each_run() -> None:
    asked = options.parse([*REVISIONS, "--paths", "mm", "fs", "--profile", "quick", "--jobs", "1"])
    assert (asked.good, asked.bad, asked.paths) == ("v7.1", "v7.2", ("mm", "fs"))
    assert asked.options == ["--profile", "quick", "--jobs", "1"]
    assert options.is_asked(REVISIONS) and not options.is_asked(["--kernel", "debian:6.1"])


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (["--bisect", "v7.1", "v7.2"], "v7.1: a revision needs --tree PATH"),
        (["--bisect", "debian:6.1", "debian:7.2", "--paths", "mm"], "--paths needs --tree"),
        (["--bisect-hunks", "a", "b"], "--bisect-hunks needs --paths"),
        (["--bisect-hunks", "a", "b", "--paths", "mm", "--tree", "c"], "--tree does not go with"),
        ([*REVISIONS, "--kernel", "debian:6.1"], "--kernel does not go with a bisect"),
        ([*REVISIONS, "--runs=3"], "--runs does not go with a bisect"),
        ([*REVISIONS, "--bisect-hunks", "a", "b"], "two bisects"),
    ],
)
def test_what_cannot_be_is_one_line(
    argv: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(argv, capsys)
    assert why in said and said.count("\n") == 1


def test_an_option_of_a_bisect_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments.parse(["--kernel", "debian:6.1", "--tree", "linux"])
    assert "--tree goes with --bisect GOOD BAD" in capsys.readouterr().err


def test_a_row_is_the_first_parents_that_change_the_paths(tmp_path: Path) -> None:
    commits = linear(tmp_path / "linux", 3)
    commit(tmp_path / "linux", "doc", {"Documentation/x": "x\n"})
    bad = commit(tmp_path / "linux", "fs: last", {"fs/x.c": "x\n"})
    row = rows.Tree(str(tmp_path / "linux")).row(commits[0], bad, ["mm"])
    assert [one.commit for one in row] == [*commits, bad]
    assert row[1].subject == "mm: change 1" and row[1].parents == [commits[0]]
    git(tmp_path / "linux", "checkout", "-q", "-b", "other", commits[1])
    other = commit(tmp_path / "linux", "elsewhere", {"mm/other.c": "x\n"})
    with pytest.raises(UserError, match=f"the last commit of both is {commits[1][:12]}"):
        rows.Tree(str(tmp_path / "linux")).row(other, bad, [])


def test_debians_kernels_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def package(version: str) -> apt.Package:
        name = f"linux-image-{version.partition('-')[0]}+deb13-cloud-amd64"
        found = SimpleNamespace(
            name=name, version=version, size=30 << 20, suite="stable", codename="trixie", sha256="x"
        )
        return cast(apt.Package, found)

    listed = [
        package(one) for one in ("6.1.9-1", "6.12.90-1", "6.12.118-1", "6.16.3-1", "7.2.13-1")
    ]
    monkeypatch.setattr(
        package_lists, "update", lambda mirror=None, **_: SimpleNamespace(packages=listed)
    )
    row = rows.debian_row("debian:6.12.90", "debian:7.2", None)
    assert [one.name for one in row] == ["6.12.90", "6.12.118", "6.16.3", "7.2.13"]
    assert row[1].kernel == "debian:6.12.118-1"
    with pytest.raises(UserError, match="is not older than"):
        rows.debian_row("debian:7.2", "debian:6.12", None)
    with pytest.raises(UserError, match="the mirror has no kernel 5"):
        rows.debian_row("debian:5.0", "debian:6.12", None)


def folder(place: Path, files: dict[str, str]) -> Path:
    for name, text in {**dict.fromkeys(MARKS, "x\n"), **files}.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_hunks_add_up_to_the_other_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    old = [f"line {n}" for n in range(200)]
    new = [*old]
    new[10] = "changed"
    del new[50:55]
    new[100:100] = ["one", "two"]
    new.insert(0, "top")
    a = {"mm/x.c": "\n".join(old) + "\n", "mm/gone.c": "g\n", "fs/f.c": "f\n"}
    # The other one ends without a newline.
    b = {"mm/x.c": "\n".join(new), "mm/new.h": "h\n", "fs/f.c": "other\n"}
    trees = [hunks.source_of(str(folder(tmp_path / n, f)), None) for n, f in (("a", a), ("b", b))]
    place = tmp_path / "h.git"
    differ = hunks.difference(trees[0], trees[1], ["mm"])
    assert len(differ.changes) == 7
    hunks.make_history(place, differ, differ.changes)
    subjects = git(place, "log", "--reverse", "--format=%s", hunks.HEAD).splitlines()
    assert subjects[:3] == ["a as it is", "mm/new.h: the new file", "mm/gone.c: the file is gone"]
    assert subjects[3].startswith("mm/x.c: hunk 1 of 5, line 1")
    listed = git(place, "ls-tree", "-r", "--name-only", hunks.HEAD).split()
    assert listed == sorted([*MARKS, "fs/f.c", "mm/new.h", "mm/x.c"])
    assert git(place, "cat-file", "blob", f"{hunks.HEAD}:mm/x.c") == "\n".join(new)
    # Each commit is what `git apply` makes of the hunks so far.
    steps = git(place, "rev-list", "--reverse", hunks.HEAD).split()
    for before, after in pairwise(steps[2:]):
        stat = git(place, "diff", "--shortstat", before, after)
        assert stat.startswith("1 file changed")
        assert git(place, "diff", "-U3", before, after).count("\n@@ ") == 1
    assert git(place, "show", f"{steps[0]}:fs/f.c") == "f"
    with pytest.raises(UserError, match="do not differ in Documentation"):
        hunks.difference(trees[0], trees[1], ["Documentation"])
    assert sources.from_git(place, steps[-1]).commit == steps[-1]
    # Without the new file and the second hunk: that one's lines are as they were.
    some = [change for change in differ.changes if "new file" not in str(change)]
    (second,) = (change for change in some if "hunk 2" in str(change))
    some.remove(second)
    hunks.make_history(place, differ, some)
    assert int(git(place, "rev-list", "--count", hunks.HEAD)) == 6
    assert not git(place, "ls-tree", hunks.HEAD, "mm/new.h")
    result = git(place, "cat-file", "blob", f"{hunks.HEAD}:mm/x.c").splitlines()
    assert result == [*new[:11], "line 10", *new[12:]]


def change(number: int) -> hunks.Change:
    return hunks.Change("mm/x.c", "100644", (), f"hunk {number}", (number, number + 1))


def test_hunks_that_compile_are_kept_and_those_that_need_them_are_tried_again() -> None:
    changes = [change(number) for number in range(40)]
    needs = {3: {17}, 8: {9}, 21: {100}, 22: {21}, 30: {3}}
    attempts = 0

    def compiles(some: Sequence[hunks.Change]) -> bool:
        nonlocal attempts
        attempts += 1
        present = {one.part[0] for one in some if one.part}
        return all(needs.get(number, set()) <= present for number in present)

    kept = hunks.that_compile(changes, compiles)
    # 21 needs something that is in no hunk, and 22 needs 21.
    assert [change for change in changes if change not in kept] == [changes[21], changes[22]]
    assert kept == [one for one in changes if one in kept] and attempts < 60
    assert hunks.that_compile(changes[21:23], compiles) == []


def run_with(place: Path, kib: int) -> Path:
    place.mkdir(parents=True)
    rows: dict[str, list[float | int | None]] = {
        "elapsed_s": [0.0, 0.25],
        "late_s": [0.0, 0.0],
        "MemAvailable": [kib, kib - 9000],
    }
    (place / "meminfo.tsv").write_text(table(rows))
    return place


def test_memory_is_that_of_the_good_end(tmp_path: Path) -> None:
    known = State([], "commits")
    memory = Memory(known, "good", threading.RLock())
    # Before the good end has begun nothing is known.
    assert not memory.misfits("bad", run_with(tmp_path / "bad/1", 195_000), 0)
    assert not memory.misfits("good", run_with(tmp_path / "good/1", 200_000), 0)
    assert known.available_kib == 200_000
    assert memory.misfits("bad", tmp_path / "bad/1", 0)
    assert memory.more_mib("bad") == 5 and memory.more_mib("other", near="bad") == 5
    assert not memory.misfits("bad", run_with(tmp_path / "bad/2", 200_100), 5)
    assert not unmatched(known)
    # Of one that never fits the last is taken.
    cut = [memory.misfits("odd", run_with(tmp_path / f"odd/{n}", 190_000), 0) for n in range(5)]
    assert cut == [True, True, True, False, False]
    assert unmatched(known) == ["odd"]


def test_no_memory_is_known_before_the_workload(tmp_path: Path) -> None:
    assert available(tmp_path) is None
    (tmp_path / "meminfo.tsv").write_text("elapsed_s\tlate_s\tMemAvailable\n0.0\t0.0\t1234")
    assert available(tmp_path) is None  # the line is not whole yet
    (tmp_path / "meminfo.tsv").write_text("elapsed_s\tlate_s\tMemAvailable\n0.0\t0.0\t1234\n")
    assert available(tmp_path) == 1234


def test_kernels_are_built_in_the_order_in_which_they_are_wanted(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    order: list[str] = []

    def make(step: Step, progress: object) -> Any:
        begun.set()
        assert go.wait(30)
        order.append(step.name)
        if step.name == "broken":
            raise DoesNotCompile("mm/x.c:1: error", log="all of it\n", label="broken")
        if step.name == "bug":
            raise RuntimeError("a bug")
        return f"ready {step.name}"

    builder = Builder(make, tmp_path)
    steps = {name: Step(name, name) for name in ("a", "b", "broken", "bug")}
    builder.want([steps["a"], steps["b"]])
    assert begun.wait(30) and builder.now == "making a"
    builder.want([steps["broken"], steps["bug"]])  # b is wanted no more
    go.set()
    for _ in range(3000):
        if made := builder.made("bug"):
            break
        threading.Event().wait(0.01)
    assert order == ["a", "broken", "bug"]
    assert made is not None and isinstance(made.error, RuntimeError)
    broken = builder.made("broken")
    assert broken is not None and broken.why_not.startswith("does not build: mm/x.c:1: error")
    assert "all of it" in (tmp_path / "broken.log").read_text()
    assert builder.made("b") is None
    builder.end()


def test_the_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    known = State(["--bisect", "a", "b"], "commits", steps={"a": Step("a", "git:x@a")})
    known.stages = [Stage(["a", "b"], probable=[("a", 0.5)])]
    known.runs = [RunFacts("ends/a/1", "a", "hung", None)]
    known.write(tmp_path)
    assert state.read(tmp_path) == known
    text = json.loads((tmp_path / state.FILE).read_text())
    for damaged in ({**text, "format": 2}, {**text, "runs": [{}]}, {**text, "steps": 3}):
        (tmp_path / state.FILE).write_text(json.dumps(damaged))
        with pytest.raises(UserError, match="was edited or damaged"):
            state.read(tmp_path)
