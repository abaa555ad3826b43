# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether more runs, as they are asked for, would fit those that a campaign has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.option_table import ROWS
from contract.options import Options
from contract.plan import TABLES
from contract.spelling import absent
from errors import UserError
from run.plans.stored import by_workload
from run.run_folders import ELSEWHERE


def refuse_misfits(place: Path, options: Options, plan: Mapping[str, Any]) -> None:
    """UserError for what differs: it could not be compared. Better said now than after hours."""
    entries: list[dict[str, Any]] = plan.get("variant", [])
    if options.resume is None and entries:
        _refuse_new_rules(place, options, plan)
    # An option that says nothing of what it is by itself asks for that.
    silent = {name: row.before for name, row in ROWS.items() if row.silent}
    asked = silent | options.parameters | ({} if options.device else options.in_machine)
    gitks = any(one in options.with_gitks for one in by_workload(plan, entries))
    stored: dict[str, Any] = {}
    for name in TABLES:
        if table := plan.get(name):
            stored |= absent(name, gitks) | table
    for key, value in asked.items():
        may_differ = key in ROWS and ROWS[key].may_differ
        # What a machine's file says is in the other keys, wherever it lies.
        may_differ |= key == "machine" and ".toml" in f"{value} {stored.get(key)}"
        if key in stored and stored[key] != value and not may_differ:
            raise UserError(
                f"{place} holds runs with {key} {stored[key]}, and this asks for {value}",
                hint=ELSEWHERE,
            )


def _refuse_new_rules(place: Path, options: Options, plan: Mapping[str, Any]) -> None:
    """When to stop, and what counts as equal, are of a campaign from its beginning."""
    if options.looks or "stop_when_sure" in plan:
        raise UserError(
            f"{place} holds a campaign, and --out cannot stop when sure",
            hint=f"--resume {place}",
        )
    if options.margin not in (None, plan.get("margin")):
        raise UserError(
            f"{place}: its margin is {plan.get('margin')}",
            hint="a margin is chosen before the runs",
        )
