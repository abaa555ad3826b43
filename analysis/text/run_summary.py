# SPDX-License-Identifier: GPL-2.0-or-later
"""One run in letters: its freeze in a sentence, its facts, streams and counters."""

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.figures import counters, failed_allocations, keys, observer_faults
from analysis.figures.echo import echoes
from analysis.figures.metrics import BY_KEY, frozen_share, metrics_of, unfinished
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    PACE,
    PACED,
    SKIP_TOLERANCE,
    STALL,
    THRESHOLDS,
    kind,
    lateness,
    stalled_seconds,
    stalls,
    totals,
    worst,
)
from analysis.reading.facts import swap_kind
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import NOT_AVAILABLE, mib, number_word, plain, plural, seconds, several
from analysis.stall_causes.causes import RunCauses
from analysis.text import causes as causes_text
from analysis.text import lost_programs, workload_tables
from analysis.text.campaign_summary import run_elapsed, worst_stream
from analysis.text.layout import WIDTH, entry, paragraph
from analysis.text.machine import cpus, disk, known, listed, memory, reference, swap, workload
from analysis.verdicts.felt import frozen_words
from analysis.verdicts.sentences import amount
from contract.run_files import HEARTBEAT, PLAYER
from contract.swap import ZRAM, ZSWAP
from contract.workload import DESKTOP

NAME = 12  # columns of a stream's name
MIB = float(1 << 20)


def section(run: Run, runs: int, why: RunCauses | None) -> Iterator[str]:
    """The run's lines; runs: how many its variant has, why: what its stalls waited for."""
    name = _name(run, runs)
    yield name
    yield "-" * len(name)
    yield from paragraph(_headline(run))
    yield ""
    yield from _facts(run)
    yield ""
    yield from _stream_table(run)
    yield from workload_tables.run_lines(run, WIDTH)
    yield ""
    yield from _measured(run)
    yield from causes_text.summary_lines(run, why)
    yield from lost_programs.lines(run)
    yield from _sound(run)
    yield from _keys(run)
    yield from _echo(run)
    yield from _counters(run)
    yield from _kernel_log(run)
    yield from _observers(run)
    for warning in run.warnings:
        yield from entry("with care", plain(warning))


def _name(run: Run, runs: int) -> str:
    """'6.12' or '6.12, run 2 of 3'."""
    return plain(run.label, 60) + (f", run {run.number} of {runs}" if runs > 1 else "")


def _headline(run: Run) -> str:
    """The freeze in a sentence."""
    subjects = run.subjects
    longest = worst_stream(subjects or list(run.streams.values()))
    if longest is None:
        return "No program of the workload printed a line."
    name, open_words = plain(longest.name, 40), ""
    if longest.open_gap == worst(longest) >= STALL:
        when = "it ended" if longest.ended else "the machine was last heard"
        open_words = f", still silent when {when}"
    share = frozen_share(run)
    if not subjects:
        return f"{name} was silent for {seconds(worst(longest))} at the worst{open_words}."
    if share is None:
        least = "at least " if unfinished(run) else ""
        text = f"Frozen for {least}{seconds(worst(longest))} at the worst ({name}{open_words})."
    else:
        words = frozen_words(share, worst(longest), cut=unfinished(run))
        text = f"{words[:1].upper()}{words[1:]} ({name}{open_words})."
    if not stalled_seconds(run):
        return text
    return f"{text} {_sum_of_stalls(run)}"


def _sum_of_stalls(run: Run) -> str:
    """All stalls added up, of how many programs, and in how many seconds of each."""
    subjects = run.subjects
    ran = sorted(round(one.until - one.begin) for one in subjects)
    span = f"{ran[0]:,} to {ran[-1]:,} s" if ran[0] < ran[-1] else f"{ran[0]:,} s"
    if len(subjects) > 1:
        count = f"{number_word(len(subjects))} {several(run.workload.subject)}"
        whose, they = f" of {count}", f"; each of them ran for {span}"
    else:
        whose, they = "", f", in {span}"
    return (
        f"The stalls (gaps of {STALL:.0f} s or more){whose} add up to "
        f"{'at least ' if unfinished(run) else ''}{seconds(stalled_seconds(run))}{they}."
    )


def _measured(run: Run) -> Iterator[str]:
    """What the workload measured by itself, one figure after the other."""
    for metric in metrics_of(run.workload):
        if metric.key not in BY_KEY:
            value = run.figures.get(metric.key)
            text = NOT_AVAILABLE if value is None else amount(metric, value)
            yield from entry("measured", f"{metric.title}: {text}")


def _facts(run: Run) -> Iterator[str]:
    elapsed = run_elapsed(run)
    ended = f"{plain(run.state, 20)}: {plain(run.status.get('why'))}"
    yield from entry("ended", ended + (f" ({seconds(elapsed)})" if elapsed is not None else ""))
    release, version = (known(run, "{}", "kernel", key) for key in ("release", "version"))
    yield from listed("kernel", [release, version])
    if run.label != run.variant:
        yield from entry("variant", plain(run.variant))
    parts = [
        cpus(run),
        known(run, "{}", "cpu_model"),
        memory([run]),
        {"none": "a real machine", "kvm": "KVM", "tcg": "TCG"}.get(
            accelerator := plain(run.fact("accelerator")), f"accelerator {accelerator}"
        ),
        known(run, "QEMU {}", "machine", "qemu"),
    ]
    yield from listed("machine", parts)
    if modelled := reference(run):
        yield from entry("modelled", modelled)
    yield from listed("disk", [*disk(run), swap(run)])
    yield from listed("workload", workload(run))


def _stream_table(run: Run) -> Iterator[str]:
    if not run.streams:
        yield "No stream."
        return
    head = "".join(f"{f'>= {threshold:g} s':>13}" for threshold in THRESHOLDS)
    yield f"{'':<12}{'':>8}{head}{'worst':>8}{'open':>8}"
    yield f"{'stream':<12}{'elapsed':>8}" + f"{'n':>5}{'s':>8}" * 3 + f"{'gap':>8}" * 2
    for stream in run.streams.values():
        name = plain(stream.name, 40)
        if len(name) > NAME:
            yield name
            name = ""
        row = f"{name:<{NAME}}{_cell(stream.until)}"
        for total in totals(stream):
            paced = kind(stream.name) in PACED and total.threshold <= PACE
            row += f"{'-':>5}{'-':>8}" if paced else _count(total.count) + _cell(total.seconds)
        # A gap that nobody saw end is at least this long.
        yield row + _cell(worst(stream)) + _cell(stream.open_gap, "" if stream.ended else "+")
    if any(kind(name) in PACED for name in run.streams):
        yield f"- every line would count: these come each {PACE} s. Their lateness is below."
    if not all(stream.ended for stream in run.streams.values()):
        yield "+ its end was not seen: silent until the machine was last heard."


def _cell(value: float, mark: str = "") -> str:
    text = f"{value:.1f}{mark}"
    return f"{text:>8}" if len(text) < 8 else f"{f'{value:.1e}{mark}':>8}"


def _count(value: int) -> str:
    return f"{value:>5}" if value < 10000 else f"{f'{value // 1000}k':>5}"


def _sound(run: Run) -> Iterator[str]:
    others = [one for one in run.streams if kind(one) == HEARTBEAT and one != HEARTBEAT]
    for name, stream_name, tolerance in (
        ("audio", PLAYER, SKIP_TOLERANCE),
        (HEARTBEAT, HEARTBEAT, BEAT_TOLERANCE),
        *((plain(one, 40), one, BEAT_TOLERANCE) for one in others),
    ):
        stream = run.streams.get(stream_name)
        found = lateness(stream, tolerance) if stream else None
        if stream is None and run.workload.name != DESKTOP:
            continue
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


def _keys(run: Run) -> Iterator[str]:
    found = keys.key_figures(run.keys) if run.keys else None
    if found is not None:
        yield from entry("keys", keys.words(found))
    elif run.fact("keys") is not None:
        yield from entry("keys", NOT_AVAILABLE)


def _echo(run: Run) -> Iterator[str]:
    found = echoes(run)
    if found is not None:
        yield from entry("echo", found.words())


def _counters(run: Run) -> Iterator[str]:
    for name, into, out in (
        ("swap", counters.SWAP_IN, counters.SWAP_OUT),
        ("page IO", counters.PAGE_IN, counters.PAGE_OUT),
    ):
        moved = (counters.moved_mib(run, into), counters.moved_mib(run, out))
        yield from entry(name, f"in {mib(moved[0])}, out {mib(moved[1])}")
    yield from _compressed(run)
    most = counters.peak(run, "vmstat", "nr_writeback")
    pages = NOT_AVAILABLE if most is None else f"{most:,.0f} pages at the most"
    yield from entry("nr_writeback", pages)


def _compressed(run: Run) -> Iterator[str]:
    """What zswap kept from the disk, or the most memory that zram took.

    What zram holds at the end says nothing: the programs have ended, their swap with them.
    """
    if swap_kind(run) == ZSWAP:
        each = (counters.ZSWAP_IN, counters.ZSWAP_OUT, counters.ZSWAP_BACK)
        into, out, back = (mib(counters.moved_mib(run, one)) for one in each)
        yield from entry("zswap", f"in {into}, out {out}; written back {back}")
    elif swap_kind(run) == ZRAM:
        most = number(run.fact("swap", "mm_stat", "mem_used_max"))
        failed = number(run.fact("swap", "io_stat", "failed_writes"))
        text = NOT_AVAILABLE if most is None else f"{mib(most / MIB)} of memory at the most"
        yield from entry(
            "zram", text + (f"; {plural(int(failed), 'failed write')}" if failed else "")
        )


def _kernel_log(run: Run) -> Iterator[str]:
    found = failed_allocations.look(run)
    log, parts = found.log, []
    if log is None:
        yield from entry("kernel log", NOT_AVAILABLE)
        return
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
    if found.happened is not None or found.echoes_lost is not None:
        yield from entry("allocation", f"page allocation failures: {found.words()}")
    for problem in found.problems:
        yield from entry("with care", plain(problem))


def _observers_memory(observing: Any, locked: Sequence[float]) -> str:
    """What observing took of the memory: as measured, else what the observers had locked."""
    measured = observing if isinstance(observing, dict) else {}
    names = ("memory_kib", "locked_kib", "kernel_kib")
    memory, pinned, kernel = (number(measured.get(name)) for name in names)
    if memory is not None and pinned is not None and kernel is not None:
        of_it = f"{mib(pinned / 1024)} locked, {mib(kernel / 1024)} of the kernel's"
        return f"{mib(memory / 1024)} of memory ({of_it})"
    return f"{mib(sum(locked) / 1024)} locked" if locked else f"locked memory {NOT_AVAILABLE}"


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
        _observers_memory(run.fact("observing"), known),
        f"{100 * sum(shares):.2f} % of one CPU" if shares else f"CPU share {NOT_AVAILABLE}",
        f"lateness {NOT_AVAILABLE}" if latest is None else f"latest sample {latest:.3f} s late",
    ]
    missed = sum(number(one.get("missed")) or 0 for one in each)
    parts += [f"{missed:,.0f} samples missed"] if missed else []
    if any(one.get("dropped") for one in each):  # a count for each file
        parts.append("rows dropped, its files have holes")
    yield from entry("observers", ", ".join(parts))
    for why in observer_faults.of_run(run):
        yield from entry("with care", f"observer disturbed: {why}; in no verdict")
    problems = run.fact("observer_problems")
    for problem in problems if isinstance(problems, list) else []:
        yield from entry("with care", f"observer: {plain(problem)}")
