# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan.toml that is asked for: read as a command line, refused if it is bad.

Each of its keys is an option of that name. The plan.toml in a campaign's own folder is such a file
too, with what the suite noted in it (docs/reference/plan-toml.md).
"""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from contract import machine_model, remedy, swap, values
from contract.command_line import Parser
from contract.levels import ALPHA
from contract.option_rows import IN_MACHINE, MODELLED, PLAN, PROFILED, PROFILES
from contract.option_table import ROWS
from contract.plan import ASKED, KEPT, TABLES, are_growing, machine_file
from contract.spelling import absent, defaults, flag, in_table, spelled
from contract.untrusted import toml_tables
from contract.variant import Variant
from contract.workload import DESKTOP
from run.plans.machine_file import of_plan
from workloads.registry import find, with_gitks

T = TypeVar("T")


@dataclass(frozen=True)
class AskedPlan:
    """A plan.toml: its options as a command line, its variants, and if resumed the looks due.

    edited: how its machine's file is no longer the one that its campaign began with.
    """

    argv: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    looks: tuple[int, ...] = ()
    edited: str = ""


def read(path: Path, *, resumed: bool = False) -> AskedPlan:
    """The plan in this file; ValueError, in one line, names the key that will not do.

    `resumed`: of the campaign's own folder. Such a plan is what it was when the suite wrote it,
    also in options that the suite did not have then.
    """
    try:
        tables = toml_tables(path.read_text(encoding="utf-8"))
        edited = ""
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
    kept = resumed or "format" in plan
    for table in TABLES:
        argv += _options(table, plan.get(table, {}), kept, {one.workload for one in variants})
    return AskedPlan(tuple(argv), variants, looks if resumed else ())


def _looks(value: dict[str, Any]) -> tuple[int, ...]:
    _only_known(value, "stop_when_sure")
    looks = value.get("looks")
    if not isinstance(looks, list) or not are_growing(looks):
        raise ValueError("stop_when_sure: looks must be growing numbers of runs")
    return tuple(looks)


def _options(name: str, table: Any, kept: bool, own: set[str]) -> list[str]:
    """What one table of options says, as words of a command line; own: the variants' workloads.

    kept: by the suite, so that an absent key is of before its option.
    """
    if not isinstance(table, dict):
        raise ValueError(f"[{name}] is not a table")
    _only_known(table, name)
    argv: list[str] = []
    campaigns = _text(f"{name}.workload", table.get("workload", DESKTOP))
    gitks = any(one in with_gitks() for one in ({one or campaigns for one in own} or {campaigns}))
    if kept and table:
        table = absent(name, gitks) | table
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
    label = table.get("label")
    knobs = table.get("knobs", {})
    if not isinstance(knobs, dict):
        raise ValueError("[variant.knobs] is not a table")
    try:
        variant = Variant(
            kernel=_text("variant.kernel", table.get("kernel", "debian:stable")),
            label="" if label is None else values.label(_text("variant.label", label)),
            append=values.append(_text("variant.append", table.get("append", ""))),
            swap=swap.read(_text("variant.swap", table.get("swap", swap.DISK))),
            workload=_own(table, "workload", values.workload, ""),
            load=_own(table, "load", values.load, ""),
            memory=_own(table, "memory", values.memory, 0),
            knobs=tuple(
                values.knob(f"{path}={_text(path, value)}") for path, value in knobs.items()
            ),
            daemon=_own(table, "daemon", values.daemon, ""),
            slice=_slice(table),
        )
        name = _own(table, "remedy", values.remedy, "")
        if not name:
            return variant
        # One that a campaign kept is what it was then, also if the remedy is another one now.
        kept = "version" in table
        return replace(variant, remedy=name) if kept else remedy.find(name).applied(variant)
    except values.Refused as error:
        raise ValueError(str(error)) from None


def _slice(table: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    found = table.get("slice", {})
    if not isinstance(found, dict):
        raise ValueError("[variant.slice] is not a table")
    return tuple(values.slice(f"{file}={_text(file, value)}") for file, value in found.items())


def _own(table: Mapping[str, Any], key: str, read: Callable[[str], T], unsaid: T) -> T:
    """What the variant says itself of an option of the campaign's."""
    return read(_text(f"variant.{key}", table[key])) if key in table else unsaid


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


def yielding(parser: Parser, plan: AskedPlan, later: argparse.Namespace) -> AskedPlan:
    """The plan without the values of its own machine and profile, if later words name another.

    A campaign's plan holds them all, and would make of another machine the old one by another name.
    What the plan changed stays.
    """
    said = parser.parse_args(list(plan.argv))
    own = {key: getattr(said, key) or ROWS[key].default for key in ("machine", "profile")}
    same = all(getattr(later, key) in (None, value) for key, value in own.items())
    if same or plan == AskedPlan():
        return plan
    profile = own["profile"]
    by_itself = dict(defaults(PROFILES[profile], machine_model.read(own["machine"])))
    most = by_itself["memory"]
    by_itself["memory"] = find(said.workload or DESKTOP).memory_of(most)
    yields = {
        flag(name)
        for name, row in ROWS.items()
        if row.default in (PROFILED, MODELLED) and getattr(said, name) == by_itself[name]
    }
    argv = [word for word in plan.argv if word.partition("=")[0] not in {*yields, flag("load")}]
    argv += spelled("load", _changed(said.workload or DESKTOP, said.load or "", profile))

    def lighter(one: Variant) -> Variant:
        if not one.workload:
            return one
        memory = 0 if one.memory == find(one.workload).memory_of(most) else one.memory
        return replace(one, load=_changed(one.workload, one.load, profile), memory=memory)

    return replace(plan, argv=tuple(argv), variants=tuple(map(lighter, plan.variants)))


def _changed(workload: str, load: str, profile: str) -> str:
    """What of a workload's parameters is not as the profile has it."""
    usual = find(workload).completed("", profile).split(",")
    return ",".join(word for word in load.split(",") if word not in usual)
