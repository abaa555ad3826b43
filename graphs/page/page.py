# SPDX-License-Identifier: GPL-2.0-or-later
"""index.html: a single file to explore a campaign; needs no network, no server, no trusted label.

Input: a judged campaign. Untrusted text reaches the page only as text: through jinja2's escaping,
or as JSON in a data block that the scripts show by textContent. A content security policy allows
only the two scripts whose digests it has, and no connections.
"""

import base64
import hashlib
import importlib.resources
import re
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis.figures.metrics import added_up
from analysis.reading.words import plural, safe_line
from analysis.text import compare_text, workload_tables
from analysis.text.campaign_summary import tally
from analysis.text.causes import nothing, table_rows
from analysis.text.compare_text import direction, heading
from analysis.text.hosts import LEGEND as HOSTS_LEGEND
from analysis.text.verdict_table import legend, ratio_cell
from analysis.text.vmstat import MEANING, TITLE
from analysis.verdicts.choice import SHOWN, ranked_by
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import limit_words
from contract.workload import STALLED
from errors import UserError
from graphs.page import causes, chart_data, tables, vmstat
from graphs.pictures.style import VERDICTS

PARTS = Path(__file__).parent / "assets"
SCRIPTS = ("base.js", "overview.js", "causes.js", "run.js", "start.js")
MARKS = {
    **{"regressed": "▲", "improved": "▼", "equivalent": "■", "undecided": "○"},
    **{"trades": "◆", "idle": "·"},
}
MANY = 4  # with more variants the answers and the tables get their own scroll box


def write(compared: Compared, path: Path) -> Path:
    """Write the page; UserError if plotly is missing or the file cannot be written."""
    text = _page(compared)
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    return path


@dataclass(frozen=True)
class Part:
    """The page's part about a workload; `name`, `heading`, `verdicts` are for several workloads."""

    body: Markup
    data: Markup
    name: str
    heading: str
    verdicts: list[str]


def _page(compared: Compared) -> str:
    names = ("workloads.js", *SCRIPTS) if compared.others else SCRIPTS
    scripts = [_script(_plotly()), _script("".join(map(_part, names)))]
    environment = Environment(
        loader=FileSystemLoader(PARTS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["safe_line"] = safe_line
    return environment.get_template("index.html.j2").render(
        policy=_policy(scripts),
        style=Markup(_part("page.css")),
        scripts=[Markup(script) for script in scripts],
        title=_title(compared),
        many=False,
        parts=[_workload(environment, part, bool(compared.others)) for part in compared.each],
    )


def _title(compared: Compared) -> str:
    return safe_line(compared.whole.path.resolve().name, 80)


def _workload(environment: Environment, compared: Compared, named: bool) -> Part:
    """The part about a workload; named: whether there are several workloads."""
    campaign = chart_data.campaign_part(compared)
    body = environment.get_template("workload.html.j2").render(
        title=_title(compared) + (f", {compared.workload.name}" if named else ""),
        scale=_scale(compared),
        words=campaign["words"],
        ranked=ranked_by(compared.metric),
        paced=chart_data.has_paced_subjects(compared),
        heading=_heading(compared),
        better=direction(compared).replace(" for all metrics", ""),
        compared=compared,
        plan=compared.campaign.plan,
        plan_text=_lines(compared.campaign.plan.text),
        answers=[_answer(compared, variant) for variant in compared.variants],
        medians=[variant["median"] for variant in campaign["variants"]],
        tally=tally(compared) if len(compared.variants) > SHOWN else "",
        many=len(compared.variants) > MANY,
        verdicts=tables.verdicts(compared),
        legend=legend(compared),
        added_up=added_up(compared.workload),
        spread=tables.spread(compared),
        metrics=tables.metrics(compared),
        figures=workload_tables.by_variant(compared, compared.variants),
        fewer=workload_tables.FEWER,
        metric_choice=campaign["metrics"],
        notes=list(compare_text.notes(compared)),
        machine=tables.machine(compared),
        properties=tables.variants(compared),
        ends=(ends := tables.ends(compared)),
        hosts=tables.hosts(compared),
        hosts_legend=HOSTS_LEGEND,
        busy_known=any(end.busy != "-" for end in ends),
        configs=campaign["configs"],
        causes=list(table_rows(compared.causes)),
        causes_of=compared.causes.which_runs,
        no_stall=nothing(compared.causes, compared.campaign.subject),
        cards=causes.run_cards(compared),
        kernel_title=TITLE,
        kernel_words=MEANING,
        counters=vmstat.counter_tables(compared),
        counters_open=vmstat.OPEN,
        whole=campaign["whole"],
    )
    data = environment.get_template("data.html.j2").render(
        data=Markup(chart_data.as_json(campaign)),
        run_data=[Markup(part) for part in chart_data.run_parts(compared)],
    )
    verdicts = _verdicts(compared)
    return Part(
        Markup(body), Markup(data.rstrip()), compared.workload.name, _heading(compared), verdicts
    )


def _verdicts(compared: Compared) -> list[str]:
    """A line for each variant, or the number of variants for each verdict."""
    if not compared.primary:
        return ["one variant: nothing to compare with"]
    if len(compared.variants) > SHOWN:
        return [tally(compared)]
    return [
        f"{compared.labels[variant]}: {comparison.verdict}, {ratio_cell(comparison)} of "
        f"{compared.labels[compared.baseline]}{limit_words(comparison)}"
        for variant, comparison in compared.primary.items()
    ]


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


def _plotly() -> str:
    """plotly's JavaScript, read from the Python package without importing it."""
    try:
        folder = importlib.resources.files("plotly")
        return (folder / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    except (ModuleNotFoundError, OSError) as error:
        raise UserError(
            "plotly is missing, or holds no plotly.min.js",
            hint="pip install -r requirements.txt",
        ) from error


def _script(text: str) -> str:
    """The text, escaped for a script element; `<\\/` and `<\\!` mean the same in a string."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(r"<(?=/script|!--)", r"<\\", text, flags=re.IGNORECASE)


def _policy(scripts: list[str]) -> str:
    """A policy by which the page may only run these scripts and make pictures of its charts."""
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _scale(compared: Compared) -> str:
    """The size of the campaign as text: '3 variants, 15 runs'."""
    variants, runs = len(compared.variants), len(compared.campaign.runs)
    text = f"{plural(variants, 'variant')}, {plural(runs, 'run')}"
    return text + (f", compared with {compared.labels[compared.baseline]}" if variants > 1 else "")


def _heading(compared: Compared) -> str:
    """A heading such as 'Stalled seconds per run, four gitk's added up: lower is better'."""
    if compared.metric.key == STALLED:
        return f"{heading(compared.metric)}: lower is better"
    return heading(compared.metric)


def _answer(compared: Compared, variant: str) -> dict[str, str]:
    """The variant's verdict with its mark and colour, and its answer."""
    answer, comparison = compared.answers[variant], compared.primary.get(variant)
    verdict = comparison.verdict if comparison else "baseline"
    return {
        "verdict": verdict,
        "mark": MARKS.get(verdict, "●"),
        "colour": VERDICTS.get(verdict, ("#767676",))[0],
        "head": answer.head,
        "rest": answer.figures,
    }


def _lines(text: str) -> list[str]:
    """An untrusted text as a list of plain lines."""
    return [safe_line(line, 500) if line.strip() else "" for line in text.splitlines()[:2000]]
