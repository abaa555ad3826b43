# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes each metric of a run (docs/explain/verdicts.md): the suite's and the workload's.

None means not available, never zero. A run that failed (`failed`) has infinity, the worst rank, for
every metric that the user feels; for the other metrics (traffic, counts) it has None, because they
would cover a part of a run only. A run that was not done at its limit (`unfinished`) has only the
figures that grow while a run goes on: they are lower bounds (`Metric.growing`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from analysis.figures import counters
from analysis.figures.failed_allocations import RunFailures, look
from analysis.figures.gaps import (
    expected_wait,
    percent_in,
    quantile_by_time,
    silences,
    window_quantiles,
)
from analysis.figures.keys import IDLE_S, KeyFigures, key_figures
from analysis.figures.lost_programs import at_its_limit, lives_on
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    PACED,
    SKIP_TOLERANCE,
    Lateness,
    kind,
    lateness,
    stalled_seconds,
    worst,
)
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import first_names, number_word, plural_subject, safe_line, with_article
from contract.run_files import COMPLETED, FAILED, HEARTBEAT, OOM, PLAYER, UNFINISHED
from contract.workload import STALLED, Better, Description

ELAPSED = "elapsed"
EVERY_BEAT = "share-0.1"  # every gap of a stream that prints on a clock is this long
SLOW_KEYS, SLOW_WINDOW_KEYS = "keys-0.1", "window-keys-0.1"  # at terminals, in windows
WINDOW_QUANTILE = 0.95
T = TypeVar("T")


class Measured:
    """A run with values that several metrics share, computed when first needed."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @cached_property
    def complete(self) -> bool:
        """Whether no stall can be lost: a sum with lost stalls would look like a better kernel."""
        return not lost(self.run)

    @cached_property
    def gaps(self) -> Floats | None:
        """The lengths (s) of the subjects' gaps; None if some may be lost or their sum is 0."""
        lengths = silences(self.run.subjects)[1] if self.complete else None
        return None if lengths is None or float(lengths.sum()) <= 0 else lengths

    @cached_property
    def windows(self) -> list[Floats] | None:
        """window_quantiles (s) of each subject; None if those of any subject are not known."""
        subjects = self.run.subjects if self.gaps is not None else []
        windows = [window_quantiles(*silences([stream]), WINDOW_QUANTILE) for stream in subjects]
        known = [quantiles for quantiles in windows if quantiles is not None and len(quantiles)]
        return known if known and len(known) == len(subjects) else None

    @cached_property
    def keys(self) -> KeyFigures | None:
        """The figures of the keys at terminals; None if no key was pressed."""
        return key_figures(self.run.keys) if self.run.keys else None

    @cached_property
    def window_keys(self) -> KeyFigures | None:
        """The figures of the keys in windows; None if no key was pressed."""
        return key_figures(self.run.window_keys) if self.run.window_keys else None

    @cached_property
    def failures(self) -> RunFailures:
        """The page allocations that failed."""
        return look(self.run)


Value = Callable[[Measured], float | None]


@dataclass(frozen=True)
class Metric:
    """A metric: its key, title and unit, and how many decimals are printed.

    `value` computes the figure, in `unit`, of a run that did not fail; by default it is the
    workload's figure with this key. `row`: name and unit in a table, if not title and unit.
    """

    key: str
    title: str
    unit: str
    digits: int
    value: Value | None = field(default=None, compare=False, repr=False)
    row: str = ""
    primary: bool = False
    felt: bool = True  # the user feels it: a failed run has the worst value (else: None)
    better: Better = "lower"
    growing: bool = False  # never falls while a run goes on: a lower bound if cut at the limit

    @property
    def name(self) -> str:
        """The name with the unit."""
        return self.row or f"{self.title} {self.unit}".strip()

    @property
    def sign(self) -> int:
        """1 if higher values are worse, -1 if higher values are better."""
        return 1 if self.better == "lower" else -1

    @property
    def worst(self) -> float | None:
        """The value of a run that failed: infinity with the sign; None if not felt."""
        return self.sign * math.inf if self.felt else None

    def of(self, measured: Measured) -> float | None:
        """The figure of this run, in `unit`; None if it is not available."""
        return self.value(measured) if self.value else measured.run.figures.get(self.key)


_growing = partial(Metric, growing=True)  # for sums, counts and maxima


def _known(found: T | None, value: Callable[[T], float | None]) -> float | None:
    """value(found); None if `found` or the value is None."""
    figure = None if found is None else value(found)
    return None if figure is None else float(figure)


def _of_run(value: Callable[[Run], float]) -> Value:
    """The value of the run; None if stalls may be lost."""
    return lambda measured: value(measured.run) if measured.complete else None


def _of_gaps(value: Callable[[Floats], float]) -> Value:
    return lambda measured: _known(measured.gaps, value)


def _of_windows(value: Callable[[Floats], Any]) -> Value:
    """The mean over the subjects of the value of their windows."""
    return lambda measured: _known(
        measured.windows, lambda windows: float(np.mean([*map(value, windows)]))
    )


def _late(stream: str, value: Callable[[Lateness], float]) -> Value:
    return lambda measured: _known(deadlines(measured.run, stream), value)


def _share(gap: str) -> Metric:
    value = _of_gaps(lambda gaps: percent_in(gaps, float(gap)))
    words = f"of time in gaps >= {gap} s"
    return Metric(f"share-{gap}", f"share {words}", "%", 1, value, f"% {words}")


def _quantile(key: str, q: float) -> Metric:
    value = _of_gaps(lambda gaps: quantile_by_time(gaps, gaps, q))
    return Metric(key, f"{key} gap by time", "s", 2, value)


def _elapsed(title: str, row: str) -> Metric:
    value = _of_run(lambda run: max(stream.until for stream in run.subjects))
    return _growing(ELAPSED, title, "s", 1, value, row)


def _until_done(subject: str) -> Metric:
    them = plural_subject(subject)
    return _elapsed(f"elapsed until all {them} are done", f"all {them} done after s")


def _moved(key: str, title: str, counter: counters.Counter) -> Metric:
    def value(one: Measured) -> float | None:
        return counters.moved_mib(one.run, counter)

    return _growing(key, title, "MiB", 0, value, felt=False)


def _failures(key: str, title: str, count: Callable[[RunFailures], int | None]) -> Metric:
    return _growing(
        key, title, "", 0, lambda measured: _known(measured.failures, count), felt=False
    )


def _keys(
    prefix: str, where: str, figures: Callable[[Measured], KeyFigures | None]
) -> tuple[Metric, ...]:
    """The metrics of the keys at terminals, or in windows."""

    def of(value: Callable[[KeyFigures], float | None]) -> Value:
        return lambda measured: _known(figures(measured), value)

    def share(took: str) -> Metric:
        words = f"of keys{where} that took >= {took} s"
        value = of(lambda keys: keys.shares[float(took)])
        return Metric(f"{prefix}keys-{took}", f"share {words}", "%", 1, value, f"% {words}")

    def worst_key(keys: KeyFigures) -> float:
        return keys.worst.late

    first = f"first key{where} after {IDLE_S:.0f} s of idleness, mean"
    return (
        *map(share, ("0.1", "1", "10")),
        _growing(f"{prefix}key-worst", f"worst key{where}", "s", 1, of(worst_key)),
        Metric(f"{prefix}key-first", first, "s", 2, of(lambda keys: keys.first)),
    )


# Streams that print on a clock are never done: the end of the workload ends them.
UNTIL_ENDED = _elapsed("elapsed until the workload ended", "workload ended after s")


METRICS = (
    _growing(
        *(STALLED, "stalled seconds per run", "s", 1, _of_run(stalled_seconds)),
        row="stalled s per run",
        primary=True,
    ),
    _growing("worst", "worst stall", "s", 1, _of_run(lambda run: max(map(worst, run.subjects)))),
    _share("0.1"),
    _share("1"),
    _share("10"),
    Metric(
        *("wait", "expected wait at a random moment", "s", 2),
        _of_gaps(expected_wait),
        row="wait at a random moment s",
    ),
    _quantile("p95", 0.95),
    _quantile("p99", 0.99),
    Metric(
        *("window-p50", "p95 gap inside 10 s windows: median", "s", 2, _of_windows(np.median)),
        row="10 s windows' p95, median s",
    ),
    Metric(
        *("window-share", "10 s windows with a p95 gap >= 1 s", "%", 1),
        _of_windows(lambda quantiles: 100 * np.mean(quantiles >= STALL)),
        row="% of 10 s windows p95 >= 1 s",
    ),
    _until_done("gitk"),
    *_keys("", "", lambda measured: measured.keys),
    *_keys("window-", " in a window", lambda measured: measured.window_keys),
    _growing("beats", "heartbeat deadlines missed", "", 0, _late(HEARTBEAT, lambda it: it.missed)),
    _growing("skips", "audio skips", "", 0, _late(PLAYER, lambda it: len(it.spans))),
    _growing(
        *("skipped", "audio skips, seconds", "s", 1, _late(PLAYER, lambda it: sum(it.spans))),
        row="audio skips s",
    ),
    _moved("swap-in", "swap in", counters.SWAP_IN),
    _moved("swap-out", "swap out", counters.SWAP_OUT),
    _moved("page-in", "page in", counters.PAGE_IN),
    _moved("page-out", "page out", counters.PAGE_OUT),
    _failures("allocation", "page allocation failures", lambda found: found.logged),
    _failures("unlogged", "allocation failures not logged", lambda found: found.unlogged),
    _failures("echo-lost", "echo replies lost", lambda found: found.echoes_lost),
)
PRIMARY = METRICS[0]
BY_KEY = {metric.key: metric for metric in METRICS}


def metrics_of(workload: Description) -> tuple[Metric, ...]:
    """The metrics of this workload: the primary metric, the workload's own, the suite's.

    If a workload's key is also the suite's, the suite's metric is used. If the workload names a
    primary metric that does not exist, stalled seconds are the primary metric.
    """
    own = [
        Metric(metric.key, metric.title, metric.unit, metric.digits, better=metric.better)
        for metric in workload.figures
        if metric.key not in BY_KEY
    ]
    paced = any(kind(name) in PACED for name in workload.subjects)
    elapsed = UNTIL_ENDED if paced else _until_done(workload.subject)
    suites = [elapsed if metric.key == elapsed.key else metric for metric in METRICS]
    if paced:
        suites.remove(BY_KEY[EVERY_BEAT])
    if words := added_up(workload):
        of_all = f"{PRIMARY.title}, {words}"
        suites[0] = replace(PRIMARY, title=of_all, row=f"stalled s, {words}")
    by_key = {metric.key: replace(metric, primary=False) for metric in (*own, *suites)}
    primary = by_key.pop(workload.primary, None) or by_key.pop(PRIMARY.key)
    return (replace(primary, primary=True), *by_key.values())


def added_up(workload: Description) -> str:
    """What stalled seconds add up: "four gitk's added up"; "" if only one stream counts."""
    count = len(workload.subjects)
    return f"{number_word(count)} {plural_subject(workload.subject)} added up" if count > 1 else ""


def failed(run: Run) -> bool:
    """Whether the run failed, the worst result (an aborted run is no result)."""
    return run.state in FAILED and not _went_on_after_kills(run)


def _went_on_after_kills(run: Run) -> bool:
    """Whether the run went on after OOM kills, which lost_programs counts as a figure."""
    return run.treated and run.state == OOM and lives_on(run)


def counted(run: Run) -> bool:
    """Whether the run is a result: it completed, was ended by its limit, or failed."""
    return run.state in (COMPLETED, UNFINISHED, *FAILED)


def unfinished(run: Run) -> bool:
    """Whether the run was not done at its limit: its figures are lower bounds."""
    return run.state == UNFINISHED or (_went_on_after_kills(run) and at_its_limit(run))


def whole(run: Run) -> bool:
    """Whether the run completed, so that its counts are complete."""
    return run.state == COMPLETED


def primary_figure(run: Run) -> float | None:
    """The figure of the primary metric, in its unit, up to the run's end; None: not available."""
    primary = metrics_of(run.workload)[0]
    if primary.key == STALLED:
        return stalled_seconds(run) if run.subjects else None
    own = primary.key not in BY_KEY  # also of a run that failed
    figure = primary.of(Measured(run)) if own else measure(run, [primary])[primary.key]
    return figure if figure is not None and math.isfinite(figure) else None


def measure(run: Run, metrics: Sequence[Metric] = METRICS) -> dict[str, float | None]:
    """Key -> figure of the run, in the metric's unit; None: not available."""
    if failed(run):
        return {metric.key: metric.worst for metric in metrics}
    measured, cut = Measured(run), unfinished(run)
    return {one.key: one.of(measured) if one.growing or not cut else None for one in metrics}


def deadlines(run: Run, name: str) -> Lateness | None:
    """The lateness of a stream; None if not known, or if a late line may be lost."""
    stream = run.streams.get(name)
    tolerance = SKIP_TOLERANCE if kind(name) == PLAYER else BEAT_TOLERANCE
    if stream is None or (stream.ended and stream.unaccounted > tolerance):
        return None
    return lateness(stream, tolerance)


def lost(run: Run) -> str:
    """Which lines or logs of the subjects are lost, so that stalls may be lost; else ''."""
    subjects = run.subjects
    if not subjects or len(subjects) < len(run.workload.subjects):
        return f"no log of {with_article(run.workload.subject)}"
    holes = [
        f"{safe_line(stream.name, 20)} {stream.unaccounted:.1f} s"
        for stream in subjects
        if stream.unaccounted >= STALL
    ]
    return first_names(holes, 4) if holes else ""


def frozen_share(run: Run) -> float | None:
    """Per cent of the subjects' time, added up, in gaps of at least STALL, up to the run's end.

    None if the subjects took no time, or if lines of a run that completed are lost.
    """
    if not run.subjects or (lost(run) and run.state == COMPLETED):
        return None
    _, length = silences(run.subjects)
    return percent_in(length, STALL) if length.sum() > 0 else None
