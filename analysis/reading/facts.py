# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts in which runs must agree before they are compared.

docs/explain/verdicts.md
"""

import json
from collections.abc import Iterable
from typing import Any

from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import first_names, plural, safe_line
from contract import key_facts
from contract.key_facts import CLOCK, HOSTS_CPU, SWAP_SIZE, WORKLOAD
from contract.swap import DISK, KINDS, ZSWAP
from contract.workload import DESKTOP, STALLED, is_described

EVERYWHERE = tuple(fact.keys for fact in key_facts.EVERYWHERE)
REMEDY = (("remedy", "daemon"), ("remedy", "slice"))  # its swap and knobs belong to the variant
ON_A_HOST = (HOSTS_CPU, ("cpu_model",))  # differ among hosts, on the hosts' clocks
IN_A_VARIANT = (
    *(("kernel", key) for key in ("release", "image_digest", "config_digest")),
    ("knobs",),
    ("append",),
    *(("swap", key) for key in ("kind", "algorithm", "pool")),
    *REMEDY,
)
# Shares by which sizes may differ: kernels leave a few MiB more or less of the same memory, and
# zram is a share of the memory, which differs by a page from boot to boot.
TOLERANCE = {("mem_total_kib",): 0.1, SWAP_SIZE: 0.01}
NAMED = 3  # runs that are named for each value
BUSY = 0.1  # share of the host's CPU time taken by others above which a line reports it
UNKNOWN = object()
# The value of a fact that a run does not record: the desktop, on the host's clock, without a disk
# model, with swap on the disk only, without a remedy.
UNSAID: dict[tuple[str, ...], Any] = {
    **dict(zip(WORKLOAD, (DESKTOP, STALLED, ""), strict=True)),
    CLOCK: "host",
    ("machine", "mips"): None,
    **{("swap", "algorithm"): None, ("swap", "pool"): None},
    **dict.fromkeys(REMEDY),
    **{("disk", key): None for key in ("kind", "parallel", "depth", "queues")},
}


def differences(runs: list[Run]) -> list[str]:
    """One line for each key fact in which the runs differ, with both values and their runs."""
    lines: list[str] = []
    for keys in (*EVERYWHERE, *_parameters(runs)):
        relevant = [run for run in runs if keys != SWAP_SIZE or on_disk(run)]
        for group in _by_block(relevant) if keys in ON_A_HOST else [relevant]:
            lines += _difference(group, keys)
    by_variant: dict[str, list[Run]] = {}
    for run in runs:
        by_variant.setdefault(run.variant, []).append(run)
    for members in by_variant.values():
        for keys in IN_A_VARIANT:
            lines += _difference(members, keys)
        lines += _difference([run for run in members if not on_disk(run)], SWAP_SIZE)
    return lines


def own_settings(one: Run, other: Run) -> list[str]:
    """The settings, other than the kernel, that may differ between variants and do differ here."""
    keys = [keys for keys in (*IN_A_VARIANT, SWAP_SIZE) if keys[0] != "kernel"]
    values = {fact: (_value(one, fact), _value(other, fact)) for fact in keys}
    apart = [fact[0] for fact, (a, b) in values.items() if UNKNOWN not in (a, b) and a != b]
    return list(dict.fromkeys("command line" if name == "append" else name for name in apart))


def unknown(runs: list[Run]) -> list[str]:
    """One line that names the facts that only some of the runs record; empty if there are none."""
    facts = (*EVERYWHERE, *_parameters(runs), *IN_A_VARIANT)
    counts = {keys: sum(_value(run, keys) is UNKNOWN for run in runs) for keys in facts}
    names = [
        f"{safe_line('.'.join(keys), 60)} ({plural(count, 'run')})"
        for keys, count in counts.items()
        if 0 < count < len(runs)
    ]
    return [f"Not known of every run, so not compared there: {', '.join(names)}."] if names else []


def busy_by_others(run: Run) -> float | None:
    """Share (0 to 1) of the host's CPU time that others took during the run; None: not known."""
    return number(run.fact("host", "busy_by_others"))


def swap_kind(run: Run) -> str:
    """Where the run swapped to (contract.swap); the disk if the run does not record it."""
    kind = run.fact("swap", "kind")
    return kind if kind in KINDS else DISK


def on_disk(run: Run) -> bool:
    """Whether swap on the disk was on, with or without zswap."""
    return swap_kind(run) in (DISK, ZSWAP)


def own_clock(run: Run) -> bool:
    """Whether the guest had its own clock: then neither the host nor its load matters."""
    return bool(run.fact(*CLOCK) == "guest")


def block(run: Run) -> str:
    """The host that a run's figures depend on, or ""; runs of different blocks are not compared."""
    return "" if own_clock(run) else run.host


def several_hosts(runs: list[Run]) -> list[str]:
    """One line if the figures depend on several hosts, for callers that cannot compare per host."""
    names = {group[0].host: [_name(run) for run in group] for group in _by_block(runs)}
    if len(names) < 2:
        return []
    first, second = list(names.values())[:2]
    return [
        f"the host differs: one in {first_names(first, NAMED)}, another in "
        f"{first_names(second, NAMED)}"
    ]


def _by_block(runs: list[Run]) -> list[list[Run]]:
    blocks: dict[str, list[Run]] = {}
    for run in runs:
        blocks.setdefault(block(run), []).append(run)
    return list(blocks.values())


def busy_host(runs: list[Run]) -> list[str]:
    """One line that names the runs during which the host was busy otherwise, or none."""
    busy = [(run, busy_by_others(run)) for run in runs if not own_clock(run)]
    names = [f"{_name(run)} ({100 * share:.0f} %)" for run, share in busy if share and share > BUSY]
    if not names:
        return []
    return [
        f"Others took more than {100 * BUSY:.0f} % of the host's CPU time: "
        f"{first_names(names, NAMED)}."
    ]


def _parameters(runs: Iterable[Run]) -> list[tuple[str, ...]]:
    names: dict[str, None] = {}
    for run in runs:
        parameters = run.fact("parameters")
        names.update(dict.fromkeys(parameters if isinstance(parameters, dict) else ()))
    return [("parameters", name) for name in names]


def _value(run: Run, keys: tuple[str, ...]) -> Any:
    """The fact; UNKNOWN if the run does not record it, None if it records that there is none."""
    if keys == HOSTS_CPU and own_clock(run):
        return UNKNOWN
    holder = run.fact(*keys[:-1]) if len(keys) > 1 else run.meta
    if keys in WORKLOAD and not is_described(run.meta):
        return UNKNOWN
    began = keys[0] != "swap" or isinstance(holder, dict)
    if not isinstance(holder, dict) or keys[-1] not in holder:
        return UNSAID.get(keys, UNKNOWN) if began else UNKNOWN
    value = holder[keys[-1]]
    if value is None:
        return None if keys[0] in ("disk", "parameters") else UNKNOWN
    if keys == ("knobs",) and isinstance(value, list):
        return [_knob(knob) for knob in value]
    return value


def _knob(knob: Any) -> Any:
    """What was set, without the previous value, which may differ from boot to boot."""
    if not isinstance(knob, dict):
        return knob
    return [knob.get("path"), knob.get("asked"), knob.get("read_back")]


def _difference(runs: list[Run], keys: tuple[str, ...]) -> list[str]:
    known = [(value, run) for run in runs if (value := _value(run, keys)) is not UNKNOWN]
    if keys in TOLERANCE:
        sizes = [(size, run) for value, run in known if (size := number(value)) is not None]
        least = min(sizes, key=lambda pair: pair[0], default=None)
        most = max(sizes, key=lambda pair: pair[0], default=None)
        if least is None or most is None or most[0] <= least[0] * (1 + TOLERANCE[keys]):
            return []
        groups = {f"{least[0]:.0f}": [_name(least[1])], f"{most[0]:.0f}": [_name(most[1])]}
    else:
        groups = {}
        for value, run in known:
            groups.setdefault(_text(value), []).append(_name(run))
    if len(groups) < 2:
        return []
    values = [
        f"{safe_line(value, 60)} in {first_names(names, NAMED)}" for value, names in groups.items()
    ]
    more = f" and {len(values) - 2} more values" if len(values) > 2 else ""
    return [f"{safe_line('.'.join(keys), 60)} differs: {values[0]}, {values[1]}{more}"]


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _name(run: Run) -> str:
    return f"{safe_line(run.variant, 40)}/{run.number}"
