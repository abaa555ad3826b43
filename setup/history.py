# SPDX-License-Identifier: GPL-2.0-or-later
"""Generates a git history like linux-2.6's of 2009, with the same object ids on every machine.

It models what decides how much memory a gitk needs and what it accesses: the bytes per commit of
`git log --pretty=raw --parents` (about 870), one merge in fifteen commits, side branches that fork
long before they are merged, and a few people who write most commits. There are no file contents,
because gitk reads none.
"""

import itertools
import random
import shutil
import subprocess
import tempfile
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup import apt, cache
from setup.userland import tools

FORMAT = 3
SEED = 20091102
PEOPLE = 4000
MERGES = 0.067
OPEN_BRANCHES = 24
FIRST_DATE = 1113690036
SECONDS_A_COMMIT = 860

WORDS = Path(__file__).with_name("history_words.toml")


def _words(name: str) -> list[str]:
    text: str = tomllib.loads(WORDS.read_text())[name].strip()
    return text.split("\n") if name == "nouns" else text.split()


def _people(rng: random.Random) -> list[bytes]:
    people = []
    givens, families = _words("given"), _words("family")
    for index in range(PEOPLE):
        given, family = rng.choice(givens), rng.choice(families)
        number = f"{index}" if index >= 400 else ""
        host = f"{rng.choice(families).lower()}{rng.randrange(60)}.example"
        mail = f"{given.lower()}.{family.lower()}{number}@{host}"
        people.append(f"{given} {family} <{mail}>".encode())
    return people


def _paragraphs(rng: random.Random) -> list[bytes]:
    """Paragraphs of two to seven lines, of which message bodies are made."""
    paragraphs = []
    words = _words("words")
    for _ in range(3000):
        text = " ".join(rng.choices(words, k=rng.randint(14, 65)))
        lines = textwrap.wrap(text[0].upper() + text[1:] + ".", 72)
        paragraphs.append(("\n".join(lines) + "\n\n").encode())
    return paragraphs


def _messages(rng: random.Random, people: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """An endless series of authors and messages, from prepared fragments."""
    paragraphs = _paragraphs(rng)
    subjects = [
        f"{area}: {verb} {noun}".encode()
        for area, verb, noun in itertools.product(*map(_words, ("areas", "verbs", "nouns")))
    ]
    # Zipf: the n-th busiest person has a share of 1/n.
    shares = list(itertools.accumulate(1 / (rank + 8) for rank in range(PEOPLE)))
    maintainers = people[:120]
    maintainer_shares = list(itertools.accumulate(1 / (rank + 3) for rank in range(120)))
    while True:
        batch = 1000
        authors = rng.choices(people, cum_weights=shares, k=batch)
        signers = iter(rng.choices(maintainers, cum_weights=maintainer_shares, k=3 * batch))
        titles = rng.choices(subjects, k=batch)
        lengths = rng.choices((0, 1, 2, 3, 5), weights=(20, 44, 24, 9, 3), k=batch)
        kinds = rng.choices((0, 1, 2), weights=(55, 30, 15), k=batch)
        bodies = iter(rng.choices(paragraphs, k=sum(lengths)))
        for author, title, length, kind in zip(authors, titles, lengths, kinds, strict=True):
            parts = [title, b"\n\n", *itertools.islice(bodies, length)]
            parts += [b"Signed-off-by: ", author, b"\n"]
            if kind:
                parts += [b"Acked-by: ", next(signers), b"\n"]
            if kind == 2:
                parts += [b"Cc: ", next(signers), b"\n"]
            parts += [b"Signed-off-by: ", next(signers), b"\n"]
            yield author, b"".join(parts)


def stream(commits: int) -> Iterator[bytes]:
    """The input of git fast-import for that many commits, the same bytes every time."""
    rng = random.Random(SEED)
    people = _people(rng)
    messages = _messages(rng, people)
    committers = people[:40]
    yield b"feature done\nblob\nmark :1\ndata 6\nlinux\n\n"
    # Commit n has mark n + 2. tips: the open side branches, oldest first: the last commit's mark
    # and the branch's name. `from` is only given where a branch begins, because fast-import then
    # reads the named parent back from the pack, which costs more than all the rest.
    tips: list[tuple[int, int]] = []
    names = list(range(OPEN_BRANCHES, 0, -1))
    trunk = 0
    branches = [b"master", *(b"side-%d" % number for number in range(1, OPEN_BRANCHES + 1))]
    next_merge = 1 / MERGES
    draw = rng.random
    for index in range(commits):
        mark = index + 2
        left = commits - index - 1
        author, message = next(messages)
        name, start, merged = 0, 0, 0
        if tips and (index + 1 >= next_merge or len(tips) > left):
            # The last commits merge all open branches, so that HEAD reaches every commit.
            next_merge += 1 / MERGES
            merged, free = tips.pop(int(draw() * min(len(tips), 6)))
            names.append(free)
            area, _, body = message.partition(b": ")
            message = b"Merge branch '" + area + b"-for-linus'\n\n" + body
            trunk = mark
        elif trunk and draw() < 0.82 and (tips or left > 1):
            # Most development happens on side branches.
            if not tips or (len(tips) < min(OPEN_BRANCHES, left) and draw() < 0.15):
                start = max(2, trunk - int(draw() * draw() * 3000))
                name = names.pop()
                tips.append((mark, name))
            else:
                slot = int(draw() * len(tips))
                name = tips[slot][1]
                tips[slot] = (mark, name)
        else:
            trunk = mark
        date = FIRST_DATE + index * SECONDS_A_COMMIT
        written = date - int(draw() * draw() * 1_200_000)
        committer = committers[int(draw() * draw() * 40)]
        parts = [
            b"commit refs/heads/%s\nmark :%d\n" % (branches[name], mark),
            b"author %s %d +0000\ncommitter %s %d +0000\n" % (author, written, committer, date),
            b"data %d\n%s" % (len(message), message),
            b"from :%d\n" % start if start else b"",
            b"merge :%d\n" % merged if merged else b"",
            b"" if index else b"M 100644 :1 linux\n",
        ]
        yield b"".join(parts)
    for branch in branches[1:]:
        yield b"reset refs/heads/%s\nfrom %s\n" % (branch, b"0" * 40)
    yield b"done\n"


def _generate(commits: int, repo: Path) -> None:
    with tools.workplace() as place:
        name = "history.git"
        init = ["git", "-c", "init.defaultBranch=master", "init", "-q", "--bare", "--template="]
        place.run([*init, name], what="making the history's repository")
        # Uncompressed: with zlib, each reader would spend most of its instructions on unpacking.
        settings = ["-c", "fastimport.unpackLimit=1", "-c", "pack.compression=0"]
        load = ["fast-import", "--quiet", "--active-branches=64"]
        command = place.command(["git", *settings, "--git-dir", name, *load])
        with (
            tempfile.TemporaryFile() as complaints,  # a pipe would fill while nobody reads it
            subprocess.Popen(command, stdin=subprocess.PIPE, stderr=complaints) as process,
        ):
            assert process.stdin
            pieces = stream(commits)
            try:
                while chunk := b"".join(itertools.islice(pieces, 500)):
                    process.stdin.write(chunk)
                process.stdin.close()
            except BrokenPipeError:
                pass  # fast-import prints the reason
            process.wait()
            complaints.seek(0)
            errors = complaints.read().decode(errors="replace")
        if process.returncode != 0:
            raise UserError(f"generating the history failed: {apt.last_line(errors)}")
        with cache.writing():
            shutil.move(place.folder / name, repo)


def build(commits: int) -> Path:
    """The bare repository with that many commits, from the cache if it is there.

    UserError (3) if git is missing or there is no room.
    """
    name = f"{FORMAT}-{commits}.git"
    return cache.built("history", name, lambda path: _generate(commits, path))


def use(path: Path) -> Path:
    """The user's own repository; UserError (3) if it is not a repository or has no commit."""
    if not path.is_dir():
        raise UserError(f"no such folder: {path}", hint="--repo takes a git repository")
    count(path)
    return path.resolve()


def count(repo: Path, most: int | None = None) -> int:
    """The number of commits that HEAD reaches; most: a limit at which counting ends."""
    command: list[str | Path] = ["git", "-C", repo, "rev-list", "--count"]
    command += [*([] if most is None else [f"--max-count={most}"]), "HEAD"]
    return int(apt.run(command, what=f"reading the git repository {repo}"))
