# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: makes a git history of a Debian kernel, one commit of which makes it worse.

usage: python3 -m tests.make_debian_history REPOSITORY [--series 7.2] [--commits N] [--broken N]
                                            [--mirror URL]

It consists of the releases of that series that Debian has (linux-source-7.2), oldest first. Each
release is one commit with all changes outside of mm/, fs/ and drivers/md, then one commit for each
changed file there (one for all files of a file system, which compile together), or N commits in
all. In the first commit isolate_folio() has the check of 6.12 that 7.2 lacks
(docs/example/laptop-no-io-reclaim/fix.patch); a commit after the middle release removes it. With
--broken, that many commits around this one do not compile.

Prints the good end, the commit that removes the check, and the bad end.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from contract import checkout
from errors import UserError, run_command
from setup import debian, package_lists
from setup.trees import changes, debian_source, sources
from setup.trees.sources import Source, git, text_of

FIX = checkout.ROOT / "docs/example/laptop-no-io-reclaim/fix.patch"
SPLIT = ("mm", "fs", "drivers/md")
REMOVAL = "mm/vmscan.c: remove the swap-constrained check of isolate_folio()"
BROKEN = "mm/swap.c"
WHO = b"committer suite <> 1257163200 +0000\n"
HEAD = "refs/heads/history"
GONE = "0" * 40


@dataclass(frozen=True)
class Change:
    """A commit: its subject, and its files with mode and blob; GONE for a removed file."""

    subject: str
    files: tuple[tuple[str, str, str], ...]  # path, mode, blob


@dataclass(frozen=True)
class History:
    """The ids of the commits; those of `broken` do not compile."""

    good: str
    culprit: str
    bad: str
    commits: tuple[str, ...]
    broken: tuple[str, ...]


def releases(series: str, mirror: str | None) -> list[Source]:
    """The sources of a series that the mirror has, oldest first, each release once."""
    packages = package_lists.update(mirror).packages
    fitting = debian_source.fitting(packages, series)
    versions = {debian_source.upstream_of(package) for package in fitting}
    ordered = sorted(versions, key=debian.version_key)
    if len(ordered) < 2:
        raise UserError(f"the mirror has {len(ordered)} sources of {series}: a history needs two")
    return [debian_source.from_debian(version, mirror=mirror) for version in ordered]


def changes_of(kept: Sequence[Source]) -> list[list[Change]]:
    """For each release but the first its commits. kept: the releases with the check."""
    by_release: list[list[Change]] = []
    for old, new in pairwise(kept):
        objects = tuple(dict.fromkeys((*old.objects, *new.objects)))
        raw = text_of(
            git(["diff-tree", "-r", "--raw", "--full-index", old.tree, new.tree], objects),
            f"what differs in {new.label}",
        )
        outside: list[tuple[str, str, str]] = []
        parts: dict[str, list[tuple[str, str, str]]] = {}
        for line in filter(None, raw.split("\n")):
            words, path = line[1:].split("\t", 1)
            _, mode, _, blob, _ = words.split(" ")
            if path.startswith(tuple(f"{folder}/" for folder in SPLIT)):
                parts.setdefault(_part(path), []).append((path, mode, blob))
            else:
                outside.append((path, mode, blob))
        separate = [
            Change(f"{part}: as in {new.label}", tuple(parts[part]))
            for part in sorted(parts, key=lambda part: (not part.endswith(".h"), part))
        ]
        rest = f"{new.label}: all outside of {', '.join(SPLIT)}"
        by_release.append([*([Change(rest, tuple(outside))] if outside else []), *separate])
    return by_release


def _halves(of_releases: Sequence[list[Change]], wanted: int) -> tuple[list[Change], list[Change]]:
    """The commits up to and including the middle release, and those after it.

    wanted: the number of commits in all; 0: all of them.
    """
    total = sum(map(len, of_releases))
    places = range(1, len(of_releases))
    middle = min(places, key=lambda place: abs(total - 2 * sum(map(len, of_releases[:place]))))
    first = [change for release in of_releases[:middle] for change in release]
    second = [change for release in of_releases[middle:] for change in release]
    if not wanted:
        return first, second
    share = max(1, min(wanted - 1, round(wanted * len(first) / total)))
    return _grouped(first, share), _grouped(second, wanted - share)


def _part(path: str) -> str:
    """The file's path, or the folder of its file system."""
    words = path.split("/")
    return "/".join(words[:2]) if words[0] == "fs" and len(words) > 2 else path


def _grouped(whole: list[Change], wanted: int) -> list[Change]:
    """Join neighbouring commits so that `wanted` are left."""
    if len(whole) <= wanted:
        return whole
    edges = [len(whole) * place // wanted for place in range(wanted + 1)]
    grouped = []
    for low, high in pairwise(edges):
        part = whole[low:high]
        more = f" and {len(part) - 1} more" if len(part) > 1 else ""
        files = tuple(file for change in part for file in change.files)
        grouped.append(Change(f"{part[0].subject}{more}", files))
    return grouped


def write(
    repository: Path, plain: Sequence[Source], fix: bytes, *, commits: int = 0, broken: int = 0
) -> History:
    """Write the history of these releases, oldest first, into a new bare repository."""
    kept = [changes.patched_with(source, fix, "the check", source.label) for source in plain]
    first, second = _halves(changes_of(kept), max(0, commits - 2))
    # After the removal, vmscan.c is that of the release.
    file = "mm/vmscan.c"
    pairs = zip(kept, plain, strict=True)
    without = {_blob(patched, file): _blob(source, file) for patched, source in pairs}
    now = _blob(kept[0], file)
    for change in first:
        now = {path: blob for path, _, blob in change.files}.get(file, now)
    removal = Change(REMOVAL, ((file, "100644", without[now]),))
    later = [
        replace(
            change,
            files=tuple((path, mode, without.get(blob, blob)) for path, mode, blob in change.files),
        )
        for change in second
    ]
    whole = [*first, removal, *later]
    middle = len(first)
    sources_used = (*plain, *kept)
    objects = tuple(dict.fromkeys(store for source in sources_used for store in source.objects))
    _run(["git", "init", "-q", "--bare", "--template=", "-b", "history", str(repository)])
    (repository / "objects/info").mkdir(exist_ok=True)
    (repository / "objects/info/alternates").write_text(
        "".join(f"{place.resolve()}\n" for place in objects)
    )
    bad_ones = range(middle - broken // 2, middle - broken // 2 + broken)
    stream = b"".join(_stream(kept[0], whole, bad_ones, objects))
    _run(["git", "-C", str(repository), "fast-import", "--quiet"], stream)
    listed = _run(["git", "-C", str(repository), "rev-list", "--reverse", HEAD]).split()
    return History(
        listed[0],
        listed[1 + middle],
        listed[-1],
        tuple(listed),
        tuple(listed[1 + place] for place in bad_ones),
    )


def _stream(
    first: Source, whole: Sequence[Change], broken: range, objects: Sequence[Path]
) -> Iterator[bytes]:
    yield _commit(f"{first.label}, with the check of 6.12") + f"M 040000 {first.tree} \n".encode()
    swap = _blob(first, BROKEN)
    for place, change in enumerate(whole):
        yield _commit(change.subject)
        for path, mode, blob in change.files:
            swap = blob if path == BROKEN else swap
            if path == BROKEN and place in broken:
                continue
            gone = blob == GONE
            yield f"D {path}\n".encode() if gone else f"M {mode} {blob} {path}\n".encode()
        if place in broken:
            done = git(["cat-file", "blob", swap], objects)
            text_of(done, BROKEN)
            data = b"#error this stretch does not compile\n" + done.stdout
            yield f"M 100644 inline {BROKEN}\ndata {len(data)}\n".encode() + data + b"\n"
        elif place - 1 in broken:
            yield f"M 100644 {swap} {BROKEN}\n".encode()


def _commit(subject: str) -> bytes:
    text = subject.encode(errors="surrogateescape")
    return f"commit {HEAD}\n".encode() + WHO + f"data {len(text)}\n".encode() + text + b"\n"


def _blob(source: Source, path: str) -> str:
    return text_of(git(["rev-parse", f"{source.tree}:{path}"], source.objects), path)


def _run(command: Sequence[str], data: bytes = b"") -> str:
    done = subprocess.run(command, input=data, env=sources.environment(), capture_output=True)
    return text_of(done, command[0])


def main(arguments: list[str] | None = None) -> int:
    """Make a history; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.make_debian_history")
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("repository", type=Path)
    parser.add_argument("--series", default="7.2")
    parser.add_argument("--commits", type=int, default=0, metavar="N", help="commits in all")
    parser.add_argument("--broken", type=int, default=0, metavar="N")
    parser.add_argument("--mirror", metavar="URL")
    options = parser.parse_args(arguments)
    history = write(
        options.repository,
        releases(options.series, options.mirror),
        FIX.read_bytes(),
        commits=options.commits,
        broken=options.broken,
    )
    print(f"good {history.good}\nculprit {history.culprit}\nbad {history.bad}")
    print(f"commits {len(history.commits)}")
    for commit in history.broken:
        print(f"broken {commit}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("make_debian_history", main))
