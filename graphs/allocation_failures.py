# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes allocation-failures.log for each run: all failed page allocations, ready to attach.

It is written beside the run's other files, so that a bundle contains it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from analysis.figures import observer_faults
from analysis.figures.failed_allocations import attachment, look
from analysis.figures.metrics import failed
from analysis.reading.load import Campaign
from analysis.reading.words import plural, safe_line
from analysis.text.layout import paragraph
from analysis.verdicts.compared import Compared
from contract.run_files import ALLOCFAIL, FAILURES_LOG

FIGURES = ("allocation", "unlogged", "echo-lost")
LISTED = 6  # runs in report.txt


def write(campaign: Campaign, notes: list[str]) -> None:
    """Write the log of each run with known failures; errors are appended to notes."""
    for run in campaign.runs:
        failures = look(run)
        if failures.log is None and failures.happened is None:
            continue
        try:
            _write(run.path / FAILURES_LOG, attachment(run, failures))
        except OSError as error:
            notes.append(
                f"{safe_line(run.variant, 60)}/{run.number}/{FAILURES_LOG}: {error.strerror}"
            )


def logs_of(compared: Compared) -> dict[Path, str]:
    """Run's folder -> text about its failed allocations, for runs with harmful failures.

    The metrics show which runs have any, so that the logs of other runs are not read again.
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
    texts = {}
    for run in compared.campaign.runs:
        place = (run.variant, run.number)
        # Failures without named stacks are not counted in the metrics.
        nameless = place not in counted and (run.path / ALLOCFAIL).is_file()
        if place in known or nameless or failed(run) or observer_faults.of_run(run):
            failures = look(run)
            if failures.logged or failures.unlogged or failures.nameless or failures.echoes_lost:
                texts[run.path] = f"page allocation failures: {failures.words()}"
    return texts


def section(compared: Compared) -> Iterator[str]:
    """The lines about failed allocations in report.txt."""
    texts = logs_of(compared)
    runs = [run for run in compared.campaign.runs if run.path in texts]
    for run in runs[:LISTED]:
        yield from paragraph(f"{safe_line(run.variant, 60)}/{run.number}: {texts[run.path]}", "  ")
    if runs[LISTED:]:
        yield f"  and {plural(len(runs) - LISTED, 'more run')}"
    if runs:
        yield from paragraph(f"In full, with stacks: <variant>/<run>/{FAILURES_LOG}.")


def _write(path: Path, pieces: Iterator[str]) -> None:
    """Write through a temporary name, so that a link at path is replaced, not followed."""
    aside = path.with_name(f".{FAILURES_LOG}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    try:
        with open(aside, "x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
