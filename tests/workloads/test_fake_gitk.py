# SPDX-License-Identifier: GPL-2.0-or-later
"""The fake gitk against real repositories, git's own word on them, and a git that fails."""

import itertools
import os
import random
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract.option_rows import PROFILES
from contract.option_table import ROWS
from errors import UserError
from fake_gitk import history as history_module
from fake_gitk.__main__ import LOG
from fake_gitk.__main__ import _parse as parse_gitk
from fake_gitk.history import History, names_of
from fake_gitk.layout import STEP, Layout
from run.arguments import parse

ROOT = Path(__file__).resolve().parents[2]
COMMITS = 3000


def git(repo: Path, *arguments: str, feed: bytes = b"") -> bytes:
    command = ["git", "-C", str(repo), *arguments]
    return subprocess.run(command, input=feed, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with merges, an octopus, messages of several paragraphs and of no charset."""
    folder = tmp_path_factory.mktemp("repo")
    git(folder, "init", "-q", "-b", "main")
    chance = random.Random(7)
    feed = []
    for n in range(1, COMMITS + 1):
        message = b"change %d\n\nFirst.\n\n\xe4\xff\x80 second\n\n" % n + b"word " * (n % 200)
        who = b"A <a@example.com> %d +0000" % (1200000000 + n * 60)
        feed.append(b"commit refs/heads/main\nmark :%d\nauthor %s\ncommitter %s\n" % (n, who, who))
        feed.append(b"data %d\n%s\n" % (len(message), message))
        if n > 1:
            feed.append(b"from :%d\n" % (n - 1))
        if n > 50:
            for back in chance.sample(range(2, 40), chance.choice([0, 0, 0, 1, 3])):
                feed.append(b"merge :%d\n" % (n - back))
        feed.append(b"\n")
    git(folder, "fast-import", "--quiet", feed=b"".join(feed))
    return folder


def read(repo: Path) -> History:
    history = History()
    with subprocess.Popen(["git", "-C", str(repo), *LOG], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert list(history.load(process.stdout.fileno())) == list(range(1, COMMITS + 1))
    return history


def gitk(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-S", "-m", "fake_gitk", *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_children_are_those_that_git_names(repo: Path) -> None:
    history = read(repo)
    children: dict[bytes, list[bytes]] = {}
    ids = []
    for line in git(repo, "rev-list", "--parents", "HEAD").split(b"\n")[:-1]:
        name, *parents = line.split()
        ids.append(name)
        for parent in parents:
            children.setdefault(parent, []).append(name)
    assert history.ids == ids
    assert history.children == children
    assert any(len(names) > 3 for names in children.values())


def test_every_raw_text_is_kept(repo: Path) -> None:
    history = read(repo)
    expected = git(repo, *LOG).rstrip(b"\0").split(b"\0")
    assert [history.texts(row)[0] for row in range(COMMITS)] == expected
    assert b"\xe4\xff\x80 second" in history.texts(0)[0]
    history.discard()
    assert not history.ids and not history.children


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize(("block", "piece"), [(1 << 16, 1 << 12), (1 << 12, 1 << 10)])
def test_records_across_mappings(
    block: int, piece: int, copies: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(history_module, "BLOCK", block)
    monkeypatch.setattr(history_module, "READ", piece)
    chance = random.Random(block)
    records = [
        b"commit %040x\n" % n
        + bytes(chance.choices(range(1, 256), k=chance.choice([5, 700, 30000])))
        for n in range(200)
    ]
    for end in (b"", b"\0"):
        (tmp_path / "log").write_bytes(b"\0".join(records) + end)
        history = History(copies)
        with open(tmp_path / "log", "rb") as log:
            assert list(history.load(log.fileno()))[-1] == 200
        assert [history.texts(row) for row in range(200)] == [[each] * copies for each in records]


def test_boundary_and_what_is_no_commit() -> None:
    assert names_of(b"commit -aa bb cc\ntree t\n\n") == [b"aa", b"bb", b"cc"]
    assert names_of(b"commit aa") == [b"aa"]
    with pytest.raises(UserError, match="instead of a commit"):
        names_of(b"\x1b[31mcommit aa\n")


def test_lines_of_every_pass(repo: Path) -> None:
    done = gitk("--repo", str(repo), "--every", "700", "--passes", "2")
    counts = [700, 1400, 2100, 2800, 3000]
    expected = [f"pass {p} commits {n}" for p in (1, 2) for n in counts]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == expected
    done = gitk("--repo", str(repo), "--every", "1000", "--touch", "0")
    assert done.stdout.splitlines()[-2:] == ["pass 1 commits 2000", "pass 1 commits 3000"]


def test_of_a_longer_history_it_reads_the_newest_commits(repo: Path, tmp_path: Path) -> None:
    done = gitk("--repo", str(repo), "--every", "700", "--commits", "1500")
    *lines, last = done.stdout.splitlines()
    assert lines[:2] == ["pass 1 commits 700", "pass 1 commits 1400"] and done.returncode == 0
    # The parents of the last ones are on its boundary, which gitk shows, too.
    assert 1500 <= int(last.split()[-1]) < 1600
    whole = gitk("--repo", str(repo), "--every", "700", "--commits", "3000")
    assert whole.stdout == gitk("--repo", str(repo), "--every", "700").stdout
    longer = gitk("--repo", str(repo), "--every", "700", "--commits", "9999")
    assert longer.stdout == whole.stdout


def test_wait_begins_at_a_line(repo: Path, tmp_path: Path) -> None:
    # A git that leaves a mark shows that nothing is read before.
    fake, mark = tmp_path / "git", tmp_path / "began"
    real = shutil.which("git")
    fake.write_text(f'#!/bin/sh\ntouch {mark}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-S", "-m", "fake_gitk", "--repo", str(repo), "--every", "2000", "--wait"],
        cwd=ROOT,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    assert process.stdout.readline() == "ready\n"
    assert select.select([process.stdout], [], [], 0.7)[0] == [] and not mark.exists()
    out, _ = process.communicate("go\n", timeout=50)
    assert out == "pass 1 commits 2000\npass 1 commits 3000\n" and process.returncode == 0
    assert mark.exists()


def test_empty_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    done = gitk("--repo", str(tmp_path), "--passes", "2")
    assert done.stdout == "pass 1 commits 0\npass 2 commits 0\n" and done.returncode == 0


def test_failures_are_one_line(tmp_path: Path, repo: Path) -> None:
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\nprintf 'commit aa bb\\ntree t\\n\\000commit bb\\n'\nkill -9 $$\n")
    fake.chmod(0o755)
    killed = gitk("--repo", str(repo), PATH=f"{tmp_path}:{os.environ['PATH']}")
    nowhere = gitk("--repo", str(tmp_path))
    for done, words in ((killed, "signal 9 after 2 commits"), (nowhere, "not a git repository")):
        assert done.returncode == 3 and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
    head = repo.parent / "detached"
    git(repo, "clone", "-q", "--no-checkout", ".", str(head))
    (head / ".git" / "HEAD").write_text("0" * 39 + "1\n")
    assert gitk("--repo", str(head)).returncode == 3
    assert gitk("--repo", str(repo), "--every", "0").returncode == 2


def looked_at(repo: Path, touch: float, seed: int, step: int = 300) -> tuple[list[int], int]:
    layout = Layout(touch, seed, step)
    history = History()
    steps = []
    with subprocess.Popen(["git", "-C", str(repo), *LOG], stdout=subprocess.PIPE) as process:
        assert process.stdout
        for count in history.load(process.stdout.fileno()):
            if count >= layout.due:
                layout.look_back(history, count)
                steps.append(count)
    return steps, layout.touched


def test_access_pattern_is_seeded_and_as_large_as_asked(repo: Path) -> None:
    steps, touched = looked_at(repo, 1.0, 1)
    assert (steps, touched) == looked_at(repo, 1.0, 1)
    assert steps != looked_at(repo, 1.0, 2)[0]
    assert touched == steps[-1] and len(steps) > 4
    gaps = {after - before for before, after in itertools.pairwise(steps)}
    assert min(gaps) >= 150 and max(gaps) <= 450 and len(gaps) > 2
    assert looked_at(repo, 0.0, 1) == (steps, 0)
    assert looked_at(repo, 2.5, 1)[1] == pytest.approx(2.5 * touched, abs=1)


def test_memory_is_steady_over_passes(repo: Path) -> None:
    code = (
        "import gc, subprocess, sys\n"
        "from fake_gitk.__main__ import LOG\n"
        "from fake_gitk.history import History\n"
        "from fake_gitk.layout import Layout\n"
        "gc.disable(); layout = Layout(1.0, 1, 300)\n"
        "for number in range(4):\n"
        " git = subprocess.Popen(['git', '-C', sys.argv[1], *LOG], stdout=subprocess.PIPE)\n"
        " history = History(); layout.begin()\n"
        " for count in history.load(git.stdout.fileno()):\n"
        "  if count >= layout.due: layout.look_back(history, count)\n"
        " print(int(open('/proc/self/statm').read().split()[1]) * 4096)\n"
        " git.stdout.close(); git.wait(); history.discard()\n"
        "print(int(open('/proc/self/statm').read().split()[1]) * 4096, gc.collect())\n"
    )
    command = [sys.executable, "-S", "-c", code, str(repo)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    *passes, after, garbage = map(int, done.stdout.split())
    text = len(git(repo, *LOG))
    assert abs(passes[2] - passes[1]) < text / 10 and abs(passes[3] - passes[1]) < text / 10
    assert passes[3] - after > text * 0.9  # the text went back to the kernel
    assert garbage == 0 or garbage < 50  # the interpreter's own; none a commit


def test_each_copy_of_a_commit_is_memory_of_its_own(repo: Path) -> None:
    text = len(git(repo, *LOG))
    code = (
        "import os, subprocess, sys\n"
        "from fake_gitk.__main__ import LOG\n"
        "from fake_gitk import history as module\n"
        "module.BLOCK = 1 << 16; history = module.History(int(sys.argv[2]))\n"
        "git = subprocess.Popen(['git', '-C', sys.argv[1], *LOG], stdout=subprocess.PIPE)\n"
        "count = sum(1 for _ in history.load(git.stdout.fileno()))\n"
        "print(int(open('/proc/self/statm').read().split()[1]) * 4096)\n"
        "texts = map(history.texts, range(count))\n"
        "print({(len(each), len(set(each))) for each in texts})\n"
        "history.discard()\n"
        "print(int(open('/proc/self/statm').read().split()[1]) * 4096)\n"
    )

    def resident(copies: int) -> tuple[int, int]:
        command = [sys.executable, "-S", "-c", code, str(repo), str(copies)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        kept, texts, after = done.stdout.splitlines()
        assert texts == f"{{({copies}, 1)}}"  # of each commit so many texts, all alike
        return int(kept), int(after)

    one, _ = resident(1)
    nine, after = resident(9)
    assert nine - one == pytest.approx(8 * text, rel=0.05)
    assert nine - after > 9 * text * 0.9 - text  # the copies went back to the kernel, too


def test_its_defaults_are_the_suites() -> None:
    alone = parse_gitk(["--repo", "x"])
    assert ROWS["step"].default == STEP == alone.step
    assert ROWS["commit_copies"].default == alone.commit_copies == 1
    assert {profile.touch for profile in PROFILES.values()} == {alone.touch}
    for few in ("1", "0", "x"):
        with pytest.raises(SystemExit):
            parse(["--step", few])
    assert parse(["--step", "2"]).step == 2
