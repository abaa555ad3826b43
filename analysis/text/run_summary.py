# SPDX-License-Identifier: GPL-2.0-or-later
"""One run as text: its freeze in a sentence, its facts, streams and counters."""

from collections.abc import Iterator

from analysis.figures.echo import echoes
from analysis.figures.metrics import BY_KEY, frozen_share, metrics_of, unfinished
from analysis.figures.stalls import stalled_seconds, worst
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import NOT_AVAILABLE, number_word, plural_subject, safe_line, seconds
from analysis.stall_causes.causes import RunCauses
from analysis.text import causes as causes_text
from analysis.text import lost_programs, workload_tables
from analysis.text.campaign_summary import run_elapsed, worst_stream
from analysis.text.layout import WIDTH, entry, paragraph
from analysis.text.machine import cpus, disk, known, listed, memory, reference, swap, workload
from analysis.text.run_kernel import counter_lines, log_lines, observer_lines
from analysis.text.run_streams import deadline_lines, key_lines, stream_table
from analysis.verdicts.felt import frozen_words
from analysis.verdicts.sentences import amount


def section(run: Run, runs: int, why: RunCauses | None) -> Iterator[str]:
    """The run's lines; `runs`: how many its variant has; `why`: the causes of its stalls."""
    name = _name(run, runs)
    yield name
    yield "-" * len(name)
    yield from paragraph(_headline(run))
    yield ""
    yield from _facts(run)
    yield ""
    yield from stream_table(run)
    yield from workload_tables.run_lines(run, WIDTH)
    yield ""
    yield from _measured(run)
    yield from causes_text.summary_lines(run, why)
    yield from lost_programs.lines(run)
    yield from deadline_lines(run)
    yield from key_lines(run)
    if echo := echoes(run):
        yield from entry("echo", echo.words())
    yield from counter_lines(run)
    yield from log_lines(run)
    yield from observer_lines(run)
    for warning in run.warnings:
        yield from entry("with care", safe_line(warning))


def _name(run: Run, runs: int) -> str:
    """'6.12' or '6.12, run 2 of 3'."""
    return safe_line(run.label, 60) + (f", run {run.number} of {runs}" if runs > 1 else "")


def _headline(run: Run) -> str:
    """The freeze in a sentence."""
    subjects = run.subjects
    longest = worst_stream(subjects or list(run.streams.values()))
    if longest is None:
        return "No program of the workload printed a line."
    name, open_words = safe_line(longest.name, 40), ""
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
    """The sum of all stalls (s), the number of programs, and how long each of them ran (s)."""
    subjects = run.subjects
    ran = sorted(round(subject.until - subject.begin) for subject in subjects)
    span = f"{ran[0]:,} to {ran[-1]:,} s" if ran[0] < ran[-1] else f"{ran[0]:,} s"
    if len(subjects) > 1:
        count = f"{number_word(len(subjects))} {plural_subject(run.workload.subject)}"
        whose, they = f" of {count}", f"; each of them ran for {span}"
    else:
        whose, they = "", f", in {span}"
    return (
        f"The stalls (gaps of {STALL:.0f} s or more){whose} add up to "
        f"{'at least ' if unfinished(run) else ''}{seconds(stalled_seconds(run))}{they}."
    )


def _measured(run: Run) -> Iterator[str]:
    """An entry for each figure that the workload measured by itself."""
    for metric in metrics_of(run.workload):
        if metric.key not in BY_KEY:
            value = run.figures.get(metric.key)
            text = NOT_AVAILABLE if value is None else amount(metric, value)
            yield from entry("measured", f"{metric.title}: {text}")


def _facts(run: Run) -> Iterator[str]:
    elapsed = run_elapsed(run)
    ended = f"{safe_line(run.state, 20)}: {safe_line(run.status.get('why'))}"
    yield from entry("ended", ended + (f" ({seconds(elapsed)})" if elapsed is not None else ""))
    release, version = (known(run, "{}", "kernel", key) for key in ("release", "version"))
    yield from listed("kernel", [release, version])
    if run.label != run.variant:
        yield from entry("variant", safe_line(run.variant))
    parts = [
        cpus(run),
        known(run, "{}", "cpu_model"),
        memory([run]),
        {"none": "a real machine", "kvm": "KVM", "tcg": "TCG"}.get(
            accelerator := safe_line(run.fact("accelerator")), f"accelerator {accelerator}"
        ),
        known(run, "QEMU {}", "machine", "qemu"),
    ]
    yield from listed("machine", parts)
    if modelled := reference(run):
        yield from entry("modelled", modelled)
    yield from listed("disk", [*disk(run), swap(run)])
    yield from listed("workload", workload(run))
