# SPDX-License-Identifier: GPL-2.0-or-later
"""One figure a run for each metric (docs/explain/verdicts.md): the suite's own, and the workload's.

None means not available, it never means zero. A run that failed (`failed`) is infinite, the worst
rank there is, for every metric of what the user felt; what the machine moved until it died says
nothing about a whole run and is None. A run that was not done at its limit (`unfinished`) has the
figures that only grow while a run goes on: they are at least so much (`GROWING`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.figures import counters, failed_allocations
from analysis.figures.keys import IDLE_S, KeyFigures, key_figures
from analysis.figures.lost_programs import at_its_limit, lives_on
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    PACED,
    SKIP_TOLERANCE,
    STALL,
    Lateness,
    kind,
    lateness,
    stalled_seconds,
    worst,
)
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.streams import Stream
from analysis.reading.words import a, number_word, plain, several, some
from contract.run_files import COMPLETED, FAILED, HEARTBEAT, OOM, PLAYER, UNFINISHED
from contract.workload import STALLED, Better, Description

EVERY_BEAT = "share-0.1"  # each gap of a stream that prints on a clock is in it
WINDOW = 10.0  # s: of the nested percentiles
WINDOW_QUANTILE = 0.95
MOST_WINDOWS = 100_000  # beyond 11 days a stamp is damage, not a time


@dataclass(frozen=True)
class Metric:
    """A figure of a run: its key, its words, its unit, and the decimals it is printed with.

    `row`: its name with its unit in a table, where that is not the title and the unit.
    """

    key: str
    title: str
    unit: str
    digits: int
    primary: bool = False
    felt: bool = True  # what the user felt: a failed run is the worst (else: not available)
    better: Better = "lower"
    row: str = ""

    @property
    def name(self) -> str:
        """Its name with its unit."""
        return self.row or f"{self.title} {self.unit}".strip()

    @property
    def sign(self) -> int:
        """1 if more of it is worse, -1 if more of it is better."""
        return 1 if self.better == "lower" else -1

    @property
    def worst(self) -> float | None:
        """What a run that failed has."""
        return self.sign * math.inf if self.felt else None


def _share(gap: str) -> Metric:
    title = f"share of time in gaps >= {gap} s"
    return Metric(f"share-{gap}", title, "%", 1, row=f"% of time in gaps >= {gap} s")


def _elapsed(subject: str) -> Metric:
    them = several(subject)
    title, row = f"elapsed until all {them} are done", f"all {them} done after s"
    return Metric("elapsed", title, "s", 1, row=row)


def _keys(took: str) -> Metric:
    title = f"share of keys that took >= {took} s"
    return Metric(f"keys-{took}", title, "%", 1, row=f"% of keys that took >= {took} s")


# What prints on a clock is never done: it is ended with the workload.
UNTIL_ENDED = Metric(
    "elapsed", "elapsed until the workload ended", "s", 1, row="workload ended after s"
)


METRICS = (
    Metric(STALLED, "stalled seconds per run", "s", 1, primary=True, row="stalled s per run"),
    Metric("worst", "worst stall", "s", 1),
    _share("0.1"),
    _share("1"),
    _share("10"),
    Metric("wait", "expected wait at a random moment", "s", 2, row="wait at a random moment s"),
    Metric("p95", "p95 gap by time", "s", 2),
    Metric("p99", "p99 gap by time", "s", 2),
    Metric(
        "window-p50",
        "p95 gap inside 10 s windows: median",
        "s",
        2,
        row="10 s windows' p95, median s",
    ),
    Metric(
        "window-share",
        "10 s windows with a p95 gap >= 1 s",
        "%",
        1,
        row="% of 10 s windows p95 >= 1 s",
    ),
    _elapsed("gitk"),
    _keys("0.1"),
    _keys("1"),
    _keys("10"),
    Metric("key-worst", "worst key", "s", 1),
    Metric("key-first", f"first key after {IDLE_S:.0f} s of idleness, mean", "s", 2),
    Metric("beats", "heartbeat deadlines missed", "", 0),
    Metric("skips", "audio skips", "", 0),
    Metric("skipped", "audio skips, seconds", "s", 1, row="audio skips s"),
    Metric("swap-in", "swap in", "MiB", 0, felt=False),
    Metric("swap-out", "swap out", "MiB", 0, felt=False),
    Metric("page-in", "page in", "MiB", 0, felt=False),
    Metric("page-out", "page out", "MiB", 0, felt=False),
    Metric("allocation", "page allocation failures", "", 0, felt=False),
    Metric("unlogged", "allocation failures not logged", "", 0, felt=False),
    Metric("echo-lost", "echo replies lost", "", 0, felt=False),
)
# Sums, counts and the longest of what there was: more of the run makes none of them less. What is a
# share or a typical value may become either; and of a workload's own figures nobody knows.
GROWING = frozenset(
    {
        *(STALLED, "worst", "elapsed", "key-worst", "beats", "skips", "skipped"),
        *("swap-in", "swap-out", "page-in", "page-out", "allocation", "unlogged", "echo-lost"),
    }
)
PRIMARY = METRICS[0]
BY_KEY = {metric.key: metric for metric in METRICS}


def metrics_of(workload: Description) -> tuple[Metric, ...]:
    """The metrics of runs of this workload: the primary one, the workload's own, the suite's.

    The suite's key is the suite's, whatever a workload calls so; and without a metric of the key
    that the workload names, stalled seconds are the primary one.
    """
    own = [
        Metric(one.key, one.title, one.unit, one.digits, better=one.better)
        for one in workload.figures
        if one.key not in BY_KEY
    ]
    paced = any(kind(name) in PACED for name in workload.subjects)
    elapsed = UNTIL_ENDED if paced else _elapsed(workload.subject)
    suites = [elapsed if one.key == elapsed.key else one for one in METRICS]
    if paced:
        suites.remove(BY_KEY[EVERY_BEAT])
    if words := added_up(workload):
        of_all = f"{PRIMARY.title}, {words}"
        suites[0] = replace(PRIMARY, title=of_all, row=f"stalled s, {words}")
    found = {one.key: replace(one, primary=False) for one in (*own, *suites)}
    primary = found.pop(workload.primary, None) or found.pop(PRIMARY.key)
    return (replace(primary, primary=True), *found.values())


def added_up(workload: Description) -> str:
    """ "four gitk's added up", which stalled seconds are; "" where one stream alone counts."""
    count = len(workload.subjects)
    return f"{number_word(count)} {several(workload.subject)} added up" if count > 1 else ""


def failed(run: Run) -> bool:
    """Whether the run is a result of the worst kind (an aborted one is none at all)."""
    return run.state in FAILED and not _went_on_after_kills(run)


def _went_on_after_kills(run: Run) -> bool:
    """Whether programs were killed in it, and that is a figure of its own (lost_programs)."""
    return run.treated and run.state == OOM and lives_on(run)


def counted(run: Run) -> bool:
    """Whether the run is a result: it was done, its limit ended it or it failed."""
    return run.state in (COMPLETED, UNFINISHED, *FAILED)


def unfinished(run: Run) -> bool:
    """Whether the run went on and was not done at its limit: its figures are at least so much."""
    return run.state == UNFINISHED or (_went_on_after_kills(run) and at_its_limit(run))


def whole(run: Run) -> bool:
    """Whether the run is a result to its end: what was counted in it is all."""
    return run.state == COMPLETED


def primary_figure(run: Run) -> float | None:
    """What the verdicts on the run's workload are about, as far as the run got."""
    primary = metrics_of(run.workload)[0]
    if primary.key == STALLED:
        return stalled_seconds(run) if run.subjects else None
    found = measure(run)[primary.key] if primary.key in BY_KEY else run.figures.get(primary.key)
    return found if found is not None and math.isfinite(found) else None


def measure(run: Run, metrics: Sequence[Metric] = METRICS) -> dict[str, float | None]:
    """Each of the metrics, by its key."""
    if failed(run):
        return {metric.key: metric.worst for metric in metrics}
    own: dict[str, float | None] = {
        one.key: run.figures.get(one.key) for one in metrics if one.key not in BY_KEY
    }
    values: dict[str, float | None] = dict.fromkeys(BY_KEY)
    values.update(_silences(run))
    if run.keys and (keys := key_figures(run.keys)):
        values.update(_key_values(keys))
    if beats := deadlines(run, HEARTBEAT):
        values["beats"] = float(beats.missed)
    if chunks := deadlines(run, PLAYER):
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
    values |= own
    if unfinished(run):
        return {key: value if key in GROWING else None for key, value in values.items()}
    return values


def _key_values(keys: KeyFigures) -> dict[str, float | None]:
    shares: dict[str, float | None] = {f"keys-{took:g}": s for took, s in keys.shares.items()}
    return {**shares, "key-worst": keys.worst.late, "key-first": keys.first}


def deadlines(run: Run, name: str) -> Lateness | None:
    """The lateness of a stream; None if it is not known, or lost lines could hide a late one."""
    stream = run.streams.get(name)
    tolerance = SKIP_TOLERANCE if kind(name) == PLAYER else BEAT_TOLERANCE
    if stream is None or (stream.ended and stream.unaccounted > tolerance):
        return None
    return lateness(stream, tolerance)


def lost(run: Run) -> str:
    """Which lines or logs of the subjects are lost, if stalls may be lost with them; else ''."""
    subjects = run.subjects
    if not subjects or len(subjects) < len(run.workload.subjects):
        return f"no log of {a(run.workload.subject)}"
    holes = [
        f"{plain(stream.name, 20)} {stream.unaccounted:.1f} s"
        for stream in subjects
        if stream.unaccounted >= STALL
    ]
    return some(holes, 4) if holes else ""


def _silences(run: Run) -> dict[str, float | None]:
    """The figures of the subjects' gaps; none of them if stalls may be lost.

    A sum over three of four gitk's, or over the lines that could be read, would look like a better
    kernel.
    """
    if lost(run):
        return {}
    subjects = run.subjects
    _, length = silences(subjects)
    total = float(length.sum())
    values: dict[str, float | None] = {
        "stalled": stalled_seconds(run),
        "worst": max(worst(stream) for stream in subjects),
        "elapsed": max(stream.until for stream in subjects),
    }
    if total <= 0:
        return values
    for threshold in ("0.1", "1", "10"):
        values[f"share-{threshold}"] = _percent_in(length, float(threshold))
    values["wait"] = expected_wait(length)
    values["p95"], values["p99"] = (quantile_by_time(length, length, q) for q in (0.95, 0.99))
    found = [window_quantiles(*silences([stream]), WINDOW_QUANTILE) for stream in subjects]
    windows = [one for one in found if one is not None and len(one)]
    if len(windows) == len(subjects):
        values["window-p50"] = float(np.mean([np.median(one) for one in windows]))
        values["window-share"] = float(np.mean([100 * np.mean(one >= STALL) for one in windows]))
    return values


def frozen_share(run: Run) -> float | None:
    """Per cent of the subjects' time in gaps of STALL or more, all together, as far as it ran.

    None if there was no such time, or if lines of a run that ended are lost.
    """
    if not run.subjects or (lost(run) and run.state == COMPLETED):
        return None
    _, length = silences(run.subjects)
    return _percent_in(length, STALL) if length.sum() > 0 else None


def _percent_in(length: Floats, threshold: float) -> float:
    """Of all this time, how much lies in gaps of at least the threshold."""
    return 100 * float(length[length >= threshold].sum()) / float(length.sum())


def silences(streams: list[Stream]) -> tuple[Floats, Floats]:
    """Begin (elapsed) and length of every gap of the streams, the open gaps included; seconds."""
    ends = [np.append(stream.elapsed, stream.until) for stream in streams]
    lengths = [np.append(stream.gap, stream.open_gap) for stream in streams]
    length = np.concatenate(lengths)
    return np.concatenate(ends) - length, length


def expected_wait(length: Floats) -> float:
    """Seconds until the next line, for somebody who looks at a random moment at a random stream.

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
