# SPDX-License-Identifier: GPL-2.0-or-later
"""One figure a run for each metric (docs/VERDICTS.md); for every one of them lower is better.

None means not available, it never means zero. A run that failed (`failed`) is math.inf, the worst
rank there is, for every metric of what the user felt; what the machine moved until it died says
nothing about a whole run and is None.
"""

import math
from dataclasses import dataclass

import numpy as np

from analysis import counters
from analysis.kernlog import count_failures
from analysis.load import Run, Stream
from analysis.records import Floats, number
from analysis.stalls import BEAT_TOLERANCE, SKIP_TOLERANCE, lateness, stalled_seconds, worst

FAILED = ("hung", "panicked", "oom", "lost")  # the machine or the workload did not live to the end
COMPLETED = "completed"
WINDOW = 10.0  # s: of the nested percentiles
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
    Metric("window-p50", "p95 gap of 10 s windows: median", "s", 2),
    Metric("window-p95", "p95 gap of 10 s windows: p95", "s", 2),
    Metric("elapsed", "elapsed until all gitk's are done", "s", 1),
    Metric("beats", "heartbeat deadlines missed", "", 0),
    Metric("skips", "audio skips", "", 0),
    Metric("skipped", "audio skips, seconds", "s", 1),
    Metric("swap-in", "swap in", "MiB", 0, felt=False),
    Metric("swap-out", "swap out", "MiB", 0, felt=False),
    Metric("page-in", "page in", "MiB", 0, felt=False),
    Metric("page-out", "page out", "MiB", 0, felt=False),
    Metric("allocation", "page allocation failures", "", 0, felt=False),
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
    heartbeat, player = run.streams.get("heartbeat"), run.streams.get("player")
    if heartbeat and (beats := lateness(heartbeat, BEAT_TOLERANCE)):
        values["beats"] = float(beats.missed)
    if player and (chunks := lateness(player, SKIP_TOLERANCE)):
        values["skips"] = float(len(chunks.spans))
        values["skipped"] = float(sum(chunks.spans))
    values["swap-in"] = counters.moved_mib(run, counters.SWAP_IN)
    values["swap-out"] = counters.moved_mib(run, counters.SWAP_OUT)
    values["page-in"] = counters.moved_mib(run, counters.PAGE_IN)
    values["page-out"] = counters.moved_mib(run, counters.PAGE_OUT)
    if run.has_kern_log:
        values["allocation"] = float(count_failures(run.kern_lines()).page_allocation_failures)
    return values


def _silences(run: Run) -> dict[str, float | None]:
    """The figures of the gitk streams; none of them if the log of one that was asked for is lost.

    A sum over three of four gitk's would look like a better kernel.
    """
    gitks = run.gitks
    asked = number(run.fact("parameters", "gitk"))
    if not gitks or (asked is not None and len(gitks) < asked):
        return {}
    begin, length = silences(gitks)
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
    windows = window_quantiles(begin, length, 0.95)
    if windows is not None:
        values["window-p50"] = float(np.quantile(windows, 0.5, method="inverted_cdf"))
        values["window-p95"] = float(np.quantile(windows, 0.95, method="inverted_cdf"))
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
    """quantile_by_time of each WINDOW that has any gap in it; None if there are too many of them.

    A gap has its whole length in every window that it reaches into, and there the weight of the
    seconds that lie in the window: a window tells what somebody who looked then was waiting for.
    """
    first = np.floor(begin / WINDOW).astype(np.int64)
    last = np.maximum(first, np.ceil((begin + length) / WINDOW).astype(np.int64) - 1)
    if last.max() - first.min() > MOST_WINDOWS:
        return None
    copies = last - first + 1
    which = np.repeat(np.arange(len(length)), copies)
    start = np.cumsum(copies) - copies
    window = first[which] + np.arange(len(which)) - start[which]
    left = np.maximum(begin[which], window * WINDOW)
    right = np.minimum((begin + length)[which], (window + 1) * WINDOW)
    weight = np.maximum(right - left, 0)
    order = np.lexsort((length[which], window))
    window, weight, lengths = window[order], weight[order], length[which][order]
    firsts = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    reached = np.cumsum(weight)
    before = np.append(0.0, reached[firsts[1:] - 1])
    inside = np.append(before[1:], reached[-1]) - before
    # A nanosecond less: the sums are rounded, and no gap is known to less than a millisecond.
    found = np.maximum(np.searchsorted(reached, before + q * inside - 1e-9), firsts)
    return np.asarray(lengths[found][inside > 0])
