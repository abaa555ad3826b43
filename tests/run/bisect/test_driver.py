# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisect from its ends to its finding, on kernels whose runs are known."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from errors import UserError
from run.bisect import report, results, state
from run.bisect.__main__ import not_worse
from run.bisect.state import State
from tests.support.played_bisect import Player, World, bisect, commit, git, linear

QUICK = ("--profile", "quick")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "linux"


def asked(tree: Path, commits: list[str], *more: str) -> list[str]:
    return ["--bisect", commits[0], commits[-1], "--tree", str(tree), *QUICK, *more]


def since(commits: list[str], *steps: tuple[int, float]) -> World:
    """A world in which each step is so many times worse."""

    def level(name: str) -> float:
        seconds = 100.0
        for place, factor in steps:
            seconds *= factor if commits.index(name) >= place else 1
        return seconds

    return World(level)


def check_finding(found: State, culprit: str) -> None:
    finding = found.stages[0].finding
    assert finding["culprit"] == culprit[:12]
    assert finding["culprit_against_parent"]["verdict"] == "regressed"
    assert finding["revert_against_bad"]["verdict"] == "improved"


def replayed(tree: Path, folder: Path) -> str:
    """What git says after it has replayed the log."""
    git(tree, "bisect", "replay", str(folder / report.LOG))
    return git(tree, "bisect", "log")


def test_it_finds_confirms_and_reverts_the_commit(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 24)
    world = since(commits, (17, 2.0))
    # Three that do not compile beside the culprit, one that does not boot.
    world.broken, world.panics = frozenset(commits[13:16]), frozenset([commits[8]])
    player = Player(world, monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None and found.finished
    check_finding(found, commits[17])
    assert len(found.stages) == 1
    # Untested is neither good nor bad, and said.
    text = report.write(tmp_path / "b", found)
    assert f'The step is at {commits[17][:12]} ("mm: change 17")' in " ".join(text.split())
    for name, why in found.untestable.items():
        assert name in {one[:12] for one in (*commits[13:16], commits[8])}
        assert why.startswith(("does not build", "does not run"))
    # The two ends' runs, and the search's: far fewer than five of each commit.
    search = [one for one in world.ran if one.startswith("search/")]
    assert 4 <= len(search) < 30
    # Runs that confirm are fresh: no seed of theirs was run before.
    seeds: dict[str, set[int]] = {}
    for meta in sorted((tmp_path / "b").glob("*/*/*/meta.json")):
        run = json.loads(meta.read_text())
        mine = seeds.setdefault(meta.parent.parent.name, set())
        assert run["seed"] not in mine, meta
        mine.add(run["seed"])
    assert f"first bad commit: [{commits[17]}]" in replayed(tree, tmp_path / "b")
    assert f"commit {commits[17]}" in (tmp_path / "b" / report.MAIL).read_text()


def test_it_goes_on_to_the_run_after_ctrl_c(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 12)
    world = since(commits, (5, 2.0))
    player = Player(world, monkeypatch, tree)
    folder = tmp_path / "b"
    argv: list[str] = asked(tree, commits)
    done: set[str] = set()
    for stop_after in (4, 14, 30):
        world.stop_after, world.stopped = stop_after, False
        _, found = bisect(player, folder, argv)
        argv = ["--resume", str(folder)]
        assert found is None
        kept = {one.place for one in state.read(folder).runs}
        assert done <= kept
        done = kept
    world.stop_after, world.stopped = 1 << 30, False
    _, found = bisect(player, folder, argv)
    assert found is not None
    check_finding(found, commits[5])
    # Each run that counts was made once: what was cut short was made again, and nothing else.
    places = [one.place for one in found.runs]
    assert len(places) == len(set(places)) and done < set(places)


def test_ends_that_do_not_differ_are_no_bisect(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 4)
    player = Player(since(commits), monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None and not found.finished
    assert found.ends["verdict"] == "equivalent"
    assert {one.partition("/")[0] for one in player.world.ran} == {"ends"}


def test_ends_of_which_no_run_was_done_are_no_bisect(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 4)
    player = Player(since(commits, (2, 2.0)), monkeypatch, tree)
    judged = results.verdicts

    def to_the_limit(campaign: Path, baseline: str) -> dict[str, dict[str, Any]]:
        verdicts = judged(campaign, baseline)
        for verdict in verdicts.values():
            verdict["primary"] = (verdict.get("primary") or {}) | {"limit_s": 120.0}
        return verdicts

    monkeypatch.setattr(results, "verdicts", to_the_limit)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None and not found.finished and found.ends["verdict"] == "regressed"
    assert {one.partition("/")[0] for one in player.world.ran} == {"ends"}
    message = not_worse(found)
    assert message.startswith("No run of the ends was done, and a search needs such runs (--time")
    assert message.endswith(found.ends["sentence"])


def test_a_bisect_ends_when_one_of_its_ends_is_given_up(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 4)
    world = since(commits)
    world.aborts = frozenset(commits[-1:])
    player = Player(world, monkeypatch, tree)
    with pytest.raises(UserError, match=f"cut short 2 times: {commits[-1][:12]}"):
        bisect(player, tmp_path / "b", asked(tree, commits))
    # The other end's 20 runs would be for nothing.
    assert len(world.ran) < 12


def test_a_second_step_is_followed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 16)
    player = Player(since(commits, (4, 1.6), (11, 2.0)), monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None
    culprits = {one.finding["culprit"] for one in found.stages if one.finding}
    assert culprits == {commits[4][:12], commits[11][:12]}
    assert {one.kind for one in found.stages} <= {"row", "before", "after"}
    assert len(found.stages) == 2


def test_kernels_with_the_same_binary_are_one(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 16)
    world = since(commits, (9, 2.0))
    for place, name in enumerate(commits):  # only each third is compiled
        world.twins[name] = commits[place // 3 * 3]
    player = Player(world, monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None and found.twins
    check_finding(found, commits[9])


def test_a_finding_runs_each_binary_once(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 12)
    world = since(commits, (5, 2.0))
    for place, name in enumerate(commits):  # two binaries in all, and the revert's
        world.twins[name] = commits[0 if place < 5 else 5]
    player = Player(world, monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None
    check_finding(found, commits[5])
    parent, culprit = commits[4][:12], commits[5][:12]
    finding = found.stages[0].finding
    assert (finding["good_against_parent"], finding["culprit_against_bad"]) == ({}, {})
    fresh = {one.split("/")[1] for one in world.ran if one.startswith("finding-1/")}
    assert fresh == {parent, culprit, finding["revert"]}
    text = " ".join(report.write(tmp_path / "b", found).split())
    assert f"{commits[0][:12]} is the same binary as {parent}." in text
    assert f"{commits[-1][:12]} is the same binary as {culprit}." in text


def test_memory_is_matched(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = linear(tree, 8)
    world = since(commits, (3, 2.0))
    world.sizes = {name: 1500 * place for place, name in enumerate(commits)}
    player = Player(world, monkeypatch, tree)
    _, found = bisect(player, tmp_path / "b", asked(tree, commits))
    assert found is not None
    check_finding(found, commits[3])
    assert found.memory[commits[8][:12]]["more_mib"] == 12
    for one in found.runs:
        text = (tmp_path / "b" / one.place / "meminfo.tsv").read_text()
        has = int(text.splitlines()[1].split("\t")[2])
        assert abs(has - found.available_kib) <= 1024, one.place
    assert " changed by +" in " ".join(report.write(tmp_path / "b", found).split())


def test_a_merge_is_followed_into_what_it_brought(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linear(tree, 3)
    git(tree, "checkout", "-q", "-b", "side")
    side = [commit(tree, f"mm: side {n}", {"mm/side.c": f"{n}\n"}) for n in range(6)]
    git(tree, "checkout", "-q", "main")
    for n in range(4, 7):
        commit(tree, f"mm: change {n}", {"mm/file.c": f"{n}\n"})
    git(tree, "merge", "-q", "--no-ff", "-m", "Merge side", "side")
    merge = git(tree, "rev-parse", "HEAD")
    for n in range(7, 10):
        commit(tree, f"mm: change {n}", {"mm/file.c": f"{n}\n"})
    first = git(tree, "rev-list", "--max-parents=0", "HEAD")
    bad = git(tree, "rev-parse", "HEAD")

    def level(name: str) -> float:
        has = subprocess.run(
            ["git", "-C", str(tree), "merge-base", "--is-ancestor", side[2], name], check=False
        )
        return 200.0 if has.returncode == 0 else 100.0

    player = Player(World(level), monkeypatch, tree)
    argv = ["--bisect", first, bad, "--tree", str(tree), *QUICK]
    _, found = bisect(player, tmp_path / "b", argv)
    assert found is not None
    assert [one.kind for one in found.stages] == ["row", "merge"]
    assert found.stages[0].suspects == [merge[:12]]
    assert found.stages[1].finding["culprit"] == side[2][:12]
    report.write(tmp_path / "b", found)
    assert f"first bad commit: [{side[2]}]" in replayed(tree, tmp_path / "b")


def test_a_machine_that_runs_nothing_is_no_property_of_commits(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = linear(tree, 16)
    world = since(commits, (9, 2.0))
    world.aborts = frozenset(commits[1:-1])
    player = Player(world, monkeypatch, tree)
    with pytest.raises(Exception, match="3 runs in a row were cut short: as played"):
        bisect(player, tmp_path / "b", asked(tree, commits))
