# SPDX-License-Identifier: GPL-2.0-or-later
"""What meta.json says of a run's machine, in words; what it does not say is an empty text."""

from collections.abc import Iterable

from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import NOT_AVAILABLE, plain
from analysis.text.layout import entry


def known(run: Run, template: str, *keys: str, limit: int = 60) -> str:
    """The template with the fact in it, cut to limit characters."""
    value = run.fact(*keys)
    return "" if value is None else template.format(plain(value, limit))


def size(run: Run, per_mib: float, what: str, *keys: str) -> str:
    """'2,048 MiB of swap' from a fact of which per_mib units are one MiB."""
    found = number(run.fact(*keys))
    return "" if found is None else f"{found / per_mib:,.0f} MiB{what}"


def listed(name: str, parts: Iterable[str]) -> list[str]:
    """The lines of one entry: the parts that are known."""
    return entry(name, ", ".join(part for part in parts if part) or NOT_AVAILABLE)


def disk(run: Run, limit: int = 60) -> list[str]:
    """The parts of the entry on the disk and what stands on it."""
    return [
        size(run, 2**20, "", "disk", "size_bytes"),
        known(run, "{}", "disk", "model", limit=limit),
        known(run, "cache {}", "disk", "cache", limit=limit),
        known(run, "at most {} IOPS", "disk", "iops", limit=limit),
        known(run, "at most {} bytes/s", "disk", "bps", limit=limit),
        known(run, "crypt {}", "crypt", limit=limit),
        known(run, "{}", "fs", limit=limit),
        size(run, 1024, " of swap", "swap", "size_kib"),
    ]


def workload(run: Run) -> list[str]:
    """The parts of the entry on the workload: its parameters."""
    parameters = run.fact("parameters")
    pairs = parameters.items() if isinstance(parameters, dict) else ()
    return [f"{plain(key, 30)} {plain(value, 60)}" for key, value in pairs]
