# SPDX-License-Identifier: GPL-2.0-or-later
"""allocation-failures.log of each run: every page allocation that failed, ready to be attached.

Written beside the run's other files, since it belongs to them: a bundle takes it along.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from analysis.figures import observer_faults
from analysis.figures.failed_allocations import attachment, look
from analysis.figures.metrics import failed
from analysis.reading.load import Campaign
from analysis.reading.words import plain, plural
from analysis.text.layout import paragraph
from analysis.verdicts.compared import Compared
from contract.run_files import ALLOCFAIL, FAILURES_LOG

FIGURES = ("allocation", "unlogged", "echo-lost")
LISTED = 6  # runs in report.txt


def write(campaign: Campaign, notes: list[str]) -> None:
    """Write it for each run of which anything is known; what could not be written is in notes."""
    for run in campaign.runs:
        found = look(run)
        if found.log is None and found.happened is None:
            continue
        try:
            _write(run.path / FAILURES_LOG, attachment(run, found))
        except OSError as error:
            notes.append(f"{plain(run.variant, 60)}/{run.number}/{FAILURES_LOG}: {error.strerror}")


def told(compared: Compared) -> dict[Path, str]:
    """Run's folder -> what failed in it, where anything did that nobody can make up for.

    The metrics say which runs those are, so that the logs of all others are not read once more.
    """
    known: set[tuple[str, int]] = set()
    for key in FIGURES:
        for variant, sample in compared.samples[key].items():
            pairs = zip(sample.numbers, sample.values, strict=True)
            known |= {(variant, number) for number, value in pairs if value}
    counted = {
        (variant, number)
        for variant, sample in compared.samples["unlogged"].items()
        for number in sample.numbers
    }
    found = {}
    for run in compared.campaign.runs:
        place = (run.variant, run.number)
        # Failures whose stacks have no names are in no figure.
        nameless = place not in counted and (run.path / ALLOCFAIL).is_file()
        if place in known or nameless or failed(run) or observer_faults.of_run(run):
            one = look(run)
            if one.logged or one.unlogged or one.nameless or one.echoes_lost:
                found[run.path] = f"page allocation failures: {one.words()}"
    return found


def section(compared: Compared) -> Iterator[str]:
    """The part of report.txt."""
    found = told(compared)
    runs = [run for run in compared.campaign.runs if run.path in found]
    for run in runs[:LISTED]:
        yield from paragraph(f"{plain(run.variant, 60)}/{run.number}: {found[run.path]}", "  ")
    if runs[LISTED:]:
        yield f"  and {plural(len(runs) - LISTED, 'more run')}"
    if runs:
        yield from paragraph(f"In full, with stacks: <variant>/<run>/{FAILURES_LOG}.")


def _write(path: Path, pieces: Iterator[str]) -> None:
    """Through a name of its own: a link of the file's name is replaced, never followed."""
    aside = path.with_name(f".{FAILURES_LOG}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        with open(aside, "x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
