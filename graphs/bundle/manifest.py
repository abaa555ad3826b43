# SPDX-License-Identifier: GPL-2.0-or-later
"""MANIFEST and REDACTIONS.txt of a bundle: lists of its files, and of redacted secrets.

`sha256sum -c` can read MANIFEST; a comment line before each file has its size in bytes.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from analysis.reading.archive import Damaged, members
from analysis.reading.files import read_file
from analysis.reading.words import plural, safe_line
from graphs.bundle.packed_runs import PackedFile
from graphs.redaction.redact import KINDS, TOKEN

NAME = "MANIFEST"
HEAD = "# desktop-freeze bug report, format 1. To check it: sha256sum -c MANIFEST\n"
PART = re.compile(r"# part: ([0-9]{1,9}) of ([0-9]{1,9}) runs")
SIZE = re.compile(r"# ([0-9]{1,12}) bytes")
ENTRY = re.compile(r"(\\?)([0-9a-f]{64})  (.+)")
LARGEST = 16 << 20  # bytes of a MANIFEST
ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}  # as sha256sum escapes file names


def is_part(folder: Path) -> bool:
    """Whether the folder is of a bundle with only some of its campaign's runs."""
    text = (read_file(folder / NAME, [], LARGEST) or b"").decode("utf-8", "replace")
    return PART.search(text) is not None


def manifest(packed: Iterable[PackedFile], held: int, total: int) -> bytes:
    """The text of MANIFEST; held of total runs are in the bundle."""
    lines = [HEAD]
    if held < total:
        lines.append(f"# part: {held} of {total} runs; the table cannot be recomputed from it\n")
    for file in packed:
        name = "".join(ESCAPES.get(char, char) for char in file.path)
        mark = "\\" if name != file.path else ""
        lines.append(f"# {file.size} bytes\n{mark}{file.digest}  {name}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def redactions(packed: Iterable[PackedFile], given: Collection[str]) -> bytes:
    """The text of REDACTIONS.txt: kind, token, count and places; never the secret.

    given: the tokens that replace a secret of these results; the results had others already.
    """
    used: dict[str, Counter[str]] = {}
    for file in packed:
        for token, times in file.used.items():
            if token in given:
                used.setdefault(token, Counter())[file.path] += times
    lines = [
        "What was replaced in this bundle (docs/reference/redaction.md). The same secret has the",
        "same token in every file. No figure was touched.",
        "",
    ]
    if not used:
        lines.append("Nothing.")
    for kind, words in KINDS.items():
        of_kind = {token: files for token, files in used.items() if _is(token, kind)}
        if not of_kind:
            continue
        total = sum(sum(files.values()) for files in of_kind.values())
        lines.append(f"{words}: {plural(total, 'place')}")
        for token in sorted(of_kind, key=lambda token: (len(token), token)):
            files = of_kind[token]
            lines.append(f"  {token}  {plural(sum(files.values()), 'time')}")
            lines += [f"    {times:>5}  {safe_line(path, 300)}" for path, times in files.items()]
        lines.append("")
    return ("\n".join(lines).rstrip() + "\n").encode("utf-8", "replace")


def _is(token: str, kind: str) -> bool:
    match = TOKEN.fullmatch(token)
    return match is not None and match[1] == kind


@dataclass(frozen=True)
class _File:
    size: int
    digest: str


def check(path: Path) -> list[str]:
    """The problems of a bundle, a line each without its path; [] if it was not altered.

    UserError if it cannot be opened.
    """
    problems: list[str] = []
    files: dict[str, _File] = {}
    text: str | None = None
    try:
        for member in members(path):
            folder, slash, name = member.name.partition("/")
            if not slash:
                problems.append(f"{safe_line(folder)}: lies outside of the bundle's folder")
            digest = sha256()
            kept: list[bytes] = []
            for part in member.chunks():
                digest.update(part)
                if name == NAME and member.size <= LARGEST:
                    kept.append(part)
            if name == NAME and member.size <= LARGEST:
                text = b"".join(kept).decode("utf-8", "surrogateescape")
            elif name in files:
                problems.append(f"{safe_line(name)}: is there twice")
            else:
                files[name] = _File(member.size, digest.hexdigest())
    except Damaged as error:
        problems.append(str(error))
    if text is None:
        return [*problems, "no MANIFEST: nothing in it can be checked"]
    return problems + _compared(files, _entries(text, problems))


def remarks(path: Path) -> list[str]:
    """What an unaltered bundle lacks of its campaign, a line each."""
    for member in members(path):
        if member.name.partition("/")[2] == NAME and member.size <= LARGEST:
            text = b"".join(member.chunks()).decode("utf-8", "surrogateescape")
            if part := PART.search(text):
                return [
                    f"holds {part[1]} of {part[2]} runs: the table cannot be recomputed from it "
                    "(compare.json has the figures of all)"
                ]
            return []
    return []


def _entries(text: str, problems: list[str]) -> dict[str, _File]:
    entries: dict[str, _File] = {}
    size = -1
    for line in text.split("\n"):
        if given := SIZE.fullmatch(line):
            size = int(given[1])
            continue
        match = ENTRY.fullmatch(line)
        if match:
            name = _unescaped(match[3]) if match[1] else match[3]
            entries[name] = _File(size, match[2])
            size = -1
        elif line and not line.startswith("#"):
            problems.append(f"MANIFEST: a line that cannot be read: {safe_line(line, 60)}")
    if not entries:
        problems.append("MANIFEST: lists no files")
    return entries


def _unescaped(name: str) -> str:
    known = {text: char for char, text in ESCAPES.items()}
    return re.sub(r"\\[\\nr]", lambda match: known[match[0]], name)


def _compared(found: dict[str, _File], listed: dict[str, _File]) -> list[str]:
    problems = [f"{safe_line(name)}: missing" for name in listed if name not in found]
    for name, file in found.items():
        asked = listed.get(name)
        if asked is None:
            problems.append(f"{safe_line(name)}: added, MANIFEST does not list it")
        elif asked.digest != file.digest:
            sizes = f" ({file.size} bytes, {asked.size} listed)" if asked.size != file.size else ""
            problems.append(f"{safe_line(name)}: altered{sizes}")
        elif asked.size not in (-1, file.size):
            problems.append(f"{safe_line(name)}: MANIFEST has another size for it")
    return problems
