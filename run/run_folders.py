# SPDX-License-Identifier: GPL-2.0-or-later
"""The run folders of a campaign: the runs that exist, and those still to do."""

import contextlib
import os
import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from contract import checkout
from contract.key_facts import CLOCK, HOSTS_CPU, IMAGE, OF_THE_HOST
from contract.options import Options
from contract.run_files import ABORTED, META, RUN_NUMBER, STATUS
from contract.untrusted import json_object
from contract.workload import DESKTOP
from errors import UserError
from vm.qemu import GUEST

ELSEWHERE = "begin a campaign of its own: --out DIR, without --resume"


def folder(options: Options) -> Path:
    """The campaign's folder: --resume, --out, or results/<date>-<profile> in the suite."""
    named = options.resume or options.out
    if named is not None:
        return Path(named)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    return checkout.ROOT / "results" / f"{stamp}-{options.profile}"


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Within: an OSError becomes a UserError about writing results."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write results: {error}", hint="give a writable folder: --out"
        ) from error


def ended(run: Path) -> str | None:
    """A run's state (docs/reference/results-format.md); None if it has no status.json."""
    return _of_status(run, "state")


def why_of(run: Path) -> str:
    """Why a run ended, from its status.json; empty if unknown."""
    return _of_status(run, "why") or ""


def _of_status(run: Path, key: str) -> str | None:
    try:
        value = (json_object((run / STATUS).read_bytes()) or {}).get(key)
    except OSError:
        return None
    return value if isinstance(value, str) else None


def refuse_another_host(
    place: Path, labels: Iterable[str], facts: Mapping[str, Any], workload: str = DESKTOP
) -> None:
    """UserError if new runs on this host could not be compared with the runs of these variants.

    facts: meta.json's facts (vm.guest_facts) of a guest for that workload. Checked before the runs,
    as they take hours.
    """
    for label in labels:
        for number in sorted(completed(place / label))[:1]:
            run = place / label / str(number)
            try:
                before = json_object((run / META).read_bytes())
            except OSError:
                continue  # the report names damaged runs
            same = _at(before, ("parameters", "workload")) == workload
            for keys in (*OF_THE_HOST, *([IMAGE] if same else [])):
                was, now = (_at(source, keys) for source in (before, facts))
                if keys == HOSTS_CPU and _at(facts, CLOCK) == GUEST:
                    continue
                if None not in (was, now) and was != now:
                    raise UserError(
                        f"{run} was measured with {'.'.join(keys)} {was}, and here it is {now}",
                        hint=ELSEWHERE,
                    )


def _at(facts: Any, keys: Iterable[str]) -> Any:
    for key in keys:
        facts = facts.get(key) if isinstance(facts, dict) else None
    return facts


def numbered(variant: Path) -> dict[int, Path]:
    """The run folders of a variant, by number."""
    try:
        with os.scandir(variant) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {int(name): variant / name for name in names if re.fullmatch(RUN_NUMBER, name)}


def completed(variant: Path, known: Container[int] = ()) -> set[int]:
    """Numbers of the runs with a result; a hang, a panic or an OOM kill is a result.

    known: numbers of runs that are known to have one: their status.json is not read again.
    """
    return {
        number
        for number, run in numbered(variant).items()
        if number in known or ended(run) not in (None, ABORTED)
    }


def targets(options: Options, done: dict[str, set[int]]) -> dict[str, int]:
    """The total runs per variant: --runs with --resume; with --out old runs are added to --runs."""
    more = options.resume is None
    return {
        label: options.runs + (max(numbers, default=0) if more else 0)
        for label, numbers in done.items()
    }


def schedule(
    labels: Iterable[str], runs: Mapping[str, int], done: Mapping[str, set[int]]
) -> list[tuple[str, int]]:
    """(variant, number) of the runs still to do, interleaved: A 1, B 1, C 1, A 2, …"""
    order = list(labels)
    most = max((runs[label] for label in order), default=0)
    return [
        (label, number)
        for number in range(1, most + 1)
        for label in order
        if number <= runs[label] and number not in done[label]
    ]
