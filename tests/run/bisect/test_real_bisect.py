# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisect among real kernels: 16 commits on Debian's source, of which one makes swap-in wait."""

import subprocess
from pathlib import Path

import pytest

from run.bisect import report, state
from setup.trees import debian_source
from setup.trees.sources import Source, environment, git, text_of
from tests.run.bisect.test_driver import check_finding, replayed
from tests.support.vms import command, nothing_left

COMMITS, CULPRIT = 16, 10
CHANGED, SUBJECT = "mm/page_io.c", "mm/page_io.c: wait before each read from swap"
BEGIN = b"\tdelayacct_swapin_start();\n"
SLEEP = b"\tschedule_timeout_uninterruptible(HZ / 4);\n"
# What compiles to the same kernel: a comment below the last line of these.
HARMLESS = ("mm/swap.c", "mm/rmap.c", "fs/buffer.c", "block/bio.c", "drivers/md/dm.c")
RUN = ["--profile", "quick", "--commits", "12000", "--gitk", "3", "--memory", "140M"]
WHO = b"committer suite <> 1257163200 +0000\n"
HEAD = "refs/heads/history"


def make_history(repository: Path, source: Source) -> list[str]:
    """The commits, oldest first, in a new bare repository on the source's objects."""
    subprocess.run(
        ["git", "init", "-q", "--bare", "--template=", "-b", "history", repository],
        env=environment(),
        check=True,
    )
    (repository / "objects/info").mkdir(exist_ok=True)
    (repository / "objects/info/alternates").write_text(
        "".join(f"{place.resolve()}\n" for place in source.objects)
    )
    texts = {}
    for path in (*HARMLESS, CHANGED):
        done = git(["cat-file", "blob", f"{source.tree}:{path}"], source.objects)
        text_of(done, path)
        texts[path] = done.stdout
    assert texts[CHANGED].count(BEGIN) == 1
    stream = commit("as Debian has it") + f"M 040000 {source.tree} \n".encode()
    for number in range(1, COMMITS):
        if number == CULPRIT:
            path, subject = CHANGED, SUBJECT
            texts[path] = texts[path].replace(BEGIN, SLEEP + BEGIN)
        else:
            path = HARMLESS[number % len(HARMLESS)]
            subject = f"{path}: comment {number}"
            texts[path] += f"/* comment {number} */\n".encode()
        data = texts[path]
        stream += commit(subject) + f"M 100644 inline {path}\n".encode()
        stream += f"data {len(data)}\n".encode() + data + b"\n"
    subprocess.run(
        ["git", "-C", repository, "fast-import", "--quiet"],
        input=stream,
        env=environment(),
        check=True,
    )
    listed = subprocess.run(
        ["git", "-C", repository, "rev-list", "--reverse", HEAD],
        env=environment(),
        check=True,
        capture_output=True,
        text=True,
    )
    return listed.stdout.split()


def commit(subject: str) -> bytes:
    return f"commit {HEAD}\n".encode() + WHO + f"data {len(subject)}\n{subject}\n".encode()


@pytest.mark.slow
@pytest.mark.vm
@pytest.mark.own_clock
@pytest.mark.timeout(3 * 3600)
def test_a_commit_is_found_among_real_kernels(tmp_path: Path) -> None:
    tree, folder = tmp_path / "linux.git", tmp_path / "bisect"
    commits = make_history(tree, debian_source.from_debian("7.2"))
    assert len(commits) == COMMITS
    asked = ["--bisect", commits[0], commits[-1], "--tree", str(tree), *RUN, "--out", str(folder)]
    with nothing_left(), command(*asked) as process:
        printed, errors = process.communicate()
    assert process.returncode == 0, printed + errors
    found = state.read(folder)
    assert found.finished
    check_finding(found, commits[CULPRIT])
    # What differs from its parent in comments alone is the same kernel, told and not run again.
    assert len(set(found.digests.values())) == 2
    text = " ".join(report.write(folder, found).split())
    assert f'The step is at {commits[CULPRIT][:12]} ("{SUBJECT}")' in text
    assert f"first bad commit: [{commits[CULPRIT]}]" in replayed(tree, folder)
