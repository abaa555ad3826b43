# SPDX-License-Identifier: GPL-2.0-or-later
"""Make synthetic results as in docs/reference/results-format.md; none is measured.

usage: python3 -m benchmarks.synthetic_results.make DIR [VARIANTS [RUNS]] [--all-counters]
       [--hostile] [--evidence]

With --all-counters they are as large as those of a real campaign: every counter of a real kernel, a
complete .config for each variant, kernel logs of several hundred lines. With --evidence each run
has the files of the evidence observer.
"""

import argparse
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from benchmarks.synthetic_results import hostile
from benchmarks.synthetic_results.evidence import evidence
from benchmarks.synthetic_results.streams import STALLS, config, kern_log, streams, tables

MGLRU = "/sys/kernel/mm/lru_gen/enabled"
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
    """The content of a meta.json."""
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
        "swap": {"kind": "disk", "device": "/dev/crypt-volume/crypt-swap", "size_kib": 2097152},
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
    """Write a run's folder with these files and, unless state is None, a status.json."""
    run.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (run / name).write_bytes(content.encode() if isinstance(content, str) else content)
    if state is not None:
        word = {"format": 1, "state": state, "why": "all gitk's done", "elapsed_s": 190.0, **status}
        (run / "status.json").write_text(json.dumps(word))
    return run


@dataclass(frozen=True)
class RunProperties:
    """The properties of a run to make; hung: it is silent after two thirds and never ends."""

    label: str
    seed: int
    hung: bool = False
    all_counters: bool = False
    hostile: bool = False
    evidence: bool = False
    order: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def make_run(run: Path, label: str, seed: int, *, hung: bool = False) -> Path:
    """Write a complete synthetic run of four gitk's, heartbeat and player, with counters."""
    return write_synthetic(run, RunProperties(label, seed, hung=hung))


def write_synthetic(run: Path, properties: RunProperties) -> Path:
    """Write a complete synthetic run."""
    rng = np.random.default_rng(properties.seed)
    logs, stalled, end = streams(rng, properties.label, properties.hung, properties.hostile)
    files: dict[str, str | bytes] = {**logs}
    if properties.evidence:
        files |= evidence(properties.label, logs, end / 1000, properties.seed)
    files |= tables(rng, end, stalled, properties.all_counters)
    files["kern.log"] = kern_log(properties.all_counters, properties.hostile)
    facts = {"host": {"cpu_model": "Synthetic CPU", "busy_by_others": 0.05}, "knobs": []}
    files["meta.json"] = json.dumps(
        meta(properties.label, **({} if properties.order is None else {"order": properties.order}))
        | facts
        | properties.facts
        | (hostile.FACTS if properties.hostile else {})
    )
    why = hostile.WHY if properties.hostile else "every gitk read the whole history"
    if properties.hung:
        why = "the machine stopped sending 45 s after its last line"
        return write_run(run, files, "hung", why=why, elapsed_s=end / 1000)
    return write_run(run, files, why=why, elapsed_s=end / 1000)


def labels_of(variants: int) -> list[str]:
    """Four kernels, their variants, and from the thirteenth on names like 6.1-v017."""
    kernels = list(STALLS)
    more = [f"{kernels[n % 4]}-v{n + 1:03d}" for n in range(len(STALLS) + len(EXTRA), variants)]
    return [*STALLS, *EXTRA, *more][:variants]


def make_campaign(
    folder: Path,
    variants: int,
    runs: int = 1,
    *,
    all_counters: bool = False,
    is_hostile: bool = False,
    with_evidence: bool = False,
) -> Path:
    """Write a campaign with its plan; with three variants or more, the last one's last run hangs.

    is_hostile: labels and all else that a stranger can write are those of hostile.py.
    """
    labels = labels_of(variants)
    shown = {label: label for label in labels}
    if is_hostile:
        shown = {hostile.folder_name(label): label for label in hostile.LABELS[:variants]}
        labels = list(shown)
    plan: dict[str, Any] = {
        "format": 1,
        "baseline": labels[0],
        "margin": 0.1,
        "alpha": 0.05,
        "runs": runs,
        "command": f"./run_test.sh --kernel debian:6.1 --runs {runs}",
        "suite": "synthetic",
        "parameters": meta("")["parameters"] | {"step": 12288},
        "machine": {
            **{"accel": "tcg", "machine": "host", "clock": "host", "cpus": 2, "evidence": False},
            **{"disk_iops": 400, "disk_bps": 0, "timeout": 1800},
        },
        "variant": [],
        "run": [],
    }
    kernels: dict[str, dict[str, str]] = {}
    for label in labels:
        text = config(label, all_counters, is_hostile)
        (folder / label).mkdir(parents=True, exist_ok=True)
        (folder / label / "config").write_text(text, encoding="utf-8", newline="\n")
        kernels[label] = {
            "release": f"{label}-cloud-amd64",
            "version": "#1 SMP Debian (2026-11-01)",
            "spec": f"debian:{label.split('-')[0]}",
            "config_digest": hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
        }
        knobs = {MGLRU: "0"} if label.endswith("mglru-off") else {}
        plan["variant"].append(
            {
                "label": label,
                "kernel": f"debian:{label.split('-')[0]}",
                "append": "",
                "knobs": knobs,
            }
        )
    for order in range(1, len(labels) * runs + 1):
        n, index = 1 + (order - 1) // len(labels), (order - 1) % len(labels)
        label = labels[index]
        date = f"2026-11-{1 + order // 480:02d}T{order // 20 % 24:02d}:{order % 20 * 3:02d}:00+0000"
        plan["run"].append(
            {"variant": label, "number": n, "order": order, "date": date, "suite": "synthetic"}
        )
        facts: dict[str, Any] = {"kernel": kernels[label]}
        if label.endswith("mglru-off"):
            facts["knobs"] = [
                {"path": MGLRU, "asked": "0", "before": "0x0007", "read_back": "0x0000"}
            ]
        properties = RunProperties(
            shown[label],
            100 * index + n,
            hung=variants > 2 and label == labels[-1] and n == runs,
            all_counters=all_counters,
            hostile=is_hostile,
            evidence=with_evidence,
            order=order,
            facts=facts,
        )
        write_synthetic(folder / label / str(n), properties)
    (folder / "plan.toml").write_text(tomli_w.dumps(plan), encoding="utf-8", newline="\n")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.synthetic_results.make", description=__doc__
    )
    parser.add_argument("dir", type=Path)
    parser.add_argument("variants", type=int, nargs="?", default=3)
    parser.add_argument("runs", type=int, nargs="?", default=1)
    parser.add_argument("--all-counters", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--evidence", action="store_true")
    options = parser.parse_args()
    make_campaign(
        options.dir,
        options.variants,
        options.runs,
        all_counters=options.all_counters,
        is_hostile=options.hostile,
        with_evidence=options.evidence,
    )
