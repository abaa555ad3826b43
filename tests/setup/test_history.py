# SPDX-License-Identifier: GPL-2.0-or-later
"""The generated history: the same everywhere, and shaped like the real one."""

import contextlib
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from errors import UserError
from setup import disk, history
from setup.userland import tools
from tests.support.caches import with_tools

HEADS = {
    1: "c966db956ad72e5d7a2da4c1cabfa690f7437158",
    300: "1215b7afdd9637f82d487b6df2857294408e7ab6",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_tools(tmp_path / "cache", monkeypatch)
    # A user's git settings must change nothing.
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text("[init]\n\tdefaultBranch = other\n")


def git(repo: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repo), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("commits", sorted(HEADS))
def test_object_ids_are_the_recorded_ones(commits: int) -> None:
    repo = history.build(commits)
    assert git(repo, "rev-parse", "HEAD").strip() == HEADS[commits]
    assert history.count(repo) == commits
    assert history.use(repo) == repo.resolve()


def test_its_shape_is_that_of_linux_2_6() -> None:
    repo = history.build(5000)
    raw = git(repo, "log", "--no-color", "-z", "--pretty=raw", "--parents", "--boundary", "HEAD")
    commits = raw.split("\0")
    assert len(commits) == 5000
    assert 800 <= len(raw) / 5000 <= 940
    merges = sum(commit.count("\nparent ") == 2 for commit in commits)
    assert 0.055 <= merges / 5000 <= 0.08
    authors = Counter(git(repo, "log", "--format=%ae").split())
    assert len(authors) > 1000
    assert sum(number for _, number in authors.most_common(50)) > 0.2 * 5000
    assert git(repo, "fsck", "--strict") == ""
    assert git(repo, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/master"]
    assert len(list((repo / "objects/pack").glob("*.pack"))) == 1


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(UserError, match=r"reading the git repository .*plain failed"):
        history.use(tmp_path / "plain")
    with pytest.raises(UserError, match="no such folder"):
        history.use(tmp_path / "none")


def test_the_history_disk_holds_a_bare_repository(tmp_path: Path) -> None:
    repo = history.build(300)
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "-q", str(repo), str(work)], check=True)
    for source in (repo, work):
        image = disk.history_disk(source)
        assert disk.history_disk(source) == image
        out = tmp_path / f"out-{source.name}"
        out.mkdir()
        command = ["debugfs", "-R", f"rdump /history.git {out}", str(image)]
        subprocess.run(command, check=True, capture_output=True)
        assert git(out / "history.git", "rev-parse", "HEAD").strip() == HEADS[300]
        assert git(out / "history.git", "rev-parse", "--is-bare-repository").strip() == "true"


@pytest.mark.timeout(60)
def test_git_may_complain_at_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds, before it has read what it is to import."""
    complains = "yes warning: odd | head -c 300000 >&2; cat >/dev/null; echo >&2; "
    complains += "echo fatal: no >&2; exit 1"

    class Place(tools.Workplace):
        def command(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
            return ["sh", "-c", complains if "fast-import" in argv else "true"]

    @contextlib.contextmanager
    def workplace() -> Iterator[tools.Workplace]:
        yield Place(tmp_path, tmp_path)

    monkeypatch.setattr(tools, "workplace", workplace)
    with pytest.raises(UserError, match="generating the history failed: fatal: no"):
        history._generate(1000, tmp_path / "history.git")
