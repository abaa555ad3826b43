# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts page allocations that failed: logged and not logged.

The kernel's log leaves out allocations with __GFP_NOWARN, and those that its rate limit drops.
allocfail.tsv has all failures, as the kernel counted them itself (kprobe on warn_alloc).
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from weakref import WeakKeyDictionary

from analysis.figures.echo import echoes
from analysis.kernel_log import kinds
from analysis.kernel_log.open_record import wanted_by
from analysis.kernel_log.records import KernelLog, attach, count_failures, of_lines
from analysis.reading.evidence_tables import Failure, read_failures
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import first_names, plural, safe_line

NOWARN = "__GFP_NOWARN"
# A function of the stack -> what it uses instead when its allocation fails: nothing is lost.
FALL_BACKS = {
    "mempool_alloc": "the pool",
    "mempool_alloc_noprof": "the pool",
    # 7.2 tries the slab first, outside the pool.
    "bio_alloc_bioset": "the pool",
    "crypt_alloc_buffer": "single pages",
    "__filemap_get_folio": "a smaller folio",
    "__filemap_get_folio_mpol": "a smaller folio",
    "allocate_slab": "a smaller slab",
    "new_slab": "a smaller slab",
    "skb_page_frag_refill": "single pages",
    "__page_frag_cache_refill": "single pages",
    "kvmalloc_node": "vmalloc",
    "__kvmalloc_node_noprof": "vmalloc",
    "do_huge_pmd_anonymous_page": "small pages",
    "vma_alloc_anon_folio_pmd": "small pages",
    "alloc_anon_folio": "small pages",
    "page_cache_ra_order": "small pages",
    "page_cache_ra_unbounded": "no readahead",
    "__do_page_cache_readahead": "no readahead",
}
# These have a fallback only when they ask for more than the minimum that they need.
OF_LARGE_ORDERS = (
    *("allocate_slab", "new_slab", "crypt_alloc_buffer"),
    *("__filemap_get_folio", "__filemap_get_folio_mpol"),
    *("skb_page_frag_refill", "__page_frag_cache_refill", "kvmalloc_node"),
    *("__kvmalloc_node_noprof", "do_huge_pmd_anonymous_page", "vma_alloc_anon_folio_pmd"),
    "alloc_anon_folio",
)
ADDRESS = re.compile(r"(0[xX])?[0-9a-fA-F]+|\?*")
STAMP = re.compile(r"\[ *(\d+\.\d+)\]")
SLACK_S = 1.0  # seconds between printk's clock and CLOCK_MONOTONIC
SHOWN = 3  # kinds of failures that a line of text lists
TIMES = 20  # moments of each kind that allocation-failures.log lists
_known: "WeakKeyDictionary[Run, RunFailures]" = WeakKeyDictionary()


@dataclass(frozen=True)
class Silent:
    """A kind of failure: `count` of the `happened` failures are not in the log.

    `order`: 2**order pages; `gfp`: the kernel's bit mask; `stack`: innermost function first.
    """

    order: int
    gfp: int
    flags: str  # names, or hex if the names are not known
    caller: str
    stack: tuple[str, ...]
    happened: int
    count: int
    fall_back: str | None  # what the caller uses instead; None: no fallback is known
    rows: tuple[Failure, ...] = ()
    nowarn: bool = True  # __GFP_NOWARN is set (newer kernels' GFP_NOWAIT contains it)

    def words(self) -> str:
        """For a list: '50 order:2 GFP_ATOMIC|__GFP_NOWARN in __alloc_skb'."""
        text = f"{self.count:,} order:{self.order} {self.flags} in {safe_line(self.caller, 60)}"
        return text if self.nowarn else f"{text} (the log's rate limit)"


@dataclass(frozen=True)
class RunFailures:
    """The failed allocations of a run, as counts; None: not available.

    `happened`: all failures; `silent`: kinds that are not all in the log; `unknown`: failures that
    were counted, but with no record of what they were.
    """

    log: KernelLog | None
    happened: int | None = None
    silent: list[Silent] = field(default_factory=list)
    unknown: int = 0
    echoes_lost: int | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def logged(self) -> int | None:
        """The number of failures in the kernel's log; None: no log."""
        return None if self.log is None else self.log.page_allocation_failures

    @property
    def unlogged(self) -> int | None:
        """The number of failures that are not in the log and have no known fallback.

        None if they were not counted, or if no function of any stack has a name: then all of them
        could have a fallback.
        """
        if self.happened is None or self.nameless:
            return None
        return self.unknown + sum(kind.count for kind in self.silent if not kind.fall_back)

    @property
    def nameless(self) -> bool:
        """Whether there are stacks, but without any name (kptr_restrict, no kallsyms)."""
        frames = [frame for kind in self.silent for frame in kind.stack]
        return bool(self.silent) and not any(map(_is_name, frames))

    def words(self) -> str:
        """The failures in a line of text: counts and kinds."""
        known = "not available" if self.logged is None else f"{self.logged:,}"
        least = self.log is not None and "page_allocation_failures" in self.log.at_least
        parts = [f"{'at least ' if least else ''}{known} in the kernel's log"]
        bare = [kind for kind in self.silent if not kind.fall_back]
        if self.unlogged is not None:
            text = f"{self.unlogged:,} that it does not log"
            listed = [kind.words() for kind in _by_caller(bare)]
            if self.unknown:
                listed.append(f"{self.unknown:,} of which no more is known")
            if len(listed) > SHOWN:
                listed[SHOWN:] = [f"and {plural(len(listed) - SHOWN, 'more kind')}"]
            parts.append(text + (f": {', '.join(listed)}" if listed else ""))
        elif self.nameless:
            total = self.unknown + sum(kind.count for kind in self.silent)
            parts.append(f"{total:,} that it does not log (no stack has names: some may fall back)")
        text = ", ".join(parts)
        harmless = [kind for kind in self.silent if kind.fall_back]
        if harmless:
            total = sum(kind.count for kind in harmless)
            names = dict.fromkeys(
                f"{safe_line(kind.caller, 60)}: {kind.fall_back}" for kind in _by_caller(harmless)
            )
            text += f"; {total:,} more with a fallback ({first_names(list(names), SHOWN)})"
        if self.echoes_lost is not None:
            noun = "echo reply" if self.echoes_lost == 1 else "echo replies"
            text += f"; {self.echoes_lost:,} {noun} lost"
        return text


def look(run: Run) -> RunFailures:
    """Combine the kernel's log with allocfail.tsv; computed once for each run."""
    if run not in _known:
        _known[run] = _look(run)
    return _known[run]


def keep(run: Run, failures: RunFailures) -> None:
    """Keep the result that another process computed for this run."""
    _known[run] = failures


def _look(run: Run) -> RunFailures:
    of_key: Counter[tuple[int, int]] = Counter()
    log = count_failures(_lines(run), of_key) if run.has_kern_log else None
    logged = log.page_allocation_failures if log else 0
    lost = echoes(run)
    rows, problems = run.evidence.table(read_failures)
    trace = run.evidence.trace
    values = trace.get("alloc_failures") if trace is not None else None
    # The sum starts with the observer: failures before its first sample are not the workload's.
    known = None if values is None else values[values == values]
    counted = None if known is None else int(known.max() - known[0])
    attributed = sum(row.count for row in rows or ())
    happened = None if rows is None and counted is None else max(counted or 0, attributed)
    return RunFailures(
        log=log,
        happened=happened,
        silent=list(_silent(rows or [], of_key, _names(run))),
        unknown=0 if happened is None else _unknown(happened, attributed, logged, of_key, rows),
        echoes_lost=lost.lost if lost else None,
        problems=problems,
    )


def attachment(run: Run, failures: RunFailures) -> Iterator[str]:
    """The text of allocation-failures.log, in pieces: a log can be larger than memory."""
    yield f"page allocation failures: {failures.words()}\n"
    if failures.happened is None:
        yield "Those that the kernel does not log were not counted in this run.\n"
    for kind in sorted(failures.silent, key=lambda kind: kind.fall_back is not None):
        count = (
            f"{kind.count:,}"
            if kind.count == kind.happened
            else f"{kind.count:,} of {kind.happened:,}"
        )
        yield f"\n=== not in the kernel's log: {count} order:{kind.order} "
        yield f"mode:{kind.gfp:#x}({kind.flags}), in {safe_line(kind.caller, 100)}"
        yield f"; falls back to {kind.fall_back}\n" if kind.fall_back else "\n"
        for row in kind.rows[:TIMES]:
            yield f"{row.count:>7} at {row.at:.3f} s: {safe_line(row.comm, 40)} [{row.pid}]\n"
        if more := kind.rows[TIMES:]:
            until = max(row.at for row in more)
            yield f"{sum(row.count for row in more):>7} more, until {until:.3f} s\n"
        yield "".join(f" {safe_line(frame, 200)}\n" for frame in kind.stack) or " (no stack)\n"
    if failures.unknown:
        yield f"\n=== not in the kernel's log: {failures.unknown:,} of which no more is known\n"
    for record in of_lines(_lines(run)) if failures.logged else ():
        if record.kind == kinds.FAILURE:
            yield "\n" + attach([record])


def _lines(run: Run) -> Iterator[str]:
    """The kernel's log; if the machine was not booted for the run, from the workload's start on."""
    begin = number(run.meta.get("t0"))
    if run.fact("accelerator") != "none" or begin is None:
        yield from run.kern_lines()
        return
    ours = False
    for line in run.kern_lines():
        if stamp := STAMP.match(line):
            ours = float(stamp[1]) >= begin - SLACK_S
        if ours:
            yield line


def _silent(
    rows: Iterable[Failure],
    of_key: Mapping[tuple[int, int], int],
    names: Mapping[str, int],
) -> Iterator[Silent]:
    """The kinds with more failures than the log holds, most frequent first."""
    alike: dict[tuple[int, int, tuple[str, ...]], list[Failure]] = {}
    for row in rows:
        alike.setdefault((row.order, row.gfp, row.stack), []).append(row)
    left = Counter(of_key)
    silent = []
    for (order, mask, stack), failures in alike.items():
        happened = sum(row.count for row in failures)
        shown = min(left[order, mask], happened)
        left[order, mask] -= shown
        if happened > shown:
            flags = flag_names(mask, names) or f"{mask:#x}"
            caller = wanted_by(stack) or "?"
            fall_back = _fall_back(stack, order)
            nowarn = NOWARN in flags or bool(mask & names.get(NOWARN, 0))
            rest = (happened, happened - shown, fall_back, tuple(failures), nowarn)
            silent.append(Silent(order, mask, flags, caller, stack, *rest))
    yield from sorted(silent, key=lambda kind: (-kind.count, kind.order, kind.flags, kind.caller))


def _unknown(
    happened: int,
    attributed: int,
    logged: int,
    of_key: Mapping[tuple[int, int], int],
    rows: list[Failure] | None,
) -> int:
    """The number of failures that neither a row nor a record of the log describes."""
    keys = {(row.order, row.gfp) for row in rows or ()}
    elsewhere = logged - sum(n for key, n in of_key.items() if key in keys)
    return max(0, happened - attributed - elsewhere)


def _is_name(frame: str) -> bool:
    return not ADDRESS.fullmatch(frame)


@lru_cache(1024)
def _fall_back(stack: tuple[str, ...], order: int) -> str | None:
    for frame in stack:
        instead = FALL_BACKS.get(frame)
        if instead and (order > 0 or frame not in OF_LARGE_ORDERS):
            return instead
    return None


def flag_names(mask: int, names: Mapping[str, int]) -> str | None:
    """'GFP_ATOMIC|__GFP_NOWARN', by the kernel's own table; None if a bit is not in the table."""
    if not names:
        return None
    flags = []
    # Names of several bits come first, as in the kernel's own output.
    for name, bits in sorted(names.items(), key=lambda item: (-item[1].bit_count(), item[0])):
        if bits and mask & bits == bits:
            flags.append(name)
            mask &= ~bits
    return None if mask or not flags else "|".join(flags)


def _names(run: Run) -> dict[str, int]:
    table = run.fact("evidence", "gfp_flags")
    pairs = table.items() if isinstance(table, dict) else ()
    return {
        safe_line(name, 40): bits
        for name, bits in pairs
        if type(bits) is int and 0 < bits < 1 << 64
    }


def _by_caller(each: Iterable[Silent]) -> list[Silent]:
    """The kinds merged by (order, flags, caller), most frequent first."""
    sums: dict[tuple[int, str, str], Silent] = {}
    for kind in each:
        key = (kind.order, kind.flags, kind.caller)
        before = sums.get(key)
        count = kind.count + (before.count if before else 0)
        sums[key] = replace(kind, count=count, rows=())
    return sorted(sums.values(), key=lambda kind: -kind.count)
