# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a user's plan.toml like a command line, and refuses invalid plans.

Each of its keys is the option of that name. The plan.toml in a campaign's folder is such a file,
too, with further keys that the suite writes (docs/reference/plan-toml.md).
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from contract import remedy, swap, values
from contract.command_line import usual
from contract.levels import ALPHA
from contract.option_rows import IN_MACHINE, MODELLED, PLAN, PROFILED
from contract.option_table import ROWS
from contract.options import in_table, spelled
from contract.plan import ASKED, KEPT, OLDER, TABLES, are_growing, is_older, machine_file
from contract.untrusted import toml_tables
from contract.variant import Variant
from contract.workload import DESKTOP
from run.plans.machine_file import of_plan
from workloads.registry import find
from workloads.workload import Workload

# How the keys of a [[variant]] are read, and the lines of its tables.
OF_VARIANT: dict[str, Callable[[str], Any]] = {
    "kernel": str,
    "label": values.label,
    "append": values.append,
    "swap": swap.read,
    "workload": values.workload,
    "load": values.load,
    "memory": values.memory,
    "daemon": values.daemon,
    "remedy": values.remedy,
}
TABLES_OF_VARIANT = {"knobs": values.knob, "slice": values.slice}


@dataclass(frozen=True)
class AskedPlan:
    """A plan.toml: its options as a command line, its variants, and if resumed its looks.

    edited: how its machine file differs from the campaign's copy, as a message. options: the
    parsed command line.
    """

    argv: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    looks: tuple[int, ...] = ()
    edited: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def read(path: Path, *, resumed: bool = False) -> AskedPlan:
    """The plan in this file; ValueError, in one line, names an invalid key.

    `resumed`: whether it is the plan of the campaign that is resumed.
    """
    try:
        tables = toml_tables(path.read_text(encoding="utf-8"))
        edited = ""
        if (resumed or "format" in tables) and is_older(tables):
            raise ValueError(OLDER)
        if name := machine_file(tables):
            file, edited = of_plan(path, name, kept="format" in tables)
            tables[IN_MACHINE]["machine"] = file
        return replace(parse(tables, resumed=resumed), edited=edited)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(plan: Mapping[str, Any], *, resumed: bool = False) -> AskedPlan:
    """The plan of a parsed plan.toml."""
    _only_known(plan, "")
    if plan.get("alpha", ALPHA) != ALPHA:
        raise ValueError(f"alpha: verdicts have the level {ALPHA}, no other")
    argv: list[str] = []
    looks: tuple[int, ...] = ()
    for key in in_table(PLAN):
        value = plan.get(key)
        if key == "stop_when_sure" and isinstance(value, dict):
            # A resumed campaign keeps these looks; a new one plans its own.
            looks = _looks(value)
            value = None if resumed else looks[-1]
        if value is not None:
            argv.append(_option(key, _text(key, value)))
    tables = plan.get("variant", [])
    if not isinstance(tables, list):
        raise ValueError("write [[variant]], with two brackets")
    variants = tuple(_variant(entry) for entry in tables)
    for table in TABLES:
        argv += _options(table, plan.get(table, {}))
    return AskedPlan(tuple(argv), variants, looks if resumed else ())


def _looks(value: dict[str, Any]) -> tuple[int, ...]:
    _only_known(value, "stop_when_sure")
    looks = value.get("looks")
    if not isinstance(looks, list) or not are_growing(looks):
        raise ValueError("stop_when_sure: looks must be growing numbers of runs")
    return tuple(looks)


def _options(name: str, table: Any) -> list[str]:
    """The options in a table of the plan, as words of a command line."""
    if not isinstance(table, dict):
        raise ValueError(f"[{name}] is not a table")
    _only_known(table, name)
    argv: list[str] = []
    for key, row in in_table(name).items():
        value = table.get(key)
        if isinstance(row.default, bool):
            if not isinstance(value, bool | None):
                raise ValueError(f"{name}.{key}: true or false, not {value!r}")
            argv += spelled(key, value)
        elif row.was_given(value):
            argv.append(_option(key, _text(f"{name}.{key}", value)))
    return argv


def _variant(table: Any) -> Variant:
    if not isinstance(table, dict):
        raise ValueError("[[variant]] is not a table")
    _only_known(table, "variant")
    fields: dict[str, Any] = {"kernel": "debian:stable"}
    try:
        for key, read in OF_VARIANT.items():
            if key in table:
                fields[key] = read(_text(f"variant.{key}", table[key]))
        for key, read in TABLES_OF_VARIANT.items():
            inner = table.get(key, {})
            if not isinstance(inner, dict):
                raise ValueError(f"[variant.{key}] is not a table")
            fields[key] = tuple(
                read(f"{name}={_text(name, value)}") for name, value in inner.items()
            )
        variant = Variant(**fields)
        # A variant kept by a campaign stays the same, even if the remedy has changed since.
        if not variant.remedy or "version" in table:
            return variant
        return remedy.find(variant.remedy).applied(variant)
    except values.Refused as error:
        raise ValueError(str(error)) from None


def _only_known(table: Mapping[str, Any], name: str) -> None:
    keys = ASKED[name]
    for key in table:
        if key not in (*keys, *KEPT.get(name, ())):
            where = f"[{name}]" if name else "the plan"
            raise ValueError(f"{where} has no key {key!r} (it has {', '.join(keys)})")


def _option(key: str, value: str) -> str:
    # As one word, so that a value that begins with a dash is not taken for an option.
    return "=".join(spelled(key, value))


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{key}: a text or a number, not {value!r}")
    text = str(value)
    if not re.fullmatch(r"[^\0-\x1f\x7f]*", text):
        raise ValueError(f"{key}: {text!r} is not valid")
    return text


def merged(stored: Iterable[Variant], asked: Iterable[Variant]) -> tuple[Variant, ...]:
    """The stored variants, followed by the asked ones that are not among them."""
    result = list(stored)
    left = list(result)
    for variant in asked:
        same = next((known for known in left if known.same_machine(variant)), None)
        if same is None:
            result.append(variant)
        else:
            left.remove(same)
    return tuple(result)


def without_overridden(plan: AskedPlan, later: Mapping[str, Any]) -> AskedPlan:
    """The plan without the values from its machine and profile, if later options change these.

    A campaign's plan holds all values: without this another machine would get the old one's values.
    Values that the plan itself changed stay.
    """
    own = {key: plan.options.get(key, ROWS[key].default) for key in ("machine", "profile")}
    same = all(later.get(key, value) == value for key, value in own.items())
    if same or plan == AskedPlan():
        return plan
    workload = find(plan.options.get("workload", DESKTOP))
    as_usual = usual(own)
    memory, screen = as_usual["memory"], bool(plan.options.get("screen"))
    as_usual |= {"memory": workload.memory_of(memory, screen)}
    changed = {
        name: value
        for name, value in plan.options.items()
        if ROWS[name].default not in (PROFILED, MODELLED) or value != as_usual[name]
    }
    if load := _changed(workload, changed.pop("load", ""), own["profile"]):
        changed["load"] = load
    variants = [
        replace(
            variant,
            load=_changed(find(variant.workload), variant.load, own["profile"]),
            memory=0
            if variant.memory == find(variant.workload).memory_of(memory, screen)
            else variant.memory,
        )
        if variant.workload
        else variant
        for variant in plan.variants
    ]
    return replace(plan, options=changed, variants=tuple(variants))


def _changed(workload: Workload, load: str, profile: str) -> str:
    """The parameters of a workload that differ from the profile's."""
    usual_words = workload.completed("", profile).split(",")
    return ",".join(word for word in load.split(",") if word not in usual_words)
