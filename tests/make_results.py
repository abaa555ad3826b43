# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: synthetic results in the form of docs/FORMAT.md. Nothing here was measured.

usage: python3 -m tests.make_results DIR [VARIANTS [RUNS]]
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

Teeth = tuple[tuple[float, float], ...]
STALLS: dict[str, Teeth] = {
    "6.1": ((31, 46.1), (92, 12.0), (130, 4.0)),
    "6.12": ((25, 30.5), (70, 3.0)),
    "7.2": ((22, 34.5),),
    "7.3-rc7": ((20, 8.1), (40, 1.5)),
}
EXTRA = tuple(f"{kernel}-{knob}" for knob in ("mglru-off", "revert-8aa7e847") for kernel in STALLS)


def line_log(gaps: list[tuple[float, str]], open_gap: float | None, begin: float = 0.0) -> str:
    """A latency log from (gap, line) pairs; open_gap None: no `[end]` line."""
    now = begin
    rows = []
    for gap, text in gaps:
        now += gap
        rows.append(f"{now:.3f} {gap:.3f} {text}\n")
    if open_gap is not None:
        rows.append(f"{now + open_gap:.3f} {open_gap:.3f} [end]\n")
    return "".join(rows)


def table(columns: dict[str, list[float | int | None]]) -> str:
    """A *.tsv from its columns; None is an empty cell."""
    rows = ["\t".join(columns)]
    rows += [
        "\t".join("" if cell is None else str(cell) for cell in row)
        for row in zip(*columns.values(), strict=True)
    ]
    return "\n".join(rows) + "\n"


def meta(label: str, **facts: Any) -> dict[str, Any]:
    """A meta.json's content."""
    return {
        "format": 1,
        "label": label,
        "kernel": {"release": f"{label}-cloud-amd64", "version": "#1 SMP Debian (2026-11-01)"},
        "mem_total_kib": 498_000,
        "cpus": 2,
        "cpu_model": "QEMU TCG CPU version 2.5+",
        "accelerator": "tcg",
        "machine": {"qemu": "7.2.22", "type": "q35", "cpu": "max"},
        "disk": {"size_bytes": 8 * 2**30, "cache": "none", "iops": 400, "bps": None},
        "swap": {"device": "/dev/crypt-volume/crypt-swap", "size_kib": 2097152},
        "crypt": "aes-xts-plain64",
        "fs": "ext4",
        "parameters": {"profile": "standard", "gitk": 4, "commits": 165000, "every": 100},
        "t0": 12.5,
        "observers": [
            {"name": "recorder", "cpu_s": 0.4, "elapsed_s": 190.0, "locked_kib": 9000},
            {"name": "sampler", "cpu_s": 0.6, "elapsed_s": 190.0, "locked_kib": 8000},
        ],
        **facts,
    }


def write_run(
    run: Path,
    files: dict[str, str | bytes],
    state: str | None = "completed",
    **status: Any,
) -> Path:
    """A run's folder with these files and, unless state is None, a status.json."""
    run.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (run / name).write_bytes(content.encode() if isinstance(content, str) else content)
    if state is not None:
        word = {"format": 1, "state": state, "why": "all gitk's done", "elapsed_s": 190.0, **status}
        (run / "status.json").write_text(json.dumps(word))
    return run


def gitk_gaps(rng: random.Random, stalls: Teeth) -> list[tuple[float, str]]:
    """1,650 lines of about 0.08 s, with stalls where they are asked for."""
    now, todo, gaps = 0.0, sorted(stalls), []
    for n in range(1, 1651):
        gap = rng.gammavariate(8, 0.01)
        if todo and now > todo[0][0] * 0.6:
            gap += todo.pop(0)[1] * rng.uniform(0.8, 1)
        elif rng.random() < 0.02:
            gap += rng.expovariate(1.2)
        now += gap
        gaps.append((gap, f"pass 1 commits {n * 100}"))
    return gaps


def make_run(run: Path, label: str, seed: int, *, hung: bool = False) -> Path:
    """A whole synthetic run; hung: it goes silent after two thirds and never ends."""
    rng = random.Random(seed)
    kernel = next((k for k in sorted(STALLS, key=len, reverse=True) if label.startswith(k)), "7.2")
    files: dict[str, str | bytes] = {"meta.json": json.dumps(meta(label))}
    end = 0.0
    stalled: list[tuple[float, float]] = []
    for n in range(1, 5):
        gaps = gitk_gaps(rng, STALLS[kernel])
        if hung:
            gaps = gaps[: 900 + 20 * n]
        files[f"latency-gitk-{n}.log"] = line_log(gaps, None if hung else 0.05)
        now = 0.0
        for gap, _ in gaps:
            stalled += [(now, now + gap)] if gap > 5 else []
            now += gap
        end = max(end, now)
    end += 45 if hung else 0
    for name, word in (("heartbeat", "beat"), ("player", "chunk")):
        rows, previous = [], 0.0
        for n in range(1, int(end * 10) + 1):
            due, late = n / 10, 0.0
            if any(a + 1 < due < a + 1 + (b - a) / 9 for a, b in stalled[:3]):
                late = next(a + 1 + (b - a) / 9 for a, b in stalled[:3] if due > a) - due
            at = max(previous, due + max(late, 0))
            rows.append((at - previous, f"{word} {n} late {max(late, 0):.3f}"))
            previous = at
        files[f"latency-{name}.log"] = line_log(rows, None if hung else 0.0)
    stamps = [round(i / 4, 3) for i in range(int(end * 4))]
    totals = dict.fromkeys(("pswpin", "pswpout", "pgpgin", "pgpgout", "some", "full"), 100)
    columns: dict[str, list[float | int | None]] = {name: [] for name in (*totals, "nr_writeback")}
    free: list[float | int | None] = []
    swap_free: list[float | int | None] = []
    for at in stamps:
        busy = any(a < at < b for a, b in stalled)
        totals["pswpin"] += rng.randrange(900 if busy else 60)
        totals["pswpout"] += rng.randrange(700 if busy else 40)
        totals["pgpgin"] += rng.randrange(9000 if busy else 900)
        totals["pgpgout"] += rng.randrange(6000 if busy else 600)
        totals["some"] += rng.randrange(250_000 if busy else 30_000)
        totals["full"] += rng.randrange(200_000 if busy else 9_000)
        for name, total in totals.items():
            columns[name].append(total)
        columns["nr_writeback"].append(rng.randrange(4000 if busy else 90))
        free.append(18_000 + rng.randrange(8000))
        swap_free.append(2097152 - int(900_000 * min(1, at / end)))
    lags: list[float | int | None] = [round(rng.expovariate(400), 3) for _ in stamps]
    head: dict[str, list[float | int | None]] = {"elapsed_s": [*stamps], "late_s": lags}
    some, full = columns.pop("some"), columns.pop("full")
    files["vmstat.tsv"] = table({**head, **columns})
    files["psi.tsv"] = table({**head, "memory_some_us": some, "memory_full_us": full})
    total_swap: list[float | int | None] = [2097152 for _ in stamps]
    files["meminfo.tsv"] = table(
        {**head, "MemFree": free, "SwapTotal": total_swap, "SwapFree": swap_free}
    )
    files["kern.log"] = (
        "[    0.000000] <5> Linux version\n"
        "[   50.1] <4> gitk: page allocation failure: order:2, mode:0x820(GFP_ATOMIC)\n"
    )
    if hung:
        why = "the machine stopped sending 45 s after its last line"
        return write_run(run, files, "hung", why=why, elapsed_s=round(end, 3))
    return write_run(run, files, elapsed_s=round(end, 3))


def make_campaign(folder: Path, variants: int, runs: int = 1) -> Path:
    """A campaign of up to twelve variants; from three on, the last variant's last run hangs."""
    labels = (*STALLS, *EXTRA)[:variants]
    for index, label in enumerate(labels):
        for n in range(1, runs + 1):
            hung = variants > 2 and label == labels[-1] and n == runs
            make_run(folder / label / str(n), label, 100 * index + n, hung=hung)
    return folder


if __name__ == "__main__":
    make_campaign(Path(sys.argv[1]), *(int(one) for one in sys.argv[2:]))
