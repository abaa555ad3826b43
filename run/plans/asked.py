# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan.toml that is asked for: read as a command line, refused if it is bad.

Each of its keys is an option of that name. The plan.toml in a campaign's own folder is such a file
too, with what the suite noted in it (docs/reference/plan-toml.md).
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

# How each key of a [[variant]] is read, and each line of a table in it.
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
    """A plan.toml: its options as a command line, its variants, and if resumed the looks due.

    edited: how its machine's file is no longer the one that its campaign began with. options: what
    the command line gives, once it is read.
    """

    argv: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    looks: tuple[int, ...] = ()
    edited: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def read(path: Path, *, resumed: bool = False) -> AskedPlan:
    """The plan in this file; ValueError, in one line, names the key that will not do.

    `resumed`: of the campaign's own folder.
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
            # Of a campaign's own folder: it goes on with these looks, another begins anew.
            looks = _looks(value)
            value = None if resumed else looks[-1]
        if value is not None:
            argv.append(_option(key, _text(key, value)))
    asked = plan.get("variant", [])
    if not isinstance(asked, list):
        raise ValueError("write [[variant]], with two brackets")
    variants = tuple(_variant(one) for one in asked)
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
    """What one table of options says, as words of a command line."""
    if not isinstance(table, dict):
        raise ValueError(f"[{name}] is not a table")
    _only_known(table, name)
    argv: list[str] = []
    for key, row in in_table(name).items():
        value = table.get(key)
        if row.default is True:
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
    found: dict[str, Any] = {"kernel": "debian:stable"}
    try:
        for key, read in OF_VARIANT.items():
            if key in table:
                found[key] = read(_text(f"variant.{key}", table[key]))
        for key, read in TABLES_OF_VARIANT.items():
            inner = table.get(key, {})
            if not isinstance(inner, dict):
                raise ValueError(f"[variant.{key}] is not a table")
            found[key] = tuple(read(f"{name}={_text(name, one)}") for name, one in inner.items())
        variant = Variant(**found)
        # One that a campaign kept is what it was then, also if the remedy is another one now.
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
    # In one word: a value that begins with a dash is no option.
    return "=".join(spelled(key, value))


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{key}: a text or a number, not {value!r}")
    text = str(value)
    if not re.fullmatch(r"[^\0-\x1f\x7f]*", text):
        raise ValueError(f"{key}: {text!r} will not do")
    return text


def merged(stored: Iterable[Variant], asked: Iterable[Variant]) -> tuple[Variant, ...]:
    """The stored variants, and those of the asked that are not among them."""
    result = list(stored)
    left = list(result)
    for variant in asked:
        same = next((one for one in left if one.same_machine(variant)), None)
        if same is None:
            result.append(variant)
        else:
            left.remove(same)
    return tuple(result)


def yielding(plan: AskedPlan, later: Mapping[str, Any]) -> AskedPlan:
    """The plan without the values of its own machine and profile, if another is given later.

    A campaign's plan holds them all, and would make of another machine the old one by another name.
    What the plan changed stays.
    """
    own = {key: plan.options.get(key, ROWS[key].default) for key in ("machine", "profile")}
    same = all(later.get(key, value) == value for key, value in own.items())
    if same or plan == AskedPlan():
        return plan
    workload = find(plan.options.get("workload", DESKTOP))
    as_usual = usual(own)
    memory = as_usual["memory"]
    as_usual |= {"memory": workload.memory_of(memory)}
    changed = {
        name: value
        for name, value in plan.options.items()
        if ROWS[name].default not in (PROFILED, MODELLED) or value != as_usual[name]
    }
    if load := _changed(workload, changed.pop("load", ""), own["profile"]):
        changed["load"] = load
    variants = [
        replace(
            one,
            load=_changed(find(one.workload), one.load, own["profile"]),
            memory=0 if one.memory == find(one.workload).memory_of(memory) else one.memory,
        )
        if one.workload
        else one
        for one in plan.variants
    ]
    return replace(plan, options=changed, variants=tuple(variants))


def _changed(workload: Workload, load: str, profile: str) -> str:
    """What of a workload's parameters is not as the profile has it."""
    usual_words = workload.completed("", profile).split(",")
    return ",".join(word for word in load.split(",") if word not in usual_words)
