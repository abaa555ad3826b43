# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the plan.toml in a campaign's folder, completely or not at all."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contract import checkout
from contract.levels import ALPHA, MARGIN
from contract.option_rows import IN_MACHINE, PARAMETERS
from contract.options import Options
from contract.run_files import FORMAT_VERSION, PLAN_FILE
from contract.run_record import write_whole


def plan_of(
    options: Options,
    stored: Mapping[str, Any],
    command: str,
    *,
    runs: int,
    looks: Sequence[int],
    extended: list[int],
    variants: list[dict[str, Any]],
    begun: list[dict[str, Any]],
) -> dict[str, Any]:
    """The plan's tables; stored: the previous plan, whose command (the first one's) stays."""
    parameters = {**options.parameters, **options.sources[PARAMETERS]}
    # Parameters of workloads whose variants this command does not name.
    parameters |= {k: v for k, v in stored.get(PARAMETERS, {}).items() if k not in parameters}
    in_machine = {
        **stored.get(IN_MACHINE, {}),
        **options.in_machine,
        **options.sources[IN_MACHINE],
    }
    plan: dict[str, Any] = {
        "format": FORMAT_VERSION,
        "runs": max(stored.get("runs", 0), runs),
        "margin": options.margin if options.margin is not None else stored.get("margin", MARGIN),
        "alpha": ALPHA,
        "baseline": options.baseline or stored.get("baseline") or variants[0]["label"],
        "command": stored.get("command", command),
        "suite": checkout.commit(),
        PARAMETERS: parameters,
        IN_MACHINE: {} if options.device else in_machine,
    }
    if extended:
        plan["extended"] = extended
    if looks:
        plan["stop_when_sure"] = {"looks": list(looks)}
    return {**plan, "variant": variants, "run": begun}


def write(place: Path, plan: Mapping[str, Any]) -> None:
    """Write the plan into the campaign's folder, by a rename."""
    import tomli_w  # --dry-run reads plans too, and has no .venv yet

    write_whole(place / PLAN_FILE, tomli_w.dumps(plan).encode())
