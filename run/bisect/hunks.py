# SPDX-License-Identifier: GPL-2.0-or-later
"""A git history in which each commit adds one hunk of the difference between two trees.

Its first commit is all of the one tree; its last has what the other has in the paths that were
asked for. So a bisect over hunks is one over commits.
"""

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.values import path as user_path
from errors import Exit, UserError
from setup.trees import debian_source, sources
from setup.trees.sources import Source, git, make_repository, text_of

HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
IDENTITY = b"committer suite <> 1257163200 +0000\n"
HEAD = "refs/heads/hunks"


@dataclass(frozen=True)
class Change:
    """A file after one more hunk; data None: it is gone. what: the hunk, in a line."""

    path: str
    mode: str
    data: bytes | None
    what: str


def source_of(name: str, mirror: str | None) -> Source:
    """The tree that DIR_A or DIR_B means."""
    if name.startswith(debian_source.PREFIX):
        return debian_source.from_debian(debian_source.wanted_of(name), mirror=mirror)
    return sources.from_folder(user_path(name).absolute())


def make_history(repository: Path, old: Source, new: Source, paths: Sequence[str]) -> int:
    """The number of hunks; UserError (2) if there is no difference in these paths."""
    objects = tuple(dict.fromkeys((*old.objects, *new.objects)))
    changes = list(changes_between(old.tree, new.tree, paths, objects))
    if not changes:
        raise UserError(
            f"{old.label} and {new.label} do not differ in {' '.join(paths)}", status=Exit.USAGE
        )
    make_repository(repository)
    (repository / "objects/info").mkdir(exist_ok=True)
    alternates = "".join(f"{place.resolve()}\n" for place in objects)
    (repository / "objects/info/alternates").write_text(alternates)
    stream = b"".join(_stream(old.tree, f"{old.label} as it is", changes))
    command = ["git", "-C", str(repository), "fast-import", "--quiet", "--force"]
    done = subprocess.run(command, input=stream, env=sources.environment(), capture_output=True)
    text_of(done, "making the history of hunks")
    return len(changes)


def changes_between(
    old: str, new: str, paths: Sequence[str], objects: Sequence[Path]
) -> Iterator[Change]:
    """Hunk after hunk, those of headers first: what the other files use is there then."""
    raw = text_of(
        git(["diff-tree", "-r", "--raw", "--full-index", old, new, "--", *paths], objects),
        "the difference of the two trees",
    )
    listed = [
        line[1:].replace("\t", " ", 1).split(" ", 5) for line in filter(None, raw.split("\n"))
    ]
    listed.sort(key=lambda words: (not words[5].endswith(".h"), words[5]))
    for _, mode, before, after, word, path in listed:
        if word != "M":
            data = None if word == "D" else _blob(after, objects)
            what = {"A": "the new file", "D": "the file is gone"}.get(word, "another kind of file")
            yield Change(path, mode, data, what)
            continue
        yield from _hunks(path, mode, before, after, objects)


def _hunks(
    path: str, mode: str, before: str, after: str, objects: Sequence[Path]
) -> Iterator[Change]:
    done = git(["diff", "--no-color", "--no-ext-diff", "-U3", before, after], objects)
    text_of(done, f"the difference of {path}")
    old = _blob(before, objects).split(b"\n")
    new = _blob(after, objects).split(b"\n")
    found = [match for line in done.stdout.split(b"\n") if (match := HUNK.match(line))]
    if not found:  # binary, or its mode alone
        yield Change(path, mode, b"\n".join(new), "the whole file")
        return
    # What came of the file so far: the new one up to the last hunk, and the rest of the old one.
    for number, match in enumerate(found, 1):
        old_end = _end(match[1], match[2])
        new_end = _end(match[3], match[4])
        last = number == len(found)
        data = b"\n".join(new if last else new[:new_end] + old[old_end:])
        where = match[5].decode(errors="replace").strip()
        what = f"hunk {number} of {len(found)}, line {int(match[3])}"
        yield Change(path, mode, data, f"{what}: {where}" if where else what)


def _end(first: bytes, count: bytes | None) -> int:
    """How many lines there are up to the end of a hunk."""
    lines = 1 if count is None else int(count)
    # A hunk without lines names the line before it.
    return int(first) + lines - 1 if lines else int(first)


def _blob(name: str, objects: Sequence[Path]) -> bytes:
    done = git(["cat-file", "blob", name], objects)
    text_of(done, f"reading {name}")
    return done.stdout


def _stream(tree: str, first: str, changes: Sequence[Change]) -> Iterator[bytes]:
    """For git fast-import: the tree as it is, and a commit for each change."""
    yield _commit(first) + b"M 040000 %s \n" % tree.encode()
    for one in changes:
        yield _commit(f"{one.path}: {one.what}")
        name = one.path.encode(errors="surrogateescape")
        if one.data is None:
            yield b"D %s\n" % name
        else:
            yield b"M %s inline %s\n" % (one.mode.encode(), name)
            yield b"data %d\n%s\n" % (len(one.data), one.data)


def _commit(message: str) -> bytes:
    text = message.encode(errors="surrogateescape")
    return b"commit %s\n%sdata %d\n%s\n" % (HEAD.encode(), IDENTITY, len(text), text)
