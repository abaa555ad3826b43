# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the plan.toml in a campaign's folder, to resume the campaign."""

from pathlib import Path
from typing import Any

from contract.plan import OLDER, TABLES, is_older, parse_plan
from contract.run_files import PLAN_FILE
from contract.untrusted import toml_tables
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
    if not isinstance(variants, list) or not all(_is_labelled(entry) for entry in variants):
        raise UserError(f"{path} is not a campaign's own", hint="start one with --plan")
    if is_older(plan):
        raise UserError(f"{path}: {OLDER}", hint=ELSEWHERE)
    # With an invalid part replaced by a default, adding runs would change the plan.
    _, problems = parse_plan(raw)
    problems += [f"{name}: no table" for name in TABLES if not isinstance(plan.get(name, {}), dict)]
    if problems:
        raise UserError(f"{path} was edited or damaged: {problems[0]}", hint=ELSEWHERE)
    return plan


def _is_labelled(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("label"), str)
