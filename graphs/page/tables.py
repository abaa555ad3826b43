# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables of the page as rows of plain text: verdicts, metrics, machine, variants, ends.

Figures are formatted by the text report's code (analysis.text.verdict_table), so that both are
equal.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analysis.figures import observer_faults
from analysis.figures.by_host import by_host
from analysis.figures.metrics import Metric, frozen_share
from analysis.figures.stalls import stalled_seconds, worst
from analysis.reading import facts
from analysis.reading import kernel_configs as configs_of
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import NOT_AVAILABLE, percent, safe_line, seconds
from analysis.text import hosts as hosts_text
from analysis.text import verdict_table
from analysis.text.campaign_summary import run_elapsed
from analysis.text.machine import references, swap
from analysis.verdicts.compared import Compared
from contract.workload import KEY
from graphs import allocation_failures

MOST_DIFFERENCES = 3000  # between a config and the baseline's
MOST_CONFIG_CHARS = 3_000_000  # of all variants' differences together, in characters
DIGEST = 14  # characters shown of a digest, enough to distinguish two builds


@dataclass(frozen=True)
class Fact:
    """A row of the machine's table; `values`: (value, names of its variants; "" if all have it)."""

    name: str
    values: list[tuple[str, str]]


def _size(per_mib: float) -> Callable[[Any], str]:
    def text(value: Any) -> str:
        size = number(value)
        return NOT_AVAILABLE if size is None else f"{size * per_mib:,.0f} MiB"

    return text


def _limit(unit: str) -> Callable[[Any], str]:
    return lambda value: f"{safe_line(value, 40)} {unit}" if value else "no limit"


def _accelerator(value: Any) -> str:
    words = {"none": "none (a real machine)", "kvm": "KVM", "tcg": "TCG (emulated)"}
    return words.get(safe_line(value), safe_line(value))


FACTS: tuple[tuple[str, tuple[str, ...], Callable[[Any], str]], ...] = (
    ("accelerator", ("accelerator",), _accelerator),
    ("CPUs", ("cpus",), safe_line),
    ("CPU model", ("cpu_model",), safe_line),
    ("memory", ("mem_total_kib",), _size(1 / 1024)),
    ("disk", ("disk", "size_bytes"), _size(2**-20)),
    ("disk's model", ("disk", "model"), safe_line),
    ("disk's cache", ("disk", "cache"), safe_line),
    ("disk's IO operations", ("disk", "iops"), _limit("/s")),
    ("disk's bytes", ("disk", "bps"), _limit("bytes/s")),
    ("encryption", ("crypt",), safe_line),
    ("file system", ("fs",), safe_line),
    ("QEMU", ("machine", "qemu"), safe_line),
    ("machine type", ("machine", "type"), safe_line),
    ("QEMU's CPU", ("machine", "cpu"), safe_line),
    ("host's CPU", ("host", "cpu_model"), safe_line),
    ("suite", ("suite",), safe_line),
)
# Properties of a variant; with --force even a variant's own runs may differ in them.
BUILD: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("kernel", ("kernel", "release")),
    ("version", ("kernel", "version")),
    ("asked for as", ("kernel", "spec")),
    ("config digest", ("kernel", "config_digest")),
    ("image digest", ("kernel", "image_digest")),
    ("extra command line", ("append",)),
    ("command line", ("cmdline",)),
    ("swap device", ("swap", "device")),
)


def verdicts(compared: Compared) -> dict[str, list[str]]:
    """Column headings under the key "", then each variant's cells without its label."""
    rows = list(verdict_table.verdict_rows(compared))
    return dict(zip(["", *compared.variants], (row[1:] for row in rows), strict=True))


def spread(compared: Compared) -> dict[str, list[str]]:
    """The same for the spread between runs and the failures; empty with a single variant."""
    if len(compared.variants) < 2:
        return {}
    rows = list(verdict_table.spread_rows(compared))
    return dict(zip(["", *compared.variants], (row[1:] for row in rows), strict=True))


def metrics(compared: Compared) -> list[tuple[str, list[str]]]:
    """Each metric that any run has: its name, and a cell per variant."""
    return [
        (
            metric.name,
            [_cell(compared, metric, variant) for variant in compared.variants],
        )
        for metric in compared.metrics
        if any(sample.values for sample in compared.samples[metric.key].values())
    ]


def _cell(compared: Compared, metric: Metric, variant: str) -> str:
    return " ".join(part for part in verdict_table.metric_cell(compared, metric, variant) if part)


def machine(compared: Compared) -> list[Fact]:
    """The facts of the machine and the workload, and which variants differ in them."""
    runs = compared.campaign.runs
    parameters: dict[str, None] = {}
    for run in runs:
        own = run.fact("parameters")
        parameters.update(dict.fromkeys(own if isinstance(own, dict) else ()))
    facts = [_fact(compared, name, keys, text) for name, keys, text in FACTS]
    modelled = references(runs)
    if modelled:
        facts.insert(0, Fact("modelled machine", [(line, "") for line in modelled]))
    if any(run.workload.summary for run in runs):
        facts.append(_fact(compared, "workload", (KEY, "summary"), safe_line))
    return facts + [
        _fact(compared, f"workload: {safe_line(name, 40)}", ("parameters", name), safe_line)
        for name in parameters
    ]


def _fact(compared: Compared, name: str, keys: tuple[str, ...], text: Callable[[Any], str]) -> Fact:
    who: dict[str, dict[str, None]] = {}
    for run in compared.campaign.runs:
        value = text(run.fact(*keys))
        who.setdefault(value, {})[compared.labels.get(run.variant, safe_line(run.variant))] = None
    if len(who) == 1:
        return Fact(name, [(value, "") for value in who])
    return Fact(name, [(value, safe_line(", ".join(names), 300)) for value, names in who.items()])


def variants(compared: Compared) -> list[tuple[str, list[list[str]]]]:
    """The properties of variants: a name, and for each variant the values of its runs.

    Properties that no variant has are left out.
    """
    runs = compared.campaign.variants()
    planned = {variant.label: variant for variant in compared.campaign.plan.variants}
    rows = [
        (name, [_values(runs[label], keys) for label in compared.variants]) for name, keys in BUILD
    ]
    rows.append(
        (
            "swap",
            [
                list(dict.fromkeys(swap(run) or NOT_AVAILABLE for run in runs[label]))[:8]
                for label in compared.variants
            ],
        )
    )
    rows.append(
        (
            "knobs",
            [
                _knobs(runs[label], dict(planned[label].knobs) if label in planned else {})
                for label in compared.variants
            ],
        )
    )
    return [row for row in rows if any(values != ["-"] for values in row[1])]


def _values(runs: list[Run], keys: tuple[str, ...]) -> list[str]:
    limit = DIGEST if keys[-1].endswith("digest") else 400
    values = dict.fromkeys(
        safe_line(value, limit) for run in runs if (value := run.fact(*keys)) not in (None, "")
    )
    return list(values)[:8] or ["-"]


def _knobs(runs: list[Run], asked: dict[str, str]) -> list[str]:
    """The knobs that were set, with the values read back; for old results those of the plan."""
    lines: dict[str, None] = {}
    for run in runs:
        knobs = run.fact("knobs")
        for knob in knobs if isinstance(knobs, list) else []:
            if isinstance(knob, dict):
                words = {key: safe_line(knob.get(key), 80) for key in ("path", "asked", "before")}
                back = safe_line(knob.get("read_back"), 80)
                lines[
                    f"{words['path']} = {words['asked']} (was {words['before']}, read back {back})"
                ] = None
    if not lines:
        lines = {
            f"{safe_line(k, 80)} = {safe_line(v, 80)} (asked for)": None for k, v in asked.items()
        }
    return list(lines)[:40] or ["-"]


@dataclass(frozen=True)
class End:
    """How a run ended; `index` is its place among the campaign's runs."""

    index: int
    variant: str
    number: int
    order: str
    state: str
    why: str
    elapsed: str
    stalled: str
    frozen: str
    worst: str
    busy: str
    warnings: list[str]
    host: str


def ends(compared: Compared) -> list[End]:
    """The ends of all runs, in the order in which they ran."""
    failures = {path: [text] for path, text in allocation_failures.logs_of(compared).items()}
    rows = [
        End(
            index,
            compared.labels.get(run.variant, safe_line(run.variant)),
            run.number,
            "-" if run.order is None else str(run.order),
            safe_line(run.state, 20),
            safe_line(run.status.get("why"), 300),
            "-" if (elapsed := run_elapsed(run)) is None else seconds(elapsed),
            seconds(stalled_seconds(run)) if run.subjects else "-",
            "-" if (share := frozen_share(run)) is None else percent(share),
            seconds(max(map(worst, run.subjects))) if run.subjects else "-",
            "-" if (busy := facts.busy_by_others(run)) is None else f"{100 * busy:.0f} %",
            [
                safe_line(warning, 300)
                for warning in [
                    *_of_observers(run),
                    *failures.get(run.path, []),
                    *run.warnings[:20],
                ]
            ],
            safe_line(run.host, 40),
        )
        for index, run in enumerate(compared.campaign.runs)
    ]
    runs = compared.campaign.runs
    return sorted(rows, key=lambda end: (runs[end.index].order or 10**9, end.index))


def hosts(compared: Compared) -> list[tuple[str, str, str, str]]:
    """Each host: its name, its number of runs, their mean, and a warning if the mean is far off."""
    listed = by_host(compared.campaign)
    return [
        (
            name,
            str(len(host.runs)),
            hosts_text.mean(host),
            hosts_text.far(name) if host.is_far else "",
        )
        for name, host in zip(hosts_text.names_of(listed), listed, strict=True)
    ]


def _of_observers(run: Run) -> list[str]:
    """The reasons why the run is not in the verdicts."""
    return [f"observer disturbed, in no verdict: {why}" for why in observer_faults.of_run(run)]


def config_differences(compared: Compared) -> dict[str, Any]:
    """The options in which each other variant's .config differs: name, baseline's value, its own.

    `words`: for each variant a sentence about its differences, or why there are none.
    """
    configs = compared.campaign.configs
    base = configs.get(compared.baseline)
    rows: list[list[list[str]] | None] = []
    words: list[str] = []
    left = MOST_CONFIG_CHARS
    for variant in compared.variants:
        config = configs.get(variant)
        if variant == compared.baseline or base is None or config is None:
            lacks = compared.baseline if base is None else variant
            label = compared.labels[lacks]
            rows.append(None)
            words.append("" if base and config else f"The config of {label} is not in the results.")
            continue
        changes = [
            [safe_line(name, 100), safe_line(mine, 100), safe_line(its, 100)]
            for name, mine, its in configs_of.differences(base, config)
        ]
        kept = changes[: MOST_DIFFERENCES if left > 0 else 0]
        left -= sum(len(cell) for row in kept for cell in row)
        rows.append(kept)
        text = f"{len(changes):,} options differ." if changes else "No option differs."
        words.append(
            text if len(kept) == len(changes) else f"{text} Only {len(kept):,} are in this page."
        )
    return {"rows": rows, "words": words}
