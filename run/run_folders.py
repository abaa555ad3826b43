# SPDX-License-Identifier: GPL-2.0-or-later
"""The run folders of a campaign: which runs they hold, and which are still to do."""

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
    """The campaign's folder: --resume, --out, or results/<time>-<profile> in the suite."""
    named = options.resume or options.out
    if named is not None:
        return Path(named)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    return checkout.ROOT / "results" / f"{stamp}-{options.profile}"


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Within: what cannot be written is a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write results: {error}", hint="name a folder that can be: --out"
        ) from error


def ended(run: Path) -> str | None:
    """How a run ended (a state of docs/reference/results-format.md); None if it was cut short."""
    return _of_status(run, "state")


def why_of(run: Path) -> str:
    """Why a run ended so, in the words of its status.json; empty if it does not say."""
    return _of_status(run, "why") or ""


def _of_status(run: Path, key: str) -> str | None:
    try:
        found = (json_object((run / STATUS).read_bytes()) or {}).get(key)
    except OSError:
        return None
    return found if isinstance(found, str) else None


def refuse_another_host(
    place: Path, labels: Iterable[str], facts: Mapping[str, Any], workload: str = DESKTOP
) -> None:
    """UserError if runs made here and now could not be compared with those of these variants.

    facts: as meta.json has them (vm.guest_facts), of a guest for that workload. Better said now
    than after hours of runs.
    """
    for label in labels:
        for number in sorted(completed(place / label))[:1]:
            run = place / label / str(number)
            try:
                before = json_object((run / META).read_bytes())
            except OSError:
                continue  # the report says what is damaged
            same = _at(before, ("parameters", "workload")) == workload
            for keys in (*OF_THE_HOST, *([IMAGE] if same else [])):
                was, now = (_at(one, keys) for one in (before, facts))
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
    """The run folders of a variant by number."""
    try:
        with os.scandir(variant) as entries:
            names = [one.name for one in entries if one.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {int(name): variant / name for name in names if re.fullmatch(RUN_NUMBER, name)}


def completed(variant: Path, known: Container[int] = ()) -> set[int]:
    """Numbers of the runs that have a result; a hang, a panic, an OOM kill is one.

    known: those of which that is known, so that their status.json is not read again.
    """
    return {
        number
        for number, run in numbered(variant).items()
        if number in known or ended(run) not in (None, ABORTED)
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
