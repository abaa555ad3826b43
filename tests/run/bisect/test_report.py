# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisect says at its end, where it is not one commit that was confirmed."""

from pathlib import Path

from run.bisect import report
from run.bisect.state import RunFacts, Stage, State, Step


def known(stage: Stage) -> State:
    names = [f"c{n}" for n in range(6)]
    steps = {name: Step(name, f"git:x@{name}", f"mm: {name}", name * 20) for name in names}
    found = State(["--bisect", "a", "b", "--tree", "linux"], "commits", steps=steps)
    found.stages = [stage]
    found.ends = {"verdict": "regressed", "sentence": "b stalls more than a.", "newest": ""}
    found.runs = [
        RunFacts(f"search/{name}/1", name, "completed", 1.0) for name in ("c0", "c2", "c5")
    ]
    return found


def words(text: str) -> str:
    return " ".join(text.split())


ROW = [f"c{n}" for n in range(6)]


def test_not_sure_names_the_probable_ones_and_calls_none_bad(tmp_path: Path) -> None:
    stage = Stage(ROW, word="unsure", why="no further run would tell them apart")
    stage.probable = [("c3", 0.6), ("c4", 0.3)]
    text = words(report.write(tmp_path, known(stage)))
    assert "Not sure which commit it is: no further run would tell them apart." in text
    assert '60.0% c3 ("mm: c3") 30.0% c4 ("mm: c4")' in text
    log = (tmp_path / report.LOG).read_text().splitlines()
    assert [line for line in log if line.startswith("git bisect")] == [
        f"git bisect start '{'c5' * 20}' '{'c0' * 20}'"
    ]
    assert not (tmp_path / report.MAIL).exists()


def test_a_range_of_untestable_commits_is_said_as_one(tmp_path: Path) -> None:
    stage = Stage(ROW, word="found", suspects=["c3", "c4", "c5"], probability=0.99)
    state = known(stage)
    state.untestable = {"c3": "does not build: no", "c4": "does not build: no"}
    text = words(report.write(tmp_path, state))
    assert "The step is at one of 3 commits that cannot be told apart" in text
    assert 'c3 ("mm: c3"): does not build: no' in text
    log = (tmp_path / report.LOG).read_text()
    for line in (f"skip {'c3' * 20}", f"skip {'c4' * 20}", f"good {'c2' * 20}"):
        assert f"git bisect {line}\n" in log
    assert "first bad commit" not in log


def test_what_fresh_runs_do_not_show_is_not_to_be_sent(tmp_path: Path) -> None:
    stage = Stage(ROW, word="found", suspects=["c2"], probability=0.98)
    undecided = {"verdict": "undecided", "sentence": "c2 may be better or worse.", "ratio": 1.1}
    stage.finding = {
        "good_against_parent": {},
        "revert_against_bad": {},
        "culprit_against_bad": {},
        "culprit_against_parent": undecided,
        "culprit": "c2",
        "notes": ["c5-revert-c2 has no kernel: it cannot be reverted"],
    }
    text = words(report.write(tmp_path, known(stage)))
    assert "NOT confirmed by fresh runs:" in text
    assert "it cannot be reverted" in text
    assert "DO NOT SEND" in (tmp_path / report.MAIL).read_text()
