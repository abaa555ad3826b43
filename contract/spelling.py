# SPDX-License-Identifier: GPL-2.0-or-later
"""Options as words of a command line and as keys of plan.toml, by their rows (option_table)."""

from collections.abc import Mapping
from typing import Any

from contract.option_rows import MODELLED, PROFILED, Profile, Row
from contract.option_table import ROWS


def flag(name: str) -> str:
    """'--disk-iops'; of a switch that is on by itself '--no-crypt'."""
    negated = "no-" if ROWS[name].default is True else ""
    return f"--{negated}{name.replace('_', '-')}"


def in_table(table: str) -> dict[str, Row]:
    """The options that this table of plan.toml keeps, in their order."""
    return {name: row for name, row in ROWS.items() if row.table == table}


def absent(table: str, gitks: bool = True) -> dict[str, Any]:
    """What a plan stands for that is older than an option; gitks: whether a workload has any."""
    return {
        name: row.before
        for name, row in in_table(table).items()
        if row.before is not None and row.heeded(gitks)
    }


def spelled(name: str, value: Any) -> list[str]:
    """An option as words of a command line; none for what need not be said."""
    row = ROWS[name]
    if not row.was_given(value):
        return []
    if isinstance(value, bool):
        return [] if value is row.default else [flag(name)]
    if isinstance(value, tuple):
        return [word for one in value for word in (flag(name), _text(one))]
    return [flag(name), _text(value)]


def _text(value: Any) -> str:
    return "=".join(value) if isinstance(value, tuple) else str(value)


def defaults(profile: Profile, model: Mapping[str, Any]) -> Mapping[str, Any]:
    """What each option is where nobody said anything; model: what the machine says."""
    found: dict[str, Any] = {}
    for name, row in ROWS.items():
        if row.default is PROFILED:
            said = getattr(profile, name)
            found[name] = model.get(name) if said is None else said
        else:
            found[name] = model.get(name) if row.default is MODELLED else row.default
    return found
