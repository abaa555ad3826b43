# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads results: the only reader of a campaign's folder, or of one run's.

docs/reference/results-format.md describes them.

Damage never raises: it is reported in `Run.warnings` and `Campaign.problems`. What the user can
correct (no such folder, an unknown format version, an empty folder) raises UserError.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from analysis.reading.archive import unpacked
from analysis.reading.campaign_files import check_format, load_hosts, load_machine, load_plan
from analysis.reading.copies import without_copies
from analysis.reading.counter_tables import Table, load_table
from analysis.reading.evidence import Evidence
from analysis.reading.files import LARGEST_LOG, names_in, read_file, read_lines
from analysis.reading.keys import Keys, read_keys
from analysis.reading.latency_log import (
    Floats,
    Lines,
    elapsed_time,
    number,
    parse_events,
    parse_lines,
)
from analysis.reading.places import LARGEST_FACTS, Place, find_runs, natural
from analysis.reading.processes import done_to_each
from analysis.reading.recorded import answered, recorded
from analysis.reading.streams import Stream, make_stream
from analysis.reading.words import safe_line
from analysis.reading.workload import SOME_SUBJECT, read_figures, read_workload
from contract.plan import Plan
from contract.run_files import (
    EVENTS,
    KERN_LOG,
    KEYS,
    META,
    STAMP,
    STATUS,
    TABLES,
    latency_log,
)
from contract.untrusted import json_object
from contract.workload import Description, is_described
from errors import UserError

MOST_STREAMS = 1000
MOST_FACTS = 32 << 20  # bytes of JSON in all; parsed, it takes up to twenty times as much memory
LARGE = 60  # runs; from this number on several processes are faster
LATENCY_LOG = re.compile(re.escape(latency_log("NAME")).replace("NAME", "(.+)"), re.DOTALL)


@dataclass(frozen=True, eq=False)
class Run:
    """One run as it is on disk; compared and hashed by identity, not by content."""

    path: Path
    variant: str
    number: int
    meta: dict[str, Any]
    status: dict[str, Any]
    events: list[dict[str, Any]]
    streams: dict[str, Stream]
    tables: dict[str, Table]
    last_sent: float  # elapsed s of the last line, sample or event that the machine sent
    warnings: list[str]
    order: int | None = None  # the run's position among all runs of the campaign, from 1
    treated: bool = False  # a variant of its campaign has a remedy (analysis.verdicts.felt)
    host: str = ""  # the host that did the run; empty if not recorded
    key_stream: Stream | None = None  # it belongs to no program and is not in `streams`

    @property
    def state(self) -> str:
        """How the run ended: a state listed in docs/reference/results-format.md."""
        return str(self.status.get("state", "unknown"))

    @property
    def label(self) -> str:
        """The user's name of the variant; print it with analysis.reading.words.safe_line only."""
        label = self.meta.get("label")
        return label if isinstance(label, str) and label.strip() else self.variant

    @cached_property
    def workload(self) -> Description:
        """The description of the run's workload; `warnings` reports what could not be read."""
        return read_workload(self.meta, self.streams, [])

    @property
    def described(self) -> bool:
        """Whether the run's workload is known."""
        return is_described(self.meta)

    @cached_property
    def evidence(self) -> Evidence:
        """The tables of the evidence observer."""
        return Evidence(self.path)

    @cached_property
    def figures(self) -> dict[str, float]:
        """Key -> figure of the workload, in its own unit; a missing key is not available."""
        measured = read_figures(self.meta, [])
        t0 = number(self.meta.get("t0"))
        late = answered(list(self.streams.values()), self.workload.late, measured, t0)
        return recorded(self.evidence, self.workload.recorded, measured, t0) | late | measured

    @cached_property
    def keys(self) -> Keys | None:
        """The keys pressed at terminals; None if no key was pressed or they were not recorded."""
        return self._every_key and self._every_key.of(lambda name: name not in self.key_windows)

    @cached_property
    def window_keys(self) -> Keys | None:
        """The keys pressed in windows (--screen); None if there were no windows."""
        if not self._every_key or not self.key_windows:
            return None
        return self._every_key.of(lambda name: name in self.key_windows)

    @cached_property
    def key_windows(self) -> frozenset[str]:
        """The names of the programs that waited for keys in windows."""
        names = self.fact("keys", "windows")
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset()

    @cached_property
    def _every_key(self) -> Keys | None:
        if self.key_stream is None or not len(self.key_stream.elapsed):
            return None
        ends = (event.get("elapsed") for event in self.events if event["event"] == "end")
        over = next((elapsed_time(end) for end in ends), None)
        return read_keys(self.key_stream, self.key_stream.until if over is None else over)

    @property
    def subjects(self) -> list[Stream]:
        """The streams whose stalls count, in order."""
        return [self.streams[name] for name in self.workload.subjects if name in self.streams]

    def fact(self, *keys: str) -> Any:
        """A value of meta.json by its path of keys; None if it is not there."""
        value: Any = self.meta
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def column(self, table: str, name: str) -> tuple[Floats, Floats] | None:
        """Elapsed (s) and values (the file's unit) of a counter, no NaN; None: not available."""
        values = self.tables[table].get(name) if table in self.tables else None
        if values is None:
            return None
        good = np.isfinite(values)
        return self.tables[table].columns[STAMP][good], values[good]

    @property
    def has_kern_log(self) -> bool:
        """Whether there is a kernel log to read (a link does not count)."""
        log = self.path / KERN_LOG
        return log.is_file() and not log.is_symlink()

    def kern_lines(self) -> Iterator[str]:
        """The lines of the kernel's log, at most 64 KiB in memory; no lines if there is no log."""
        return read_lines(self.path / KERN_LOG)


@dataclass(frozen=True)
class Campaign:
    """All runs of a folder that have ended, and the names of those that have not.

    `set_aside`: names of runs that were cut short and repeated. `configs`: variant -> its kernel's
    .config. `changes`: variant -> the patch of its kernel's source. `problems`: what could not be
    read of plan.toml and other files. `machine`: the copy of the machine's file that the plan
    names. `pooled`: a line about each campaign, if several were pooled.
    """

    path: Path
    runs: list[Run]
    incomplete: list[str]
    set_aside: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)
    configs: dict[str, str] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    machine: bytes = b""
    pooled: list[str] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """The noun for a stream whose stalls count ("gitk"); "program" if the runs differ in it."""
        names = {run.workload.subject for run in self.runs if run.described}
        return names.pop() if len(names) == 1 else SOME_SUBJECT

    def variants(self) -> dict[str, list[Run]]:
        """Runs by variant, both in order."""
        variants: dict[str, list[Run]] = {}
        for run in self.runs:
            variants.setdefault(run.variant, []).append(run)
        return variants


def first_described(runs: Sequence[Run]) -> Run:
    """The first run whose workload is known; if there is none, the first run."""
    return next((run for run in runs if run.described), runs[0])


def load_campaign(path: Path) -> Campaign:
    """Load a campaign's folder, a bundle, a variant's folder or a run's folder.

    Raises UserError if there is nothing to load.
    """
    folder = Path(path)
    try:
        if folder.is_file():
            folder = unpacked(folder)
        is_there = folder.is_dir()
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
    if not is_there:
        raise UserError(f"{folder}: no such folder of results")
    listing = find_runs(folder)
    if not listing.runs:
        raise UserError(f"{folder}: holds no runs", hint="expected <variant>/<number>/status.json")
    if listing.bytes_of_facts > MOST_FACTS:
        raise UserError(
            f"{folder}: its {STATUS}, {META} and {EVENTS} have "
            f"{listing.bytes_of_facts >> 20} MiB together",
            hint=f"at most {MOST_FACTS >> 20} MiB are read: name one variant's folder",
        )
    plan = load_plan(folder, listing.problems)
    loaded = _load_places(listing.runs, plan)
    incomplete = [f"{name} (a link, not followed)" for name in listing.links]
    incomplete += [run for run in loaded if isinstance(run, str)]
    runs = without_copies([run for run in loaded if isinstance(run, Run)], listing.problems)
    hosts = load_hosts(folder, listing.problems)
    runs = [replace(run, host=hosts.get(f"{run.variant}/{run.number}", "")) for run in runs]
    machine = load_machine(folder, plan, listing.problems)
    return Campaign(
        folder,
        runs,
        incomplete,
        listing.set_aside,
        plan,
        listing.configs,
        listing.changes,
        listing.problems,
        machine,
    )


def _load_places(places: list[Place], plan: Plan) -> list[Run | str]:
    """The run of each place, or a line that says why it is incomplete; parallel if many."""
    treated = any(variant.remedy for variant in plan.variants)
    load = partial(_load_place, orders=plan.orders, treated=treated)
    return done_to_each(places, load, LARGE, at_once=8)


def _load_place(place: Place, orders: dict[tuple[str, int], int], *, treated: bool) -> Run | str:
    status = json_object(read_file(place.path / STATUS, [], LARGEST_FACTS) or b"")
    if status is not None:
        run = _load_run(place, status, orders.get((place.variant, place.number)))
        return replace(run, treated=treated)
    there = os.path.lexists(place.path / STATUS)
    why = "status.json cannot be read" if there else "no status.json"
    return f"{place.variant}/{place.number} ({why})"


def _load_run(place: Place, status: dict[str, Any], planned: int | None) -> Run:
    warnings: list[str] = []
    path = place.path
    check_format(path / STATUS, status)
    meta = json_object(read_file(path / META, warnings, LARGEST_FACTS) or b"")
    if meta is None:
        warnings.append("meta.json: missing or damaged, the machine is not known")
        meta = {}
    else:
        check_format(path / META, meta)
    events, problems = parse_events(read_file(path / EVENTS, warnings, LARGEST_FACTS) or b"")
    warnings += [f"events.jsonl: {problem}" for problem in problems]
    loaded = {name: load_table(path / f"{name}.tsv", warnings) for name in TABLES}
    tables = {name: table for name, table in loaded.items() if table is not None}
    logs = _latency_logs(path, warnings)
    lines: dict[str, Lines] = {}
    for name, log in logs.items():
        lines[name] = parse_lines(read_file(log, warnings, LARGEST_LOG) or b"")
        warnings += [f"{log.name}: {problem}" for problem in lines[name].problems]
    last_sent = _last_sent(events, tables, lines)
    began = number(meta.get("t0")) is not None or any(
        event["event"] in ("start", "stream-start") for event in events
    )
    streams: dict[str, Stream] = {}
    for name, stream_lines in lines.items():
        stream = make_stream(logs[name], name, stream_lines, events, began, last_sent, warnings)
        if stream is not None:
            streams[name] = stream
    key_stream = streams.pop(KEYS, None)
    read_figures(meta, warnings)
    _expect_subjects(meta, streams, began, warnings)
    return Run(
        path,
        place.variant,
        place.number,
        meta,
        status,
        events,
        streams,
        tables,
        last_sent,
        warnings,
        _order(meta, planned),
        key_stream=key_stream,
    )


def _order(meta: dict[str, Any], planned: int | None) -> int | None:
    """The run's position among all runs: its own record takes precedence over the plan."""
    own = meta.get("order")
    return own if isinstance(own, int) and not isinstance(own, bool) and own > 0 else planned


def _latency_logs(path: Path, warnings: list[str]) -> dict[str, Path]:
    """Stream -> its log, in order; warnings report links, bad names and logs beyond the limit."""
    _, files, links, strange = names_in(path)
    warnings += [f"{name}: its name is no UTF-8, left out" for name in sorted(strange)]
    warnings += [f"{name}: a link, not followed" for name in sorted(links)]
    logs = {match[1]: path / name for name in files if (match := LATENCY_LOG.fullmatch(name))}
    names = sorted(logs, key=natural)
    if len(names) > MOST_STREAMS:
        warnings.append(f"{len(names)} latency logs: only the first {MOST_STREAMS} are read")
    return {name: logs[name] for name in names[:MOST_STREAMS]}


def _last_sent(
    events: list[dict[str, Any]], tables: dict[str, Table], lines: dict[str, Lines]
) -> float:
    """Elapsed s of the last line, sample or event that the machine sent."""
    stamps = [float(table.columns[STAMP][-1]) for table in tables.values()]
    stamps += [float(log.elapsed[-1]) for log in lines.values() if len(log.elapsed)]
    stamps += [log.end[0] for log in lines.values() if log.end]
    stamps += [elapsed_time(event.get("elapsed")) or 0.0 for event in events]
    return max(stamps, default=0.0)


def _expect_subjects(
    meta: dict[str, Any], streams: dict[str, Stream], began: bool, warnings: list[str]
) -> None:
    """Warn about subjects that should have run and left no log."""
    wanted = read_workload(meta, streams, warnings).subjects
    missing = [safe_line(name, 40) for name in wanted if name not in streams]
    if missing and began:
        warnings.append(f"no latency log of {', '.join(missing[:8])}")
