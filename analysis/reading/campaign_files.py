# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what lies beside the variants in a campaign's folder: the plan and the machine's copy."""

from pathlib import Path
from typing import Any

from analysis.reading.files import names_in, read_file
from analysis.reading.places import LARGEST_FACTS
from contract.plan import HOST_OF_RUNS, HOSTS_FILE, Plan, parse_plan
from contract.run_files import FORMAT_VERSION, PLAN_FILE
from contract.untrusted import json_object
from errors import UserError


def load_plan(folder: Path, problems: list[str]) -> Plan:
    """The campaign's plan; raises UserError if its format version is unknown."""
    path = folder / PLAN_FILE
    plan_problems: list[str] = []
    raw = read_file(path, problems, LARGEST_FACTS)
    plan, plan_problems = parse_plan(raw) if raw is not None else (Plan(), [])
    check_format(path, {"format": plan.format})
    problems += [f"plan.toml: {problem}" for problem in plan_problems]
    return plan


def load_machine(folder: Path, plan: Plan, problems: list[str]) -> bytes:
    """The copy of the machine's file that the plan names; empty if there is none."""
    name = plan.machine_copy
    there = bool(name) and name in names_in(folder).files
    return read_file(folder / name, problems, LARGEST_FACTS) or b"" if there else b""


def load_hosts(folder: Path, problems: list[str]) -> dict[str, str]:
    """Run (VARIANT/NUMBER) -> the host that did it; empty if one machine did all runs."""
    if HOSTS_FILE not in names_in(folder).files:
        return {}
    content = json_object(read_file(folder / HOSTS_FILE, problems, LARGEST_FACTS) or b"") or {}
    runs = content.get(HOST_OF_RUNS)
    if not isinstance(runs, dict):
        problems.append(f"{HOSTS_FILE}: damaged, which host did which run is not known")
        return {}
    return {run: host for run, host in runs.items() if isinstance(host, str) and host}


def check_format(path: Path, value: dict[str, Any]) -> None:
    """Raise UserError if the file has another format version than this suite reads."""
    version = value.get("format")
    if isinstance(version, bool) or version != FORMAT_VERSION:
        raise UserError(
            f"{path}: format version {str(version)[:20]!r} is unknown",
            hint=f"this suite reads version {FORMAT_VERSION}",
        )
