# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the description of a run's workload in meta.json, and the figures that it measured.

It may come from a stranger: texts are made plain, and invalid values are reported and left out.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from analysis.reading.latency_log import number
from analysis.reading.words import first_names, safe_line
from contract.run_files import GITK, TABLES
from contract.workload import (
    DESKTOP,
    FIGURES,
    KEY,
    STALLED,
    Curve,
    Description,
    Figure,
    FigureTable,
    Late,
    Panel,
    Recorded,
    TableRow,
    is_described,
    named,
)

SUBJECT = GITK.rstrip("-")
SOME_SUBJECT = "program"  # of several workloads, or of a workload that names no subject
MOST_SUBJECTS = 100
MOST_GITKS = 1000
MOST_FIGURES = 200
MOST_TABLES = 8
MOST_COLUMNS = 12
MOST_ROWS = 60
MOST_PANELS, MOST_CURVES = 8, 4
MOST_DIGITS = 6
MOST_COUNTERS = 16  # of a recorded figure
MOST_DIVISOR = 10**9
MOST_NAMED = 4  # damaged items that a warning names
NAME, TITLE, SUMMARY, COLUMN, UNIT, STREAM = 40, 80, 200, 20, 12, 200  # characters
# Exports have these keys, too: no spreadsheet takes one for a formula. A redaction writes <>.
FIGURE_KEY = re.compile(r"[A-Za-z0-9<][A-Za-z0-9._+<>-]{0,63}")
COUNTER = re.compile(r"[a-z0-9_*]{1,48}")  # a pattern of columns of trace.tsv
Made = TypeVar("Made")


def read_workload(meta: dict[str, Any], streams: Iterable[str], warnings: list[str]) -> Description:
    """The description of the run's workload; without a description, that of the desktop.

    streams: names of the run's streams. If a workload other than the desktop has no description,
    only its name is known.
    """
    workload = meta.get(KEY)
    known = is_described(meta)
    if workload is not None and not isinstance(workload, dict):
        taken = "taken for the desktop" if known else "not known"
        warnings.append(f"meta.json: workload is damaged, {taken}")
    if not known:
        return Description(safe_line(named(meta), NAME), "", SOME_SUBJECT, ())
    if not isinstance(workload, dict):
        return Description(DESKTOP, "", SUBJECT, tuple(_gitks(meta, streams)))
    bad: list[str] = []
    primary = workload.get("primary", STALLED)
    if not _is_key(primary):
        bad.append("primary")
        primary = STALLED
    subjects = _each(workload, "subjects", MOST_SUBJECTS, _stream, bad)
    figures = _each(workload, "figures", MOST_FIGURES, _figure, bad)
    description = Description(
        name=_words(workload, "name", NAME, bad) or "unnamed",
        summary=_words(workload, "summary", SUMMARY, bad),
        subject=_words(workload, "subject", NAME, bad) or SOME_SUBJECT,
        subjects=tuple(dict.fromkeys(subjects)),
        primary=primary,
        figures=tuple({figure.key: figure for figure in figures}.values()),
        tables=tuple(_each(workload, "tables", MOST_TABLES, _table, bad)),
        recorded=tuple(_each(workload, "recorded", MOST_FIGURES, _recorded, bad)),
        late=tuple(_each(workload, "late", MOST_FIGURES, _late, bad)),
        settled=_words(workload, "settled", NAME, bad) if "settled" in workload else "",
        panels=tuple(_each(workload, "panels", MOST_PANELS, _panel, bad)),
        phases=_stream(workload.get("phases")) or "",
    )
    if bad:
        warnings.append(f"meta.json: of the workload left out: {first_names(bad, MOST_NAMED)}")
    return description


def read_figures(meta: dict[str, Any], warnings: list[str]) -> dict[str, float]:
    """Key -> figure that the workload measured, in its own unit; invalid figures are left out."""
    measured = meta.get(FIGURES, {})
    if not isinstance(measured, dict):
        warnings.append("meta.json: figures are damaged, not available")
        return {}
    figures: dict[str, float] = {}
    bad: list[str] = []
    for key, value in list(measured.items())[:MOST_FIGURES]:
        figure = number(value)
        if FIGURE_KEY.fullmatch(key) and figure is not None and figure >= 0:
            figures[key] = figure
        else:
            bad.append(safe_line(key, NAME))
    if len(measured) > MOST_FIGURES:
        bad.append(f"all beyond {MOST_FIGURES}")
    if bad:
        warnings.append(f"meta.json: figures that are no number: {first_names(bad, MOST_NAMED)}")
    return figures


def _gitks(meta: dict[str, Any], streams: Iterable[str]) -> list[str]:
    """The gitk's that have a stream, and those that should have been started."""
    present = [name for name in streams if re.fullmatch(rf"{GITK}\d+", name)]
    parameters = meta.get("parameters")
    asked = number(parameters.get("gitk")) if isinstance(parameters, dict) else None
    wanted = int(min(asked or 0, MOST_GITKS))
    return list(dict.fromkeys([*present, *(f"{GITK}{n}" for n in range(1, wanted + 1))]))


def _words(told: dict[str, Any], key: str, limit: int, bad: list[str]) -> str:
    value = told.get(key)
    if isinstance(value, str):
        return safe_line(value, limit)
    bad.append(key)
    return ""


def _each(
    told: dict[str, Any], key: str, most: int, read: Callable[[Any], Made | None], bad: list[str]
) -> list[Made]:
    """The valid items of a list; empty if there is no list."""
    values = told.get(key, [])
    if not isinstance(values, list):
        bad.append(key)
        return []
    made = [read(value) for value in values[:most]]
    bad += [f"{key}[{place}]" for place, item in enumerate(made) if item is None]
    if len(values) > most:
        bad.append(f"{key} beyond {most}")
    return [item for item in made if item is not None]


def _stream(value: Any) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= STREAM else None


def _figure(value: Any) -> Figure | None:
    """The figure; None if it is invalid or has no direction, which is not guessed."""
    match value:
        case {
            "key": str(key),
            "title": str(title),
            "unit": str(unit),
            "digits": int(digits),
            "better": "lower" | "higher" as better,
        } if _is_key(key) and not isinstance(digits, bool) and 0 <= digits <= MOST_DIGITS:
            return Figure(key, safe_line(title, TITLE), safe_line(unit, UNIT), digits, better)
    return None


def _table(value: Any) -> FigureTable | None:
    match value:
        case {"title": str(title), "columns": [*columns], "rows": [*rows]} if columns:
            heads = tuple(safe_line(column, COLUMN) for column in columns[:MOST_COLUMNS])
            table_rows = tuple(_rows(rows[:MOST_ROWS], len(heads)))
            better = _better(value.get("better"), len(heads))
            failed = value.get("of_failed") is True
            made = FigureTable(safe_line(title, TITLE), heads, table_rows, better, failed)
            return made if table_rows else None
    return None


def _better(value: Any, columns: int) -> tuple[str, ...]:
    """The direction of each column; "" for a column with no direction or an unknown word."""
    if not isinstance(value, list):
        return ()
    directions = [word if word in ("lower", "higher") else "" for word in value[:columns]]
    return (*directions, *[""] * (columns - len(directions)))


def _panel(value: Any) -> Panel | None:
    match value:
        case {"title": str(title), "unit": str(unit), "curves": [*curves]}:
            readable = [curve for entry in curves[:MOST_CURVES] if (curve := _curve(entry))]
            return (
                Panel(safe_line(title, NAME), safe_line(unit, UNIT), tuple(readable))
                if readable
                else None
            )
    return None


def _curve(value: Any) -> Curve | None:
    match value:
        case {"title": str(title), "column": str(column), "rate": bool(rate)} if _is_column(column):
            per = number(value.get("per"))
            table, stream = value.get("table"), _stream(value.get("stream"))
            if per and per > 0 and table in TABLES:
                return Curve(safe_line(title, NAME), column, table=table, rate=rate, per=per)
            if per and per > 0 and stream:
                return Curve(safe_line(title, NAME), column, stream=stream, rate=rate, per=per)
    return None


def _is_column(value: str) -> bool:
    """Whether a kernel may have such a column: `HugePages_Total`, `Active(anon)`."""
    return re.fullmatch(r"[A-Za-z0-9_()]{1,64}", value) is not None


def _rows(rows: list[Any], columns: int) -> Iterator[TableRow]:
    """The rows, each with a cell for every column; missing cells are empty."""
    for row in rows:
        match row:
            case {"title": str(title), "figures": [*keys]}:
                cells = [key if _is_key(key) else "" for key in keys[:columns]]
                yield TableRow(safe_line(title, TITLE), (*cells, *[""] * (columns - len(cells))))


def _recorded(value: Any) -> Recorded | None:
    match value:
        case {
            "key": str(key),
            "columns": [*columns],
            "since": str(since),
            "until": str(until),
            "divisor": int(divisor),
            "share_of": [*share_of],
        } if columns and not isinstance(divisor, bool):
            keys = (key, *filter(None, (since, until)))
            counters = all(map(_are_counters, (columns, share_of)))
            if all(map(_is_key, keys)) and counters and 1 <= divisor <= MOST_DIVISOR:
                return Recorded(key, tuple(columns), since, until, divisor, tuple(share_of))
    return None


def _late(value: Any) -> Late | None:
    match value:
        case {"key": str(key), "stream": stream, "of": "worst" | "missed" as of} if _is_key(key):
            return Late(key, name, of) if (name := _stream(stream)) else None
        case {"key": str(key), "stream": stream, "of": "again", "since": str(since)} if _is_key(
            key
        ) and _is_key(since):
            return Late(key, name, "again", since) if (name := _stream(stream)) else None
    return None


def _are_counters(values: list[Any]) -> bool:
    fit = (isinstance(value, str) and COUNTER.fullmatch(value) for value in values)
    return len(values) <= MOST_COUNTERS and all(fit)


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and FIGURE_KEY.fullmatch(value) is not None
