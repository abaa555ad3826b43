# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's folder: where a run's files go, and the plan that says what was asked for."""

import json
import subprocess
import time
from pathlib import Path

from setup.errors import UserError
from workloads.options import Options

SUITE = Path(__file__).resolve().parent.parent


def folder(options: Options) -> Path:
    """The campaign's folder: --out, or results/<time>-<profile> in the suite."""
    if options.out is not None:
        return Path(options.out)
    return SUITE / "results" / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{options.parameters.profile}"


def new_run(campaign: Path, variant: str, options: Options) -> Path:
    """Make the variant's next run folder and enter the run into plan.toml."""
    try:
        (campaign / variant).mkdir(parents=True, exist_ok=True)
        taken = [int(p.name) for p in (campaign / variant).iterdir() if p.name.isdigit()]
        run = campaign / variant / str(max(taken, default=0) + 1)
        run.mkdir()
        with open(campaign / "plan.toml", "a") as plan:
            plan.write(_entry(variant, run.name, options))
    except OSError as error:
        raise UserError(
            f"cannot write results: {error}", hint="name another folder: --out"
        ) from error
    return run


def suite_commit() -> str:
    """The suite's commit, with `-dirty` if its files differ from it; `unknown` outside git."""
    done = subprocess.run(
        ["git", "-C", str(SUITE), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _entry(variant: str, number: str, options: Options) -> str:
    asked: dict[str, object] = {
        "variant": variant,
        "number": int(number),
        "kernel": "the running one" if options.device else options.kernel,
        "suite": suite_commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "timeout": options.timeout,
        **options.parameters.as_dict(),
    }
    if options.device is None:
        asked["cpus"] = options.cpus
        asked["accel"] = options.accel
        asked["disk_iops"] = options.disk_iops or 0
        asked["disk_bps"] = options.disk_bps or 0
    # A JSON string, number or boolean is the same in TOML.
    lines = [f"{key} = {json.dumps(value)}" for key, value in asked.items()]
    return "[[run]]\n" + "\n".join(lines) + "\n\n"
