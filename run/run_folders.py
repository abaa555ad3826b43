# SPDX-License-Identifier: GPL-2.0-or-later
"""The run folders of a campaign: which runs they hold, and which are still to do."""

import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from contract.options import Options
from contract.run_files import ABORTED, STATUS
from run import checkout


def folder(options: Options) -> Path:
    """The campaign's folder: --resume, --out, or results/<time>-<profile> in the suite."""
    named = options.resume or options.out
    if named is not None:
        return Path(named)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    return checkout.ROOT / "results" / f"{stamp}-{options.profile}"


def ended(run: Path) -> str | None:
    """How a run ended (a state of docs/FORMAT.md); None if it was cut short."""
    try:
        status = json.loads((run / STATUS).read_bytes())
    except (OSError, ValueError):
        return None
    state = status.get("state") if isinstance(status, dict) else None
    return state if isinstance(state, str) else None


def numbered(variant: Path) -> dict[int, Path]:
    """The run folders of a variant by number."""
    if not variant.is_dir():
        return {}
    return {int(p.name): p for p in variant.iterdir() if p.name.isdigit() and p.is_dir()}


def completed(variant: Path) -> set[int]:
    """Numbers of the runs that have a result; a hang, a panic, an OOM kill is one."""
    return {
        number for number, run in numbered(variant).items() if ended(run) not in (None, ABORTED)
    }


def targets(options: Options, done: dict[str, set[int]]) -> dict[str, int]:
    """Runs that each variant shall have: so many in all with --resume, so many more with --out."""
    more = options.resume is None
    return {
        label: options.runs + (max(numbers, default=0) if more else 0)
        for label, numbers in done.items()
    }


def schedule(
    labels: Iterable[str], runs: Mapping[str, int], done: Mapping[str, set[int]]
) -> list[tuple[str, int]]:
    """(variant, run number) still to do, interleaved: A 1, B 1, C 1, A 2, …"""
    order = list(labels)
    most = max((runs[label] for label in order), default=0)
    return [
        (label, number)
        for number in range(1, most + 1)
        for label in order
        if number <= runs[label] and number not in done[label]
    ]
