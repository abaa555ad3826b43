# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that new runs can be compared with those that a campaign has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.option_table import ROWS
from contract.options import Options
from contract.plan import TABLES
from errors import UserError
from run.run_folders import ELSEWHERE


def refuse_misfits(place: Path, options: Options, plan: Mapping[str, Any]) -> None:
    """UserError if options differ from the campaign's so that runs could not be compared."""
    if options.resume is None and plan.get("variant"):
        _refuse_new_rules(place, options, plan)
    asked = options.parameters | ({} if options.device else options.in_machine)
    stored = {key: value for name in TABLES for key, value in plan.get(name, {}).items()}
    for key, value in asked.items():
        may_differ = key in ROWS and ROWS[key].may_differ
        # The values of a machine file are in the other keys: its path does not matter.
        may_differ |= key == "machine" and ".toml" in f"{value} {stored.get(key)}"
        if key in stored and stored[key] != value and not may_differ:
            raise UserError(
                f"{place} holds runs with {key} {stored[key]}, and this asks for {value}",
                hint=ELSEWHERE,
            )


def _refuse_new_rules(place: Path, options: Options, plan: Mapping[str, Any]) -> None:
    """UserError for a new stopping rule or margin: both are fixed when a campaign begins."""
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
