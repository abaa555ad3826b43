# SPDX-License-Identifier: GPL-2.0-or-later
"""The texts of summary.txt and details.txt: at most 75 columns, ready to paste into a mail.

For a single run they report what was measured, not whether a kernel is better: one run is a sign,
not a finding. For a campaign summary.txt has the verdicts and a line for each run, and details.txt
describes the runs.
"""

from analysis.figures.metrics import metrics_of
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import safe_line
from analysis.text import causes as causes_text
from analysis.text.campaign_summary import left_out, overview
from analysis.text.layout import paragraph
from analysis.text.run_summary import section
from analysis.verdicts import cause_table
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.cause_table import Causes
from analysis.verdicts.choice import LISTED_RUNS, in_order, median_run, ranked_by
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from contract.run_files import COMPLETED
from errors import UserError


def summary(
    campaign: Campaign, judged: Compared | UserError | None = None, causes: Causes | None = None
) -> str:
    """The text of summary.txt: the run, or for several runs the page of `campaign_summary`.

    `judged`: the verdicts, or the reason why there are none; `causes`: the result of
    cause_table.collect, if it is known already. UserError if no run is complete.
    """
    if causes is None and isinstance(judged, Compared):
        causes = judged.causes.runs
    causes = cause_table.collect(campaign) if causes is None else causes
    if len(campaign.runs) > 1:
        body = list(overview(campaign, judged, causes))
    else:
        body = [line for note in left_out(campaign) for line in [*paragraph(note), ""]]
        body += [*paragraph("One run is a sign, not a finding."), ""]
        run = _first(campaign)
        body += [
            *section(run, 1, causes.get(run.path)),
            *causes_text.worst_card(causes.get(run.path)),
        ]
    return _page(campaign, body)


def details(campaign: Campaign, everything: bool = False, causes: Causes | None = None) -> str:
    """The text of details.txt: for each run what summary.txt reports of a single run.

    With many runs only those that did not complete and each variant's median run, unless
    `everything`.
    """
    _first(campaign)
    causes = cause_table.collect(campaign) if causes is None else causes
    by_variant = campaign.variants()
    parts = by_workload(campaign)
    runs = [run for part in parts for variant in in_order(part) for run in by_variant[variant]]
    body: list[str] = []
    if len(runs) > LISTED_RUNS and not everything:
        medians = [median_run(each) for each in by_variant.values()]
        shown = [run for run in runs if run.state != COMPLETED or run in medians]
        primary = {ranked_by(metrics_of(first_described(one.runs).workload)[0]) for one in parts}
        text = (
            f"{len(shown):,} of {len(runs):,} runs: of each variant the one with the median "
            f"{' or '.join(sorted(primary))}, and those that did not complete. All of them: "
            "python3 -m analysis.summary DIR --all"
        )
        runs, body = shown, [*paragraph(text), ""]
    for run in runs:
        body += [*section(run, len(by_variant[run.variant]), causes.get(run.path)), ""]
    return _page(campaign, body[:-1])


def _first(campaign: Campaign) -> Run:
    """The first run; UserError if no run is complete."""
    if not campaign.runs:
        raise UserError(
            f"{campaign.path}: no run has a status.json: "
            f"{safe_line(', '.join(campaign.incomplete))}",
            hint="a run that was cut short has nothing to report",
        )
    return campaign.runs[0]


def _page(campaign: Campaign, body: list[str]) -> str:
    title = safe_line(f"Desktop freezes: {campaign.path.resolve().name}", 75)
    return "\n".join(line.rstrip() for line in [title, "=" * len(title), "", *body]) + "\n"


def try_compare(
    campaign: Campaign,
    baseline: str | None = None,
    force: bool = False,
    causes: Causes | None = None,
) -> Compared | UserError:
    """The verdicts, or the reason why there are none."""
    try:
        return compare(campaign, baseline=baseline, force=force, causes=causes)
    except UserError as error:
        return error
