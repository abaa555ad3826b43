# SPDX-License-Identifier: GPL-2.0-or-later
"""A git history in which each commit adds one hunk of the difference between two trees.

Its first commit is the whole old tree. In the given paths its last commit equals the new tree,
unless hunks are left out because they do not compile without the rest of the new tree. So a bisect
over hunks is a bisect over commits.
"""

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """One hunk: `lines` replace a part of the old file. what: one line about it.

    part: the first line that it replaces, from 0 on, and the one after the last; None: it is a
    whole file, and lines None removes it.
    """

    path: str
    mode: str
    lines: tuple[bytes, ...] | None
    what: str
    part: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def source_of(name: str, mirror: str | None) -> Source:
    """The source tree that DIR_A or DIR_B names."""
    if name.startswith(debian_source.PREFIX):
        return debian_source.from_debian(debian_source.wanted_of(name), mirror=mirror)
    return sources.from_folder(user_path(name).absolute())


@dataclass(frozen=True)
class Difference:
    """The hunks between two trees, in order.

    files: the old files that they change; None: the old tree lacks it. objects: the stores that
    have both trees.
    """

    old: Source
    changes: tuple[Change, ...]
    files: Mapping[str, bytes | None]
    objects: tuple[Path, ...]

    def contents(self, changes: Sequence[Change]) -> dict[str, bytes | None]:
        """`files` with only these hunks; None: there is no such file."""
        by_path: dict[str, list[Change]] = {path: [] for path in self.files}
        for change in changes:
            by_path[change.path].append(change)
        return {path: with_changes(self.files[path], own) for path, own in by_path.items()}


def with_changes(old: bytes | None, changes: Sequence[Change]) -> bytes | None:
    """A file with these of its hunks."""
    lines = [] if old is None else old.split(b"\n")
    for change in sorted(changes, key=lambda change: change.part or (0, 0), reverse=True):
        if change.part is None:
            return None if change.lines is None else b"\n".join(change.lines)
        first, end = change.part
        lines[first:end] = change.lines or ()
    return old if old is None else b"\n".join(lines)


def difference(old: Source, new: Source, paths: Sequence[str]) -> Difference:
    """The hunks in these paths; UserError (2) if there are none."""
    objects = tuple(dict.fromkeys((*old.objects, *new.objects)))
    changes = tuple(changes_between(old.tree, new.tree, paths, objects))
    if not changes:
        raise UserError(
            f"{old.label} and {new.label} do not differ in {' '.join(paths)}", status=Exit.USAGE
        )
    files = {}
    for path in dict.fromkeys(change.path for change in changes):
        done = git(["cat-file", "blob", f"{old.tree}:{path}"], objects)
        files[path] = None if done.returncode else done.stdout
    return Difference(old, changes, files, objects)


def make_history(repository: Path, differ: Difference, changes: Sequence[Change]) -> None:
    """Make the history of these hunks, which replaces what the repository has."""
    make_repository(repository)
    (repository / "objects/info").mkdir(exist_ok=True)
    alternates = "".join(f"{place.resolve()}\n" for place in differ.objects)
    (repository / "objects/info/alternates").write_text(alternates)
    stream = b"".join(_stream(differ, changes))
    command = ["git", "-C", str(repository), "fast-import", "--quiet", "--force"]
    done = subprocess.run(command, input=stream, env=sources.environment(), capture_output=True)
    text_of(done, "making the history of hunks")


def that_compile(
    changes: Sequence[Change], compiles: Callable[[Sequence[Change]], bool]
) -> list[Change]:
    """As many changes as compile together, in their order.

    A block of neighbours is added at once; if it does not compile, its halves are. What was left
    out is tried once more: it may need what was added meanwhile.
    """
    kept: list[Change] = []
    pending = list(changes)
    for _ in range(2):
        left: list[Change] = []
        if pending:
            _add(pending, kept, left, compiles)
        pending = left
    return [change for change in changes if change in kept]


def _add(
    block: list[Change],
    kept: list[Change],
    left: list[Change],
    compiles: Callable[[Sequence[Change]], bool],
) -> None:
    if compiles([*kept, *block]):
        kept += block
    elif len(block) == 1:
        left += block
    else:
        half = len(block) // 2
        _add(block[:half], kept, left, compiles)
        _add(block[half:], kept, left, compiles)


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
            lines = None if word == "D" else tuple(_blob(after, objects).split(b"\n"))
            what = {"A": "the new file", "D": "the file is gone"}.get(word, "another kind of file")
            yield Change(path, mode, lines, what)
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
        yield Change(path, mode, tuple(new), "the whole file")
        return
    for number, match in enumerate(headers, 1):
        last = number == len(headers)
        # The last one also brings the new file's end, with or without a newline.
        part = _first(match[1], match[2]), len(old) if last else _end(match[1], match[2])
        lines = new[_first(match[3], match[4]) : None if last else _end(match[3], match[4])]
        where = match[5].decode(errors="replace").strip()
        what = f"hunk {number} of {len(headers)}, line {int(match[3])}"
        yield Change(path, mode, tuple(lines), f"{what}: {where}" if where else what, part)


def _first(first: bytes, count: bytes | None) -> int:
    """The number of lines before a hunk."""
    # The line number of a hunk without lines is that of the line before it.
    return int(first) if count is not None and not int(count) else int(first) - 1


def _end(first: bytes, count: bytes | None) -> int:
    """The number of lines up to the end of a hunk."""
    lines = 1 if count is None else int(count)
    # The line number of a hunk without lines is that of the line before it.
    return int(first) + lines - 1 if lines else int(first)


def _blob(name: str, objects: Sequence[Path]) -> bytes:
    done = git(["cat-file", "blob", name], objects)
    text_of(done, f"reading {name}")
    return done.stdout


def _stream(differ: Difference, changes: Sequence[Change]) -> Iterator[bytes]:
    """Input of git fast-import: a commit of the unchanged tree, then a commit per change."""
    yield b"reset %s\n\n" % HEAD.encode()
    yield _commit(f"{differ.old.label} as it is") + b"M 040000 %s \n" % differ.old.tree.encode()
    for number, change in enumerate(changes, 1):
        yield _commit(str(change))
        own = [other for other in changes[:number] if other.path == change.path]
        data = with_changes(differ.files[change.path], own)
        name = change.path.encode(errors="surrogateescape")
        if data is None:
            yield b"D %s\n" % name
        else:
            yield b"M %s inline %s\n" % (change.mode.encode(), name)
            yield b"data %d\n%s\n" % (len(data), data)


def _commit(message: str) -> bytes:
    text = message.encode(errors="surrogateescape")
    return b"commit %s\n%sdata %d\n%s\n" % (HEAD.encode(), IDENTITY, len(text), text)
