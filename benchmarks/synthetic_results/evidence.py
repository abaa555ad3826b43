# SPDX-License-Identifier: GPL-2.0-or-later
"""The evidence files of a synthetic run; nothing here was measured."""

import zlib

import numpy as np

FAULT = "handle_mm_fault <- exc_page_fault <- asm_exc_page_fault"
SWAP_IN = f"io_schedule <- folio_wait_bit_common <- do_swap_page <- __handle_mm_fault <- {FAULT}"
FILE_READ = f"io_schedule <- folio_wait_bit_common <- filemap_fault <- __do_fault <- {FAULT}"
PIPE_READ = "pipe_read <- vfs_read <- ksys_read <- do_syscall_64 <- entry_SYSCALL_64_after_hwframe"
STALL, STEP = 1.0, 0.25  # s
CLOCKS = (
    *("cpu_us", "rq_us", "blkio_us", "swapin_us", "freepages_us", "thrashing_us", "compact_us"),
    *("wpcopy_us", "irq_us", "majflt", "minflt"),
)
TRACE = (
    *("direct_reclaims", "direct_reclaim_us", "direct_reclaim_pages", "kswapd_wakes"),
    *("kswapd_awake_us", "throttled_writeback_n", "throttled_writeback_us", "disk_reads"),
    *("disk_read_us", "disk_writes", "disk_write_us", "disk_busy_us", "crypt_reads"),
    *("crypt_read_us", "crypt_writes", "crypt_write_us", "crypt_busy_us", "crypt_alone_us"),
)
Spans = list[tuple[float, float]]


def spans(log: str, end_s: float) -> Spans:
    """(begin, end) of the stalls in a latency log, the one included that no line ended."""
    pairs = [tuple(map(float, line.split(" ", 2)[:2])) for line in log.splitlines()]
    last = pairs[-1][0]
    still = [(last, end_s)] if "[end]" not in log and end_s - last >= STALL else []
    return [(at - gap, at) for at, gap in pairs if gap >= STALL] + still


def rates(label: str, rng: np.random.Generator) -> dict[str, float]:
    """Of a stall the share of each clock: its label's own, a little different in each run."""
    own = np.random.default_rng(zlib.crc32(label.encode("utf-8", "replace")))
    parts = own.dirichlet([3, 4, 1, 2]) * rng.uniform(0.9, 1.1, 4)
    parts *= 0.97 / parts.sum()
    names = ("rq_us", "swapin_us", "freepages_us", "blkio_us")
    return dict(zip(names, parts.tolist(), strict=True))


def evidence(label: str, logs: dict[str, str], end_s: float, seed: int) -> dict[str, str]:
    """tasks.tsv, blocked.tsv and trace.tsv of a run with these latency logs."""
    rng = np.random.default_rng(seed)
    share = rates(label, rng)
    gitks = {f"gitk-{n}": spans(logs[f"latency-gitk-{n}.log"], end_s) for n in range(1, 5)}
    stamps = np.arange(0, end_s + STEP, STEP)
    rows: list[tuple[float, str]] = []
    for n, (stream, found) in enumerate(gitks.items()):
        silent = sum(
            (np.clip(stamps - begin, 0, end - begin) for begin, end in found),
            start=np.zeros_like(stamps),
        )
        clocks = {name: silent * share.get(name, 0.0) for name in CLOCKS}
        clocks["cpu_us"] = 0.9 * (stamps - silent)
        if "swapin_us" in share:  # the kernel counts a swap-in as block IO too
            clocks["blkio_us"] = clocks["blkio_us"] + clocks["swapin_us"]
        for pid, comm, of in (
            (300 + n, "python3", clocks),
            (400 + n, "git", {name: 0.1 * values for name, values in clocks.items()}),
        ):
            cells = np.column_stack([np.rint(1e6 * of[name]) for name in CLOCKS]).astype(np.int64)
            for stamp, row in zip(stamps.tolist(), cells.tolist(), strict=True):
                words = "\t".join(map(str, row))
                rows.append((stamp, f"{stamp:.3f}\t0.001\t{stream}\t{pid}\t{comm}\tD\t{words}"))
    head = "\t".join(("elapsed_s", "late_s", "stream", "pid", "comm", "state", *CLOCKS))
    rows.sort(key=lambda one: one[0])
    tasks = "\n".join([head, *(row for _, row in rows)]) + "\n"
    return {"tasks.tsv": tasks, "blocked.tsv": _blocked(gitks), "trace.tsv": _trace(stamps, rng)}


def _blocked(gitks: dict[str, Spans]) -> str:
    rows = ["elapsed_s\tlate_s\tstream\tsilent_s\tpid\tcomm\tstate\twchan\tmajflt\tminflt\tstack"]
    looks = [
        (begin + silent, stream, silent, n)
        for n, (stream, found) in enumerate(gitks.items())
        for begin, end in found
        for silent in np.arange(0.5, end - begin, 0.5).tolist()
    ]
    for place, (at, stream, silent, n) in enumerate(sorted(looks)):
        stack = FILE_READ if place % 5 == 0 else SWAP_IN
        for pid, comm, state, of in (
            (300 + n, "python3", "D", stack),
            (400 + n, "git", "S", PIPE_READ),
        ):
            rows.append(
                f"{at:.3f}\t0.001\t{stream}\t{silent:.3f}\t{pid}\t{comm}\t{state}\t0\t1\t1\t{of}"
            )
    return "\n".join(rows) + "\n"


def _trace(stamps: np.ndarray, rng: np.random.Generator) -> str:
    head = "\t".join(("elapsed_s", "late_s", *TRACE))
    most = np.array([80_000 if name.endswith("_us") else 40 for name in TRACE])
    steps = rng.integers(0, most, (len(stamps), len(TRACE)))
    sums = np.cumsum(steps, axis=0).tolist()
    rows = [
        f"{stamp:.3f}\t0.001\t" + "\t".join(map(str, row))
        for stamp, row in zip(stamps.tolist(), sums, strict=True)
    ]
    return "\n".join([head, *rows]) + "\n"
