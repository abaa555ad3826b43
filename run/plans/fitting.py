# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether more runs, as they are asked for, would fit those that a campaign has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.option_table import ROWS
from contract.options import Options
from contract.plan import TABLES
from errors import UserError
from run.run_folders import ELSEWHERE


def refuse_misfits(place: Path, options: Options, plan: Mapping[str, Any]) -> None:
    """UserError for what differs: it could not be compared. Better said now than after hours."""
    if options.resume is None and plan.get("variant"):
        _refuse_new_rules(place, options, plan)
    asked = options.parameters | ({} if options.device else options.in_machine)
    stored = {key: value for name in TABLES for key, value in plan.get(name, {}).items()}
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
