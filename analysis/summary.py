# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign as plain text of at most 75 columns, ready to paste into a mail.

usage: python3 -m analysis.summary DIR

It says what was measured, not whether a kernel is better: one run is a sign, not a finding.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis import counters
from analysis.kernlog import count_failures
from analysis.load import Campaign, Run, Stream, load_campaign
from analysis.records import number
from analysis.stalls import (
    BEAT_TOLERANCE,
    SKIP_TOLERANCE,
    STALL,
    THRESHOLDS,
    lateness,
    stalled_seconds,
    stalls,
    totals,
    worst,
)
from analysis.words import (
    NOT_AVAILABLE,
    entry,
    mib,
    number_word,
    paragraph,
    plain,
    plural,
    seconds,
)
from setup.errors import UserError, run_command

PACED = ("heartbeat", "player")  # streams that print on a clock,
PACE = 0.1  # every so many seconds


def summary(campaign: Campaign) -> str:
    """The text of summary.txt; UserError if no run is complete."""
    if not campaign.runs:
        raise UserError(
            f"{campaign.path}: no run has a status.json: {plain(', '.join(campaign.incomplete))}",
            hint="a run that was cut short has nothing to report",
        )
    title = plain(f"Desktop freezes: {campaign.path.resolve().name}", 75)
    lines = [title, "=" * len(title), ""]
    if campaign.incomplete:
        names = plain(", ".join(campaign.incomplete), 2000)
        lines += [*paragraph(f"Incomplete, left out: {names}"), ""]
    variants = campaign.variants()
    if len(campaign.runs) > 1:
        lines += [*_overview(campaign.runs), ""]
    single = [plain(runs[0].label, 40) for runs in variants.values() if len(runs) == 1]
    if single:
        which = "" if len(campaign.runs) == 1 else f" ({', '.join(single)})"
        lines += [*paragraph(f"One run is a sign, not a finding{which}."), ""]
    for run in campaign.runs:
        lines += [*_run(run, len(variants[run.variant])), ""]
    return "\n".join(line.rstrip() for line in lines[:-1]) + "\n"


def run_name(run: Run, runs: int, limit: int = 60) -> str:
    """'6.12' or '6.12, run 2 of 3'."""
    return plain(run.label, limit) + (f", run {run.number} of {runs}" if runs > 1 else "")


def worst_stream(streams: list[Stream]) -> Stream | None:
    """The stream with the longest silence."""
    return max(streams, key=worst, default=None)


def _overview(runs: list[Run]) -> Iterator[str]:
    """One line a run."""
    yield f"{'variant':<27} {'run':>3}  {'ended':<9} {'worst':>9} {'stalled':>9} {'elapsed':>9}"
    for run in runs:
        longest = worst_stream(run.gitks)
        figures = [
            seconds(worst(longest)) if longest else "-",
            seconds(stalled_seconds(run)) if longest else "-",
            seconds(elapsed) if (elapsed := run_elapsed(run)) is not None else "-",
        ]
        yield (
            f"{plain(run.label, 27):<27} {run.number % 1000:>3}  {plain(run.state, 9):<9} "
            + " ".join(f"{figure[:9]:>9}" for figure in figures)
        )
    yield from paragraph(
        "worst: the longest gap of any gitk; stalled: their gaps of 1 s or more, added up."
    )


def run_elapsed(run: Run) -> float | None:
    """Seconds of the workload, as the run's own end says; None if it never began."""
    elapsed = number(run.status.get("elapsed_s"))
    return elapsed if elapsed is None or elapsed >= 0 else None


def headline(run: Run) -> str:
    """The freeze in a sentence."""
    gitks = run.gitks
    longest = worst_stream(gitks or list(run.streams.values()))
    if longest is None:
        return "No program of the workload printed a line."
    text = f"{plain(longest.name, 40)} was silent for {seconds(worst(longest))} at the worst"
    if longest.open_gap == worst(longest) >= STALL:
        when = "it ended" if longest.ended else "the machine was last heard"
        text += f" (still silent when {when})"
    if len(gitks) > 1:
        text += (
            f"; the {number_word(len(gitks))} gitk's together stood still for "
            f"{seconds(stalled_seconds(run))} (gaps of {STALL:.0f} s or more, added up)"
        )
    elif gitks:
        text += f"; it stood still for {seconds(stalled_seconds(run))} in all"
    return text + "."


def _run(run: Run, runs: int) -> Iterator[str]:
    name = run_name(run, runs)
    yield name
    yield "-" * len(name)
    yield from paragraph(headline(run))
    yield ""
    yield from _facts(run)
    yield ""
    yield from _stream_table(run)
    yield ""
    yield from _sound(run)
    yield from _counters(run)
    yield from _kernel_log(run)
    yield from _observers(run)
    for warning in run.warnings:
        yield from entry("with care", plain(warning))


def _facts(run: Run) -> Iterator[str]:
    def known(template: str, *keys: str) -> str:
        value = run.fact(*keys)
        return template.format(plain(value, 60)) if value is not None else ""

    def line(name: str, *parts: str) -> list[str]:
        return entry(name, ", ".join(part for part in parts if part) or NOT_AVAILABLE)

    elapsed = run_elapsed(run)
    ended = f"{plain(run.state, 20)}: {plain(run.status.get('why'))}"
    yield from entry("ended", ended + (f" ({seconds(elapsed)})" if elapsed is not None else ""))
    yield from line("kernel", known("{}", "kernel", "release"), known("{}", "kernel", "version"))
    if run.label != run.variant:
        yield from entry("variant", plain(run.variant))
    yield from line(
        "machine",
        known("{} CPUs", "cpus"),
        known("{}", "cpu_model"),
        _size(run.fact("mem_total_kib"), 1 / 1024, " of memory"),
        {"none": "a real machine", "kvm": "KVM", "tcg": "TCG"}.get(
            accelerator := plain(run.fact("accelerator")), f"accelerator {accelerator}"
        ),
        known("QEMU {}", "machine", "qemu"),
    )
    yield from line(
        "disk",
        _size(run.fact("disk", "size_bytes"), 2**-20),
        known("{}", "disk", "model"),
        known("cache {}", "disk", "cache"),
        known("at most {} IOPS", "disk", "iops"),
        known("at most {} bytes/s", "disk", "bps"),
        known("crypt {}", "crypt"),
        known("{}", "fs"),
        _size(run.fact("swap", "size_kib"), 1 / 1024, " of swap"),
    )
    parameters = run.fact("parameters")
    pairs = parameters.items() if isinstance(parameters, dict) else ()
    yield from line("workload", *(f"{plain(k, 30)} {plain(v, 60)}" for k, v in pairs))


def _size(value: Any, per_mib: float, what: str = "") -> str:
    size = number(value)
    return "" if size is None else f"{size * per_mib:,.0f} MiB{what}"


def _stream_table(run: Run) -> Iterator[str]:
    if not run.streams:
        yield "No stream."
        return
    head = "".join(f"{f'>= {threshold:g} s':>13}" for threshold in THRESHOLDS)
    yield f"{'':<12}{'':>8}{head}{'worst':>8}{'open':>8}"
    yield f"{'stream':<12}{'elapsed':>8}" + f"{'n':>5}{'s':>8}" * 3 + f"{'gap':>8}" * 2
    for stream in run.streams.values():
        row = f"{plain(stream.name, 12):<12}{_cell(stream.until)}"
        for total in totals(stream):
            paced = stream.name in PACED and total.threshold <= PACE
            row += f"{'-':>5}{'-':>8}" if paced else _count(total.count) + _cell(total.seconds)
        # A gap that nobody saw end is at least this long.
        yield row + _cell(worst(stream)) + _cell(stream.open_gap, "" if stream.ended else "+")
    if any(name in PACED for name in run.streams):
        yield f"- every line would count: these come each {PACE} s. Their lateness is below."
    if not all(stream.ended for stream in run.streams.values()):
        yield "+ its end was not seen: silent until the machine was last heard."


def _cell(value: float, mark: str = "") -> str:
    text = f"{value:.1f}{mark}"
    return f"{text:>8}" if len(text) < 8 else f"{f'{value:.1e}{mark}':>8}"


def _count(value: int) -> str:
    return f"{value:>5}" if value < 10000 else f"{f'{value // 1000}k':>5}"


def _sound(run: Run) -> Iterator[str]:
    for name, stream_name, tolerance in (
        ("audio", "player", SKIP_TOLERANCE),
        ("heartbeat", "heartbeat", BEAT_TOLERANCE),
    ):
        stream = run.streams.get(stream_name)
        found = lateness(stream, tolerance) if stream else None
        if stream is None or found is None:
            yield from entry(name, NOT_AVAILABLE)
            continue
        if name == "audio":
            text = plural(len(found.spans), "skip")
            if found.spans:
                text += f", {seconds(sum(found.spans))} in all, the longest "
                text += seconds(max(found.spans))
        else:
            text = f"{found.missed:,} of {found.deadlines:,} deadlines missed by more than "
            text += f"{tolerance} s, the worst by {found.worst:.3f} s"
        if any(stall.open for stall in stalls(stream)) and not stream.ended:
            text += f"; silent for the last {seconds(stream.open_gap)}"
        if found.unread:
            text += f"; {plural(found.unread, 'line')} without a lateness not counted"
        yield from entry(name, text)


def _counters(run: Run) -> Iterator[str]:
    for name, into, out in (
        ("swap", counters.SWAP_IN, counters.SWAP_OUT),
        ("page IO", counters.PAGE_IN, counters.PAGE_OUT),
    ):
        moved = (counters.moved_mib(run, into), counters.moved_mib(run, out))
        yield from entry(name, f"in {mib(moved[0])}, out {mib(moved[1])}")
    most = counters.peak(run, "vmstat", "nr_writeback")
    pages = NOT_AVAILABLE if most is None else f"{most:,.0f} pages at the most"
    yield from entry("nr_writeback", pages)


def _kernel_log(run: Run) -> Iterator[str]:
    if not (run.path / "kern.log").is_file():
        yield from entry("kernel log", NOT_AVAILABLE)
        return
    log = count_failures(run.kern_lines())
    parts = []
    for key, noun in (
        ("page_allocation_failures", "page allocation failure"),
        ("oom_kills", "OOM kill"),
        ("hung_tasks", "hung task"),
        ("soft_lockups", "soft lockup"),
    ):
        bound = "at least " if key in log.at_least else ""
        parts.append(bound + plural(getattr(log, key), noun))
    text = ", ".join(parts)
    if log.suppressed:
        text += f"; {plural(log.suppressed, 'more message')} suppressed by the kernel"
    yield from entry("kernel log", text + ("; its ring lost records" if log.missed else ""))


def _observers(run: Run) -> Iterator[str]:
    """The observers' own cost: their word in meta.json, else what of it their events hold."""
    listed = run.fact("observers")
    found: list[Any] = listed if isinstance(listed, list) and listed else run.events
    each = [one for one in found if isinstance(one, dict) and number(one.get("cpu_s")) is not None]
    locked = [number(one.get("locked_kib")) for one in each]
    spent = [(number(one["cpu_s"]), number(one.get("elapsed_s"))) for one in each]
    shares = [cpu / lasted for cpu, lasted in spent if cpu is not None and lasted]
    known = [kib for kib in locked if kib is not None]
    late = [number(one.get("worst_late_s")) for one in each] + [counters.worst_lateness(run)]
    latest = max((one for one in late if one is not None), default=None)
    parts = [
        f"{mib(sum(known) / 1024)} locked" if known else f"locked memory {NOT_AVAILABLE}",
        f"{100 * sum(shares):.2f} % of one CPU" if shares else f"CPU share {NOT_AVAILABLE}",
        f"lateness {NOT_AVAILABLE}" if latest is None else f"latest sample {latest:.3f} s late",
    ]
    missed = sum(number(one.get("missed")) or 0 for one in each)
    parts += [f"{missed:,.0f} samples missed"] if missed else []
    if any(one.get("dropped") for one in each):  # a count for each file
        parts.append("rows dropped, its files have holes")
    yield from entry("observers", ", ".join(parts))
    problems = run.fact("observer_problems")
    for problem in problems if isinstance(problems, list) else []:
        yield from entry("with care", f"observer: {plain(problem)}")


def main(arguments: list[str] | None = None) -> int:
    """Print the summary of a folder of results."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.summary", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dir", type=Path, help="a campaign's folder, or one run's")
    text = summary(load_campaign(parser.parse_args(arguments).dir))
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.summary", main))
