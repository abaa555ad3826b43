# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the options of a campaign that differ from those of its profile and machine."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from contract import machine_model
from contract.option_rows import PROFILES
from contract.option_table import NOTED, ROWS
from contract.options import Options, defaults

NO_OPTION: dict[str, Any] = {
    field.name: field.default for field in fields(Options) if field.name in NOTED
}


def model_of(machine: object) -> Mapping[str, Any]:
    """The settings of a machine by its name; empty if it is the user's own."""
    if not isinstance(machine, str) or machine not in machine_model.named():
        return {}
    return machine_model.read(machine)


def as_set(profile: object, machine: object) -> Mapping[str, Any]:
    """The default value of each option; empty if there is no such profile."""
    if not isinstance(profile, str) or profile not in PROFILES:
        return {}
    return {**defaults(PROFILES[profile], model_of(machine)), **NO_OPTION}


def changed(table: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a table of plan.toml, or of a run's parameters, that differ from `usual`."""
    rows = ROWS | NOTED
    return {
        key: value
        for key, value in table.items()
        if not (key in rows and (not rows[key].was_given(value) or _same(value, usual.get(key))))
    }


def _same(value: object, usual: object) -> bool:
    """Whether they are equal; a number never equals a bool."""
    return value == usual and isinstance(value, bool) == isinstance(usual, bool)
