# SPDX-License-Identifier: GPL-2.0-or-later
"""What is done to a campaign's folder, or to its bundle, before a command reads it.

Each mutation takes a source of chance and a folder (or a bundle) and changes it in place.
"""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

Mutation = Callable[[Random, Path], None]

NUMBERS = (
    *("0", "-1", "-0.0", "1e308", "1e15", "9" * 400, "NaN", "inf", "-inf", "1e-320", "0x10"),
    *("18446744073709551616", "2147483648", "1_000", "٣", "1.5.2", "", " "),
)
WORDS = (
    *(
        "",
        "²",
        "\x1b[2J\x1b]0;x\x07",
        "[red]",
        "a" * 70_000,
        "../../x",
        "\u202egpj",
        "\x00",
        "\ufeff",
    ),
    *("ata-" * 9000, "ip=" * 9000, "=1+1", "<script>", "%s%n", "null", "true", "[end]", "\r"),
)
KEYS = ("a." * 40_000 + "a", '"' + "k" * 9000 + '"', "format", "a-b", "²")
MOST_BYTES = 4 << 20  # of a log that is blown up


def some_file(rng: Random, folder: Path, suffix: str = "") -> Path | None:
    """A plain file below the folder."""
    found = sorted(p for p in folder.rglob(f"*{suffix}") if p.is_file() and not p.is_symlink())
    return rng.choice(found) if found else None


def _rewrite(rng: Random, folder: Path, change: Callable[[bytes], bytes], suffix: str = "") -> None:
    path = some_file(rng, folder, suffix)
    if path is not None:
        path.write_bytes(change(path.read_bytes()))


def flip_bytes(rng: Random, folder: Path) -> None:
    def change(raw: bytes) -> bytes:
        data = bytearray(raw)
        for _ in range(rng.choice((1, 3, 50)) if data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)

    _rewrite(rng, folder, change)


def cut_short(rng: Random, folder: Path) -> None:
    _rewrite(rng, folder, lambda raw: raw[: rng.randrange(len(raw) + 1)])


def move_lines(rng: Random, folder: Path) -> None:
    """Lines are dropped, repeated, exchanged."""

    def change(raw: bytes) -> bytes:
        lines = raw.splitlines(keepends=True)
        for _ in range(rng.choice((1, 5, 40)) if lines else 0):
            at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            if rng.random() < 0.4:
                lines.insert(at, lines[other])
            elif rng.random() < 0.5 and len(lines) > 1:
                del lines[at]
            else:
                lines[at], lines[other] = lines[other], lines[at]
            if not lines:
                break
        return b"".join(lines)

    _rewrite(rng, folder, change)


def blow_up(rng: Random, folder: Path) -> None:
    """A file is as long as no run's is, or has one line that is."""

    def change(raw: bytes) -> bytes:
        piece = raw[: rng.choice((20, 400, 20_000))] or b"x"
        if rng.random() < 0.5:
            piece = piece.replace(b"\n", b" ")
        return raw + piece * (rng.randrange(1, MOST_BYTES) // len(piece))

    _rewrite(rng, folder, change)


def change_cells(rng: Random, folder: Path) -> None:
    """Cells of a table are numbers that no counter has, or words."""

    def change(raw: bytes) -> bytes:
        rows = [line.split("\t") for line in raw.decode("utf-8", "replace").split("\n")]
        for _ in range(rng.choice((1, 10, 200))):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice((*NUMBERS, *WORDS))
        return "\n".join("\t".join(row) for row in rows).encode("utf-8", "surrogatepass")

    _rewrite(rng, folder, change, ".tsv")


def change_stamps(rng: Random, folder: Path) -> None:
    """Stamps and gaps of a latency log."""

    def change(raw: bytes) -> bytes:
        rows = [line.split(" ", 2) for line in raw.decode("utf-8", "replace").split("\n")]
        for _ in range(rng.choice((1, 3, 50))):
            row = rng.choice(rows)
            row[rng.randrange(len(row))] = rng.choice((*NUMBERS, *WORDS, "1e7", "99999999.999"))
        return "\n".join(" ".join(row) for row in rows).encode("utf-8", "surrogatepass")

    _rewrite(rng, folder, change, ".log")


def any_value(rng: Random) -> Any:
    """A value of JSON that nobody expects there."""
    deep: Any = 1
    for _ in range(rng.choice((5, 60, 900))):
        deep = [deep] if rng.random() < 0.5 else {"a": deep}
    plain: tuple[Any, ...] = (None, True, -1, 0, 1e308, 1e15, 10**400, [], {}, [[]], deep)
    return rng.choice((*plain, *WORDS, float("nan")))


def _change_value(rng: Random, value: Any) -> Any:
    """The value with one of its parts changed, dropped or added."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(sorted(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.1:
            return {**value, rng.choice(WORDS): any_value(rng)}
        return {**value, key: _change_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        return [*value[:at], _change_value(rng, value[at]), *value[at + 1 :]]
    return any_value(rng)


def change_json(rng: Random, folder: Path) -> None:
    def change(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        at = rng.randrange(len(lines)) if len(lines) > 3 and raw[:2] != b"{\n" else None
        try:
            found = json.loads(raw if at is None else lines[at])
        except ValueError:
            return raw
        changed = json.dumps(_change_value(rng, found)).encode("utf-8", "surrogatepass")
        return changed if at is None else b"\n".join((*lines[:at], changed, *lines[at + 1 :]))

    _rewrite(rng, folder, change, rng.choice((".json", ".jsonl")))


def change_toml(rng: Random, folder: Path) -> None:
    def change(raw: bytes) -> bytes:
        lines = raw.decode("utf-8", "replace").split("\n")
        at = rng.randrange(len(lines))
        key, equals, _ = lines[at].partition(" = ")
        value = rng.choice((*NUMBERS, *(json.dumps(word) for word in WORDS), "[" * 900 + "]" * 900))
        options = [f"{rng.choice(KEYS)} = {value}", f"[{rng.choice(KEYS)}]", rng.choice(WORDS)]
        options += [f"{key} = {value}"] * 3 if equals else []
        lines[at] = rng.choice(options)
        return "\n".join(lines).encode("utf-8", "surrogatepass")

    _rewrite(rng, folder, change, ".toml")


def replace_file(rng: Random, folder: Path) -> None:
    """A file is gone, or a link, a folder, a FIFO."""
    path = some_file(rng, folder)
    if path is None:
        return
    path.unlink()
    kind = rng.randrange(5)
    if kind == 1:
        path.symlink_to(rng.choice(("/etc/passwd", str(path), "/dev/zero", "../../..")))
    elif kind == 2:
        path.mkdir()
    elif kind == 3:
        os.mkfifo(path)
    elif kind == 4:
        path.symlink_to(folder)


def rename_something(rng: Random, folder: Path) -> None:
    """A file or folder has a name that the suite gives to none."""
    places = sorted(folder.rglob("*"))
    if not places:
        return
    place = rng.choice(places)
    names = ("²", "٣", "0", "-1", "1.cut-1", "x" * 255, "\x1b[2J", "a b", "REPORT.TXT", "MANIFEST")
    target = place.with_name(rng.choice((*names, os.fsdecode(b"\xff\xfe"))))
    if not os.path.lexists(target):
        place.rename(target)


def copy_run(rng: Random, folder: Path) -> None:
    """A run is there again, under another number or another variant."""
    runs = sorted(path.parent for path in folder.rglob("status.json"))
    if runs:
        run = rng.choice(runs)
        where = rng.choice(runs).parent / str(rng.choice((2, 7, 77, 10**30)))
        if not where.exists():
            shutil.copytree(run, where, symlinks=True, ignore_dangling_symlinks=True)


OF_FOLDERS: dict[str, Mutation] = {
    one.__name__: one
    for one in (
        *(flip_bytes, cut_short, move_lines, blow_up, change_cells, change_stamps, change_json),
        *(change_toml, replace_file, rename_something, copy_run),
    )
}


def damage_archive(rng: Random, bundle: Path) -> None:
    """Bytes of the compressed file are others, or its end is missing."""
    data = bytearray(bundle.read_bytes())
    for _ in range(rng.choice((1, 20))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    end = rng.randrange(len(data)) if rng.random() < 0.4 else len(data)
    bundle.write_bytes(bytes(data[:end]))


def add_member(rng: Random, bundle: Path) -> None:
    """The archive has an entry that no bundle has."""
    with tarfile.open(bundle) as old:
        entries = [(one, old.extractfile(one) if one.isfile() else None) for one in old]
        data = [(one, None if file is None else file.read()) for one, file in entries]
    info = tarfile.TarInfo(
        rng.choice(("../x", "/tmp/x", "bug-report/x", "x" * 300, "bug-report", ""))
    )
    info.type = rng.choice(
        (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.REGTYPE)
    )
    info.linkname = rng.choice(("/etc/passwd", "bug-report/plan.toml", "."))
    data.insert(rng.randrange(len(data) + 1), (info, b"" if info.isreg() else None))
    with tarfile.open(bundle, "w:gz", format=tarfile.PAX_FORMAT) as new:
        for entry, content in data:
            new.addfile(entry, None if content is None else io.BytesIO(content))


OF_BUNDLES: dict[str, Mutation] = {one.__name__: one for one in (damage_archive, add_member)}
