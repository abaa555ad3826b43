# SPDX-License-Identifier: GPL-2.0-or-later
"""The only reader of results (docs/FORMAT.md): a campaign's folder, or one run's, to arrays.

Damage never raises: it is named in `Run.warnings`. What the user can put right (no such folder, an
unknown format version, nothing in it) raises UserError.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis.records import (
    ROUNDING,
    Floats,
    Lines,
    Table,
    number,
    parse_events,
    parse_lines,
    parse_object,
    parse_table,
)
from setup.errors import UserError

FORMAT_VERSION = 1
TABLES = ("vmstat", "meminfo", "psi", "diskstats")
MARKS = ("status.json", "meta.json", "events.jsonl")


@dataclass(frozen=True)
class Stream:
    """The lines of one program; `elapsed` and `gap` in seconds, one value a line."""

    name: str
    begin: float  # elapsed at which it started
    elapsed: Floats
    gap: Floats
    lines: list[str]
    open_gap: float  # the silence after the last line, seconds: a stall that may not have ended
    ended: bool  # its end was recorded; else open_gap reaches to the last thing the machine sent

    @property
    def last(self) -> float:
        """Elapsed of the last line (of the start if there is none)."""
        return float(self.elapsed[-1]) if len(self.elapsed) else self.begin

    @property
    def until(self) -> float:
        """Elapsed up to which the stream is known: its end, or the last thing the machine sent."""
        return self.last + self.open_gap


@dataclass(frozen=True)
class Run:
    """One run as it is on disk."""

    path: Path
    variant: str
    number: int
    meta: dict[str, Any]
    status: dict[str, Any]
    events: list[dict[str, Any]]
    streams: dict[str, Stream]
    tables: dict[str, Table]
    last_sent: float  # elapsed of the last thing that the machine sent
    warnings: list[str]

    @property
    def state(self) -> str:
        """How the run ended: a state of docs/FORMAT.md."""
        return str(self.status.get("state", "unknown"))

    @property
    def label(self) -> str:
        """What the user called the variant (from a stranger: see analysis.words.plain)."""
        label = self.meta.get("label")
        return label if isinstance(label, str) and label.strip() else self.variant

    @property
    def gitks(self) -> list[Stream]:
        """The gitk streams, in order."""
        return [stream for name, stream in self.streams.items() if re.match(r"gitk-\d+\Z", name)]

    def fact(self, *keys: str) -> Any:
        """A value of meta.json by its path of keys; None if it is not there."""
        value: Any = self.meta
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def column(self, table: str, name: str) -> tuple[Floats, Floats] | None:
        """Elapsed and values of a counter where it could be read; None if not available."""
        values = self.tables[table].get(name) if table in self.tables else None
        if values is None:
            return None
        good = np.isfinite(values)
        return self.tables[table].columns["elapsed_s"][good], values[good]

    def kern_lines(self) -> Iterator[str]:
        """The kernel's log, at most 64 KiB of it in memory; nothing if there is none."""
        try:
            with (self.path / "kern.log").open("rb") as log:
                while line := log.readline(65536):
                    yield line.decode("utf-8", "replace").rstrip("\r\n")
        except OSError:
            return


@dataclass(frozen=True)
class Campaign:
    """All runs of a folder that have an end, and the names of those that have none."""

    path: Path
    runs: list[Run]
    incomplete: list[str]

    def variants(self) -> dict[str, list[Run]]:
        """Runs by variant, both in order."""
        variants: dict[str, list[Run]] = {}
        for run in self.runs:
            variants.setdefault(run.variant, []).append(run)
        return variants


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts 6.1 before 6.12, and gitk-2 before gitk-10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part[:18]), part) if part[0] in "0123456789" else (-1, part) for part in parts]


def load_campaign(folder: Path) -> Campaign:
    """Load a campaign, one variant's folder or one run's; UserError if there is nothing to load."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of results")
    if _is_run(folder):
        place = folder.resolve()
        found = [(place.parent.name, int(place.name) if _is_number(place.name) else 1, folder)]
    elif any(_is_run(one) for one in _numbered(folder)):
        found = [(folder.resolve().name, int(one.name), one) for one in _numbered(folder)]
    else:
        found = [
            (variant.name, int(one.name), one)
            for variant in sorted(_folders(folder), key=lambda path: natural(path.name))
            if variant.name != "report"
            for one in _numbered(variant)
        ]
    if not found:
        raise UserError(f"{folder}: holds no runs", hint="expected <variant>/<number>/status.json")
    runs: list[Run] = []
    incomplete: list[str] = []
    for variant, run_number, path in found:
        status = parse_object(_read(path / "status.json", []) or b"")
        if status is None:
            there = (path / "status.json").exists()
            why = "status.json cannot be read" if there else "no status.json"
            incomplete.append(f"{variant}/{run_number} ({why})")
        else:
            runs.append(_load_run(path, variant, run_number, status))
    return Campaign(folder, runs, incomplete)


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error


def _is_number(name: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}", name) is not None


def _numbered(folder: Path) -> list[Path]:
    return sorted(
        (one for one in _folders(folder) if _is_number(one.name)), key=lambda one: int(one.name)
    )


def _is_run(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in MARKS)


def _read(path: Path, warnings: list[str]) -> bytes | None:
    """The file's bytes; None if it is not there, unreadable, or no file (a pipe would block)."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        warnings.append(f"{path.name}: {error.strerror}")
        return None


def _check_format(path: Path, value: dict[str, Any]) -> None:
    version = value.get("format")
    if isinstance(version, bool) or version != FORMAT_VERSION:
        raise UserError(
            f"{path}: format version {str(version)[:20]!r} is unknown",
            hint=f"this suite reads version {FORMAT_VERSION}",
        )


def _load_run(path: Path, variant: str, run_number: int, status: dict[str, Any]) -> Run:
    warnings: list[str] = []
    _check_format(path / "status.json", status)
    meta = parse_object(_read(path / "meta.json", warnings) or b"")
    if meta is None:
        warnings.append("meta.json: missing or damaged, the machine is not known")
        meta = {}
    else:
        _check_format(path / "meta.json", meta)
    events, problems = parse_events(_read(path / "events.jsonl", warnings) or b"")
    warnings += [f"events.jsonl: {problem}" for problem in problems]
    tables: dict[str, Table] = {}
    for name in TABLES:
        raw = _read(path / f"{name}.tsv", warnings)
        if not raw:
            continue
        table = parse_table(raw)
        if table is None:
            warnings.append(f"{name}.tsv: has no header that can be read, left out")
        elif len(table.columns["elapsed_s"]):
            tables[name] = table
        if table is not None:
            warnings += [f"{name}.tsv: {problem}" for problem in table.problems]
    logs = {file.name[8:-4]: file for file in path.glob("latency-*.log")}
    lines = {
        name: parse_lines(_read(logs[name], warnings) or b"") for name in sorted(logs, key=natural)
    }
    for name, one in lines.items():
        warnings += [f"latency-{name}.log: {problem}" for problem in one.problems]
    last_sent = _last_sent(events, tables, lines)
    began = number(meta.get("t0")) is not None or any(
        event["event"] in ("start", "stream-start") for event in events
    )
    streams: dict[str, Stream] = {}
    for name, one in lines.items():
        stream = _stream(name, one, events, began, last_sent, warnings)
        if stream is not None:
            streams[name] = stream
    _expect_gitks(meta, streams, began, warnings)
    return Run(
        path, variant, run_number, meta, status, events, streams, tables, last_sent, warnings
    )


def _first(events: list[dict[str, Any]], kind: str, key: str, **match: str) -> float | None:
    """The key of the first event of this kind (and with these values), if it is a number."""
    for event in events:
        if event["event"] == kind and all(event.get(k) == v for k, v in match.items()):
            return number(event.get(key))
    return None


def _last_sent(
    events: list[dict[str, Any]], tables: dict[str, Table], lines: dict[str, Lines]
) -> float:
    """Elapsed of the last thing that the machine sent."""
    stamps = [float(table.columns["elapsed_s"][-1]) for table in tables.values()]
    stamps += [float(one.elapsed[-1]) for one in lines.values() if len(one.elapsed)]
    stamps += [one.end[0] for one in lines.values() if one.end]
    stamps += [number(event.get("elapsed")) or 0.0 for event in events]
    return max(stamps, default=0.0)


def _stream(
    name: str,
    lines: Lines,
    events: list[dict[str, Any]],
    began: bool,
    last_sent: float,
    warnings: list[str],
) -> Stream | None:
    """The stream with its start and its open gap; None if it never started."""
    spoke = len(lines.elapsed) > 0 or lines.end is not None
    if not spoke and not began:
        warnings.append(f"latency-{name}.log: empty, and the workload never began")
        return None
    expected = _first(events, "stream-start", "elapsed", stream=name) or 0.0
    if len(lines.elapsed):
        begin = float(lines.elapsed[0] - lines.gap[0])
    else:
        begin = lines.end[0] - lines.end[1] if lines.end else expected
    unaccounted = lines.unaccounted + max(0.0, begin - expected)
    if unaccounted > ROUNDING:
        warnings.append(f"latency-{name}.log: lines are missing, {unaccounted:.1f} s uncounted")
    if begin < expected - ROUNDING:
        warnings.append(f"latency-{name}.log: its first gap reaches back before the start")
    last = float(lines.elapsed[-1]) if len(lines.elapsed) else begin
    over = _first(events, "stream-end", "elapsed", stream=name)
    if lines.end:
        open_gap, ended = lines.end[1], True
    elif over is not None and over >= last:
        open_gap, ended = over - last, True
    else:
        open_gap, ended = max(0.0, last_sent - last), False
    return Stream(name, begin, lines.elapsed, lines.gap, lines.text, open_gap, ended)


def _expect_gitks(
    meta: dict[str, Any], streams: dict[str, Stream], began: bool, warnings: list[str]
) -> None:
    """Name the gitk's that were asked for and left no log."""
    parameters = meta.get("parameters")
    asked = number(parameters.get("gitk")) if isinstance(parameters, dict) else None
    if asked is None or not 0 < asked <= 1000 or not began:
        return
    missing = [f"gitk-{n}" for n in range(1, int(asked) + 1) if f"gitk-{n}" not in streams]
    if missing:
        warnings.append(f"no latency log of {', '.join(missing[:8])}")
