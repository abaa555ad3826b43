# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on: which variants of a campaign have a verdict or a run that the caller rejects."""

from collections.abc import Iterator, Sequence

from analysis.figures.metrics import failed, unfinished
from analysis.reading.words import plural, safe_line
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import limit_words
from contract.values import VERDICTS
from errors import UserError

# A word of --fail-on: which runs it means, and the verb of the line about them.
RUNS = {"failed": (failed, "failed"), "unfinished": (unfinished, "was not done")}


def unwanted(compared: Compared, words: Sequence[str]) -> list[str]:
    """A line for each variant whose primary verdict is in `words`, or that has such a run.

    UserError if verdicts are wanted and there is nothing to compare.
    """
    wanted = [word for word in words if word in VERDICTS]
    if wanted and not any(part.primary for part in compared.each):
        raise UserError(
            f"--fail-on {','.join(wanted)}: nothing is compared, one variant alone has runs",
            hint="--fail-on failed looks at its runs",
        )
    return [line for part in compared.each for line in _of_workload(part, words)]


def without_runs(compared: Compared) -> list[str]:
    """The planned variants that have no run that counts, so that nothing can decide them."""
    return [
        variant.label
        for variant in compared.campaign.plan.variants
        if variant.label not in compared.variants
    ]


def _of_workload(compared: Compared, words: Sequence[str]) -> Iterator[str]:
    for variant, comparison in compared.primary.items():
        if comparison.verdict in words:
            metric = safe_line(comparison.metric.title, 60)
            verdict = f"{comparison.verdict}{limit_words(comparison)}"
            yield f"{compared.labels[variant]} is {verdict} ({metric})"
    if "undecided" in words:
        for label in without_runs(compared):
            yield f"{safe_line(label, 60)} is undecided: it has no run that counts"
    for word, (is_such, verb) in RUNS.items():
        for variant in compared.variants if word in words else ():
            runs = compared.campaign.variants()[variant]
            if bad := [run for run in runs if is_such(run)]:
                which = f"{len(bad)} of {plural(len(runs), 'run')}"
                states = ", ".join(dict.fromkeys(run.state for run in bad))
                yield f"{compared.labels[variant]} {verb} in {which} ({states})"
