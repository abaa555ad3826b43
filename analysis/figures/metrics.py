# SPDX-License-Identifier: GPL-2.0-or-later
"""One figure a run for each metric (docs/VERDICTS.md); for every one of them lower is better.

None means not available, it never means zero. A run that failed (`failed`) is math.inf, the worst
rank there is, for every metric of what the user felt; what the machine moved until it died says
nothing about a whole run and is None.
"""

import math
from dataclasses import dataclass

import numpy as np

from analysis.figures import counters, failed_allocations
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    SKIP_TOLERANCE,
    STALL,
    Lateness,
    lateness,
    stalled_seconds,
    worst,
)
from analysis.reading.latency_log import Floats, number
from analysis.reading.load import Run
from analysis.reading.streams import Stream
from analysis.reading.words import plain, some
from contract.run_files import COMPLETED, FAILED, HEARTBEAT, PLAYER

WINDOW = 10.0  # s: of the nested percentiles
WINDOW_QUANTILE = 0.95
MOST_WINDOWS = 100_000  # beyond 11 days a stamp is damage, not a time


@dataclass(frozen=True)
class Metric:
    """A figure of a run: its key, its words, its unit, and the decimals it is printed with."""

    key: str
    title: str
    unit: str
    digits: int
    primary: bool = False
    felt: bool = True  # what the user felt: a failed run is the worst (else: not available)
    better: str = "lower"


METRICS = (
    Metric("stalled", "stalled seconds per run", "s", 1, primary=True),
    Metric("worst", "worst stall", "s", 1),
    Metric("share-0.1", "share of time in gaps >= 0.1 s", "%", 1),
    Metric("share-1", "share of time in gaps >= 1 s", "%", 1),
    Metric("share-10", "share of time in gaps >= 10 s", "%", 1),
    Metric("wait", "expected wait at a random moment", "s", 2),
    Metric("p95", "p95 gap by time", "s", 2),
    Metric("p99", "p99 gap by time", "s", 2),
    Metric("window-p50", "p95 gap inside 10 s windows: median", "s", 2),
    Metric("window-share", "10 s windows with a p95 gap >= 1 s", "%", 1),
    Metric("elapsed", "elapsed until all gitk's are done", "s", 1),
    Metric("beats", "heartbeat deadlines missed", "", 0),
    Metric("skips", "audio skips", "", 0),
    Metric("skipped", "audio skips, seconds", "s", 1),
    Metric("swap-in", "swap in", "MiB", 0, felt=False),
    Metric("swap-out", "swap out", "MiB", 0, felt=False),
    Metric("page-in", "page in", "MiB", 0, felt=False),
    Metric("page-out", "page out", "MiB", 0, felt=False),
    Metric("allocation", "page allocation failures", "", 0, felt=False),
    Metric("unlogged", "allocation failures not logged", "", 0, felt=False),
    Metric("echo-lost", "echo replies lost", "", 0, felt=False),
)
PRIMARY = METRICS[0]
BY_KEY = {metric.key: metric for metric in METRICS}


def failed(run: Run) -> bool:
    """Whether the run is a result of the worst kind (an aborted one is none at all)."""
    return run.state in FAILED


def counted(run: Run) -> bool:
    """Whether the run is a result: it ended by itself or it failed, nobody stopped it."""
    return run.state == COMPLETED or failed(run)


def measure(run: Run) -> dict[str, float | None]:
    """Every metric of the run by its key."""
    if failed(run):
        return {metric.key: math.inf if metric.felt else None for metric in METRICS}
    values: dict[str, float | None] = dict.fromkeys(BY_KEY)
    values.update(_silences(run))
    if beats := _deadlines(run, HEARTBEAT, BEAT_TOLERANCE):
        values["beats"] = float(beats.missed)
    if chunks := _deadlines(run, PLAYER, SKIP_TOLERANCE):
        values["skips"] = float(len(chunks.spans))
        values["skipped"] = float(sum(chunks.spans))
    values["swap-in"] = counters.moved_mib(run, counters.SWAP_IN)
    values["swap-out"] = counters.moved_mib(run, counters.SWAP_OUT)
    values["page-in"] = counters.moved_mib(run, counters.PAGE_IN)
    values["page-out"] = counters.moved_mib(run, counters.PAGE_OUT)
    found = failed_allocations.look(run)
    for key, count in (
        ("allocation", found.logged),
        ("unlogged", found.unlogged),
        ("echo-lost", found.echoes_lost),
    ):
        values[key] = None if count is None else float(count)
    return values


def _deadlines(run: Run, name: str, tolerance: float) -> Lateness | None:
    """The lateness of a stream; None if it is not known, or lost lines could hide a late one."""
    stream = run.streams.get(name)
    if stream is None or (stream.ended and stream.unaccounted > tolerance):
        return None
    return lateness(stream, tolerance)


def lost(run: Run) -> str:
    """Which lines or logs of gitk's are lost, if stalls may be lost with them; else ''."""
    gitks = run.gitks
    asked = number(run.fact("parameters", "gitk"))
    if not gitks or (asked is not None and len(gitks) < asked):
        return "no log of a gitk"
    holes = [
        f"{plain(gitk.name, 20)} {gitk.unaccounted:.1f} s"
        for gitk in gitks
        if gitk.unaccounted >= STALL
    ]
    return some(holes, 4) if holes else ""


def _silences(run: Run) -> dict[str, float | None]:
    """The figures of the gitk streams; none of them if stalls may be lost.

    A sum over three of four gitk's, or over the lines that could be read, would look like a better
    kernel.
    """
    if lost(run):
        return {}
    gitks = run.gitks
    _, length = silences(gitks)
    total = float(length.sum())
    values: dict[str, float | None] = {
        "stalled": stalled_seconds(run),
        "worst": max(worst(gitk) for gitk in gitks),
        "elapsed": max(gitk.until for gitk in gitks),
    }
    if total <= 0:
        return values
    for threshold in ("0.1", "1", "10"):
        inside = float(length[length >= float(threshold)].sum())
        values[f"share-{threshold}"] = 100 * inside / total
    values["wait"] = expected_wait(length)
    values["p95"], values["p99"] = (quantile_by_time(length, length, q) for q in (0.95, 0.99))
    found = [window_quantiles(*silences([gitk]), WINDOW_QUANTILE) for gitk in gitks]
    windows = [one for one in found if one is not None and len(one)]
    if len(windows) == len(gitks):
        values["window-p50"] = float(np.mean([np.median(one) for one in windows]))
        values["window-share"] = float(np.mean([100 * np.mean(one >= STALL) for one in windows]))
    return values


def silences(streams: list[Stream]) -> tuple[Floats, Floats]:
    """Begin (elapsed) and length of every gap of the streams, the open gaps included; seconds."""
    ends = [np.append(stream.elapsed, stream.until) for stream in streams]
    lengths = [np.append(stream.gap, stream.open_gap) for stream in streams]
    length = np.concatenate(lengths)
    return np.concatenate(ends) - length, length


def expected_wait(length: Floats) -> float:
    """Seconds until the next line, for somebody who looks at a random moment at a random gitk.

    A gap of g seconds is met with the probability g / total and then lasts g / 2 longer on the
    average: sum(g^2) / 2 / total. What an open gap lasts beyond the run is not known, not counted.
    """
    return float((length**2).sum() / 2 / length.sum())


def quantile_by_time(length: Floats, weight: Floats, q: float) -> float:
    """The shortest gap such that at least q of the time (weight) is spent in gaps up to it."""
    order = np.argsort(length, kind="stable")
    reached = np.cumsum(weight[order])
    return float(length[order][np.searchsorted(reached, q * reached[-1] * (1 - 1e-12))])


def window_quantiles(begin: Floats, length: Floats, q: float) -> Floats | None:
    """quantile_by_time of each WINDOW of one stream that has any gap; None if they are too many.

    A gap has in each window only the seconds that lie there: a long tooth fills few windows with
    WINDOW seconds each, however long it is, and leaves the others as they are.
    """
    end = begin + length
    first = np.floor(begin / WINDOW).astype(np.int64)
    last = np.maximum(first, np.ceil(end / WINDOW).astype(np.int64) - 1)
    if last.max() - first.min() > MOST_WINDOWS:
        return None
    copies = last - first + 1
    which = np.repeat(np.arange(len(length)), copies)
    start = np.cumsum(copies) - copies
    window = first[which] + np.arange(len(which)) - start[which]
    left = np.maximum(begin[which], window * WINDOW)
    inside = np.maximum(np.minimum(end[which], (window + 1) * WINDOW) - left, 0)
    order = np.lexsort((inside, window))
    window, inside = window[order], inside[order]
    firsts = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    reached = np.cumsum(inside)
    before = np.append(0.0, reached[firsts[1:] - 1])
    covered = np.append(before[1:], reached[-1]) - before
    # A nanosecond less: the sums are rounded, and no gap is known to less than a millisecond.
    found = np.maximum(np.searchsorted(reached, before + q * covered - 1e-9), firsts)
    return np.asarray(inside[found][covered > 1e-9])
