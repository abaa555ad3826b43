# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan.toml that a campaign keeps in its folder, as the one that goes on with it reads it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract import swap, values
from contract.option_rows import PARAMETERS
from contract.plan import TABLES, parse_plan
from contract.run_files import PLAN_FILE
from contract.untrusted import toml_tables
from contract.values import Refused
from contract.variant import Variant
from contract.workload import DESKTOP
from errors import UserError
from run.run_folders import ELSEWHERE


def read_plan(place: Path) -> dict[str, Any]:
    """The folder's plan.toml; empty if there is none. UserError if it cannot be read."""
    path = place / PLAN_FILE
    try:
        raw = path.read_bytes()
        plan = toml_tables(raw.decode("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {' '.join(str(error).split())}") from None
    variants = plan.get("variant", [])
    if not isinstance(variants, list) or not all(_is_labelled(one) for one in variants):
        raise UserError(f"{path} is not a campaign's own", hint="start one with --plan")
    # Runs that are added by a plan of which a part is not believed would change what it says.
    _, problems = parse_plan(raw)
    problems += [f"{name}: no table" for name in TABLES if not isinstance(plan.get(name, {}), dict)]
    if problems:
        raise UserError(f"{path} is not as a campaign left it: {problems[0]}", hint=ELSEWHERE)
    try:
        variants_of(variants)
    except Refused as error:
        raise UserError(f"{path}: {error}") from None
    return plan


def _is_labelled(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("label"), str)


def variants_of(entries: list[dict[str, Any]]) -> list[Variant]:
    """The variants of its [[variant]] tables."""
    return [
        Variant(
            str(entry.get("kernel", "")),
            entry["label"],
            entry.get("append", ""),
            tuple(entry.get("knobs", {}).items()),
            swap.read(str(entry.get("swap", swap.DISK))),
            str(entry.get("workload", "")),
            str(entry.get("load", "")),
            values.memory(str(entry["memory"])) if "memory" in entry else 0,
            str(entry.get("remedy", "")),
            str(entry.get("daemon", "")),
            tuple(entry.get("slice", {}).items()),
        )
        for entry in entries
    ]


def by_workload(plan: Mapping[str, Any], entries: list[dict[str, Any]]) -> dict[str, list[str]]:
    """The labels of these [[variant]] tables by workload, in their order."""
    campaigns = plan.get(PARAMETERS, {}).get("workload", DESKTOP)
    found: dict[str, list[str]] = {}
    for entry in entries:
        found.setdefault(entry.get("workload", campaigns), []).append(entry["label"])
    return found
