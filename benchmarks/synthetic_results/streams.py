# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a run or a kernel, made up with numpy; nothing here was measured."""

import hashlib
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.synthetic_results import hostile

Teeth = tuple[tuple[float, float], ...]
STALLS: dict[str, Teeth] = {
    "6.1": ((31, 46.1), (92, 12.0), (130, 4.0)),
    "6.12": ((25, 30.5), (70, 3.0)),
    "7.2": ((22, 34.5),),
    "7.3-rc7": ((20, 8.1), (40, 1.5)),
}
Numbers = NDArray[np.int64]
COLUMNS = Path(__file__).parent / "columns"
LINES = 1650  # of a gitk at the standard size
SAMPLES_A_SECOND = 4
PRESSURE = ("memory_some_us", "memory_full_us", "io_some_us", "io_full_us", "cpu_some_us")
DISK = (
    *("reads", "read_sectors", "read_ms", "writes", "write_sectors", "write_ms"),
    *("in_flight", "io_ms", "queue_ms"),
)


def gitk_gaps(rng: np.random.Generator, stalls: Teeth) -> Numbers:
    """The gaps of LINES lines of about 0.08 s in ms, with stalls where they are asked for."""
    gaps = rng.gamma(8, 0.01, LINES)
    odd = rng.random(LINES) < 0.02
    gaps[odd] += rng.exponential(1 / 1.2, int(odd.sum()))
    for at, length in sorted(stalls):
        place = min(int(np.searchsorted(np.cumsum(gaps), at * 0.6)), LINES - 1)
        gaps[place] += length * rng.uniform(0.8, 1)
    return np.round(gaps * 1000).astype(np.int64)


def log_of(gaps: Numbers, texts: list[str], open_gap: int | None) -> str:
    """A latency log from gaps in ms; open_gap None: no `[end]` line."""
    rows = list(zip(np.cumsum(gaps).tolist(), gaps.tolist(), texts, strict=True))
    if open_gap is not None:
        rows.append((int(gaps.sum()) + open_gap, open_gap, "[end]"))
    return "".join([f"{at / 1000:.3f} {gap / 1000:.3f} {text}\n" for at, gap, text in rows])


def grid(stamps: Numbers, late: Numbers, columns: dict[str, Numbers]) -> str:
    """A *.tsv of whole numbers; stamps and late in ms."""
    rows = np.column_stack(list(columns.values())).tolist()
    times = [f"{at / 1000:.3f}\t{by / 1000:.3f}\t" for at, by in zip(stamps, late, strict=True)]
    lines = ["\t".join(("elapsed_s", "late_s", *columns))]
    lines += [when + "\t".join(map(str, row)) for when, row in zip(times, rows, strict=True)]
    return "\n".join(lines) + "\n"


def columns_of(name: str) -> list[str]:
    """The counters of a real kernel's table, in its order."""
    lines = (COLUMNS / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def streams(
    rng: np.random.Generator, label: str, hung: bool, is_hostile: bool
) -> tuple[dict[str, str], list[tuple[int, int]], int]:
    """Latency logs of four gitk's, heartbeat and player; (begin, end) of their stalls; the end; ms.

    hung: silent after two thirds, and never ended.
    """
    kernel = next((k for k in sorted(STALLS, key=len, reverse=True) if label.startswith(k)), "7.2")
    # A variant of a kernel is 0.6 to 1.6 times as bad, always the same.
    scale = 1 if label in STALLS else 0.6 + zlib.crc32(label.encode("utf-8", "replace")) % 100 / 100
    teeth = tuple((at, length * scale) for at, length in STALLS[kernel])
    logs: dict[str, str] = {}
    stalled: list[tuple[int, int]] = []
    end = 0
    for n in range(1, 5):
        gaps = gitk_gaps(rng, teeth)
        if hung:
            gaps = gaps[: 900 + 20 * n]
        texts = [f"pass 1 commits {line * 100}" for line in range(1, len(gaps) + 1)]
        if is_hostile:
            texts[5] = hostile.LOG_TEXT
        logs[f"latency-gitk-{n}.log"] = log_of(gaps, texts, None if hung else 50)
        ends = np.cumsum(gaps)
        stalled += [(int(ends[i] - gaps[i]), int(ends[i])) for i in np.flatnonzero(gaps > 5000)]
        end = max(end, int(ends[-1]))
    end += 45_000 if hung else 0
    for name, word in (("heartbeat", "beat"), ("player", "chunk")):
        due = np.arange(100, end + 1, 100)
        late = np.zeros_like(due)
        for begin, over in stalled[:3]:
            until = begin + 1000 + (over - begin) // 9
            inside = (begin + 1000 < due) & (due < until)
            late[inside] = until - due[inside]
        at = np.maximum.accumulate(due + late)
        texts = [f"{word} {n} late {by / 1000:.3f}" for n, by in enumerate(late.tolist(), 1)]
        logs[f"latency-{name}.log"] = log_of(np.diff(at, prepend=0), texts, None if hung else 0)
    return logs, stalled, end


def tables(
    rng: np.random.Generator, end: int, stalled: list[tuple[int, int]], all_counters: bool
) -> dict[str, str]:
    """The sampled counters: those that the figures need, or all that a real kernel has."""
    stamps = np.arange(0, end, 1000 // SAMPLES_A_SECOND)
    late = np.round(rng.exponential(2.5, len(stamps))).astype(np.int64)
    busy = np.zeros(len(stamps), dtype=np.bool_)
    for begin, over in stalled:
        busy |= (begin < stamps) & (stamps < over)

    def grows(often: int, seldom: int) -> Numbers:
        return 100 + np.cumsum(rng.integers(0, np.where(busy, often, seldom)))

    vmstat = {
        "nr_writeback": rng.integers(0, np.where(busy, 4000, 90)),
        "pswpin": grows(900, 60),
        "pswpout": grows(700, 40),
        "pgpgin": grows(9000, 900),
        "pgpgout": grows(6000, 600),
    }
    psi = {name: grows(250_000, 30_000) for name in PRESSURE}
    psi["memory_full_us"] = grows(200_000, 9_000)
    meminfo = {
        "MemFree": rng.integers(18_000, 26_000, len(stamps)),
        "SwapTotal": np.full(len(stamps), 2097152),
        "SwapFree": 2097152 - (900_000 * np.minimum(1, stamps / end)).astype(np.int64),
    }
    found = {"vmstat": vmstat, "meminfo": meminfo}
    if not all_counters:
        psi = {name: psi[name] for name in PRESSURE[:2]}
    else:
        devices = [
            f"{device}_{what}" for device in ("disk", "fs", "swap", "crypt") for what in DISK
        ]
        found["diskstats"] = {name: grows(400, 30) for name in devices}
        for table, known in (("vmstat", vmstat), ("meminfo", meminfo)):
            found[table] = {name: known.get(name, grows(300, 9)) for name in columns_of(table)}
            for name in columns_of(table)[::2]:  # as in life: half of them never move
                if name not in known:
                    found[table][name] = np.zeros_like(stamps)
    found["psi"] = psi
    return {f"{name}.tsv": grid(stamps, late, columns) for name, columns in found.items()}


def kern_log(whole: bool, is_hostile: bool) -> str:
    """A kernel's log with one page allocation failure; whole: as long as a real one."""
    text = "[    0.000000] <5> Linux version\n"
    if whole:
        text += "".join(
            f"[    {n / 100:.6f}] <6> pci 0000:00:{n % 32:02x}.0: BAR {n}: assigned\n"
            for n in range(400)
        )
    text += "[   50.100000] <4> gitk: page allocation failure: order:2, mode:0x820(GFP_ATOMIC)\n"
    return text + (hostile.KERN_LINES if is_hostile else "")


def config(label: str, whole: bool, is_hostile: bool = False) -> str:
    """A kernel's .config; two labels' differ in a few lines."""
    lines = ["# Linux/x86 Kernel Configuration (synthetic)"]
    lines += [f"CONFIG_SYNTHETIC_{n}={'ym'[n % 2]}" for n in range(8000 if whole else 40)]
    kernel = label.split("-", 1)[0]
    lines += [
        f'CONFIG_LOCALVERSION="-{hashlib.sha256(label.encode("utf-8", "replace")).hexdigest()[:8]}"'
    ]
    lines += ["CONFIG_LRU_GEN=y" if kernel != "6.1" else "# CONFIG_LRU_GEN is not set"]
    lines += [f"CONFIG_HZ={1000 if kernel.startswith('7') else 250}"]
    return "\n".join(lines) + "\n" + (hostile.CONFIG if is_hostile else "")
