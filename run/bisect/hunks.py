# SPDX-License-Identifier: GPL-2.0-or-later
"""A git history in which each commit adds one hunk of the difference between two trees.

Its first commit is the whole old tree; in the given paths its last commit equals the new tree. So a
bisect over hunks is a bisect over commits.
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
    """A file after one more hunk; data None: it is removed. what: one line about the hunk."""

    path: str
    mode: str
    data: bytes | None
    what: str


def source_of(name: str, mirror: str | None) -> Source:
    """The source tree that DIR_A or DIR_B names."""
    if name.startswith(debian_source.PREFIX):
        return debian_source.from_debian(debian_source.wanted_of(name), mirror=mirror)
    return sources.from_folder(user_path(name).absolute())


def make_history(repository: Path, old: Source, new: Source, paths: Sequence[str]) -> int:
    """Make the history; returns the number of hunks. UserError (2) if there are none in `paths`."""
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
    """The hunks in order, those of headers first: other files use what they declare."""
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
    headers = [match for line in done.stdout.split(b"\n") if (match := HUNK.match(line))]
    if not headers:  # a binary file, or only its mode changed
        yield Change(path, mode, b"\n".join(new), "the whole file")
        return
    # After each hunk the file is: the new file up to this hunk, then the rest of the old file.
    for number, match in enumerate(headers, 1):
        old_end = _end(match[1], match[2])
        new_end = _end(match[3], match[4])
        last = number == len(headers)
        data = b"\n".join(new if last else new[:new_end] + old[old_end:])
        where = match[5].decode(errors="replace").strip()
        what = f"hunk {number} of {len(headers)}, line {int(match[3])}"
        yield Change(path, mode, data, f"{what}: {where}" if where else what)


def _end(first: bytes, count: bytes | None) -> int:
    """The number of lines up to the end of a hunk."""
    lines = 1 if count is None else int(count)
    # The line number of a hunk without lines is that of the line before it.
    return int(first) + lines - 1 if lines else int(first)


def _blob(name: str, objects: Sequence[Path]) -> bytes:
    done = git(["cat-file", "blob", name], objects)
    text_of(done, f"reading {name}")
    return done.stdout


def _stream(tree: str, first: str, changes: Sequence[Change]) -> Iterator[bytes]:
    """Input of git fast-import: a commit of the unchanged tree, then a commit per change."""
    yield _commit(first) + b"M 040000 %s \n" % tree.encode()
    for change in changes:
        yield _commit(f"{change.path}: {change.what}")
        name = change.path.encode(errors="surrogateescape")
        if change.data is None:
            yield b"D %s\n" % name
        else:
            yield b"M %s inline %s\n" % (change.mode.encode(), name)
            yield b"data %d\n%s\n" % (len(change.data), change.data)


def _commit(message: str) -> bytes:
    text = message.encode(errors="surrogateescape")
    return b"commit %s\n%sdata %d\n%s\n" % (HEAD.encode(), IDENTITY, len(text), text)
