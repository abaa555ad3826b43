# SPDX-License-Identifier: GPL-2.0-or-later
"""What meta.json says about a run's machine, in words; empty where it says nothing."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.reading.facts import swap_kind
from analysis.reading.latency_log import number
from analysis.reading.load import Campaign, Run
from analysis.reading.settings import as_set, changed, model_of
from analysis.reading.words import NOT_AVAILABLE, first_names, safe_line
from analysis.text.layout import entry
from contract import remedy, values
from contract.option_table import ROWS
from contract.options import flag
from contract.swap import DISK, NONE, ZRAM
from contract.workload import DESKTOP, named

SHOWN = 6  # variants that are named for each kind of swap


def known(run: Run, template: str, *keys: str, limit: int = 60) -> str:
    """The template with the fact in it, cut to `limit` characters; empty if it is not known."""
    value = run.fact(*keys)
    return "" if value is None else template.format(safe_line(value, limit))


def size(run: Run, per_mib: float, what: str, *keys: str) -> str:
    """'2,048 MiB of swap' from a fact in units of which `per_mib` are one MiB; empty if unknown."""
    amount = number(run.fact(*keys))
    return "" if amount is None else f"{amount / per_mib:,.0f} MiB{what}"


def cpus(run: Run) -> str:
    """'2 CPUs'."""
    count = number(run.fact("cpus"))
    return "" if count is None else f"{count:.0f} CPU{'s' if count != 1 else ''}"


def listed(name: str, parts: Iterable[str]) -> list[str]:
    """The lines of one entry: the parts that are not empty, with commas."""
    return entry(name, ", ".join(part for part in parts if part) or NOT_AVAILABLE)


def reference(run: Run, limit: int = 60) -> str:
    """The modelled machine and whose clock timed it, in one line; empty if none was modelled.

    'laptop: 1 CPU of 500 MIPS, rotating disk of 57 accesses/s and 58 MB/s, 32 queued; the guest's
    clock'. With the host's clock the reason for it follows.
    """
    name = known(run, "{}", "machine", "name", limit=limit)
    if not name:
        return ""
    changed = run.fact("machine", "changed")
    if isinstance(changed, list) and changed:
        name += f" with other {safe_line(', '.join(map(str, changed)), limit)}"
    parts = [cpus(run), known(run, "of {} MIPS", "machine", "mips", limit=limit)]
    words = [" ".join(part for part in parts if part)]
    rate, bps = (number(run.fact("disk", key)) for key in ("iops", "bps"))
    if (kind := known(run, "{} disk", "disk", "kind", limit=limit)) and rate and bps:
        at_once = number(run.fact("disk", "parallel")) or 1
        several = f", {at_once:.0f} at a time," if at_once > 1 else ""
        words.append(f"{kind} of {rate:,.0f} accesses/s{several} and {bps / 1e6:,.0f} MB/s")
        words.append(known(run, "{} queued", "disk", "depth", limit=limit))
    else:
        words.append(_no_model(rate, bps))
    clock = known(run, "the {}'s clock", "clock", "kind", limit=limit)
    if run.fact("clock", "kind") == "host":
        clock += known(run, " ({})", "clock", "why", limit=200)
    return f"{name}: {', '.join(word for word in words if word)}; {clock or NOT_AVAILABLE}"


def _no_model(rate: float | None, bps: float | None) -> str:
    limits = [f"{rate:,.0f} IOPS"] if rate else []
    limits += [f"{bps / 1e6:,.0f} MB/s"] if bps else []
    throttled = f", throttled by QEMU to {' and '.join(limits)}" if limits else ""
    return f"the host's disk{throttled}"


def references(runs: Iterable[Run]) -> list[str]:
    """A line for each machine modelled in these runs; comparable runs have a single machine.

    Runs that ended before they reported their CPUs are left out, unless all did.
    """
    all_runs = list(runs)
    known_runs = [run for run in all_runs if cpus(run)] or all_runs
    return list(dict.fromkeys(line for run in known_runs if (line := reference(run))))


def disk(run: Run, limit: int = 80) -> list[str]:
    """The parts of the entry on the disk: size, model, cache, limits, encryption, file system."""
    modelled = run.fact("disk", "kind") is not None
    limits = [
        known(run, "at most {} IOPS", "disk", "iops", limit=limit),
        known(run, "at most {} bytes/s", "disk", "bps", limit=limit),
    ]
    return [
        size(run, 2**20, "", "disk", "size_bytes"),
        known(run, "{}", "disk", "model", limit=limit),
        known(run, "cache {}", "disk", "cache", limit=limit),
        *([] if modelled else limits),
        known(run, "crypt {}", "crypt", limit=limit),
        known(run, "{}", "fs", limit=limit),
    ]


def swap(run: Run, limit: int = 60) -> str:
    """'2,048 MiB of swap', '111 MiB of swap on zram (lz4)', 'no swap'; empty if unknown."""
    kind = swap_kind(run)
    amount = size(run, 1024, " of swap", "swap", "size_kib")
    if kind == NONE:
        return "no swap"
    if kind == DISK or not amount:
        return amount
    details = [known(run, "{}", "swap", "algorithm", limit=limit)]
    details.append(known(run, "at most {} % of the memory", "swap", "pool", limit=limit))
    text = ", ".join(detail for detail in details if detail) or NOT_AVAILABLE
    return f"{amount} {'on zram' if kind == ZRAM else 'behind zswap'} ({text})"


def swaps(campaign: Campaign, labels: Mapping[str, str]) -> str:
    """The variants by their kind of swap; empty if all swap to disks.

    '111 MiB of swap on zram (lz4): a, b; no swap: c'
    """
    if all(swap_kind(run) == DISK for run in campaign.runs):
        return ""
    who: dict[str, dict[str, None]] = {}
    for variant, runs in campaign.variants().items():
        # A run that was ended before its swap was made says nothing of it.
        kinds = [kind for kind in map(swap, runs) if kind] or [NOT_AVAILABLE]
        for kind in kinds:
            who.setdefault(kind, {})[safe_line(labels[variant], 60)] = None
    return "; ".join(_with_variants(who))


def _with_variants(who: Mapping[str, Mapping[str, None]]) -> list[str]:
    return [f"{what}: {first_names(list(names), SHOWN)}" for what, names in who.items()]


def daemons(campaign: Campaign, labels: Mapping[str, str]) -> str:
    """'earlyoom 1.7-1: a; nohang 0.2.0-1: b', by remedy's package; empty if no run says it."""
    who: dict[str, dict[str, None]] = {}
    runs = campaign.variants()
    for variant in campaign.plan.variants:
        treated = remedy.of_variant(variant)
        packages = treated.packages if treated else ()
        recorded = [run.fact("packages") for run in runs.get(variant.label, ())]
        for name, versions in itertools.product(packages, recorded):
            version = versions.get(name) if isinstance(versions, dict) else None
            if isinstance(version, str):
                daemon = f"{name} {safe_line(version, 60)}"
                who.setdefault(daemon, {})[safe_line(labels[variant.label], 60)] = None
    more = f"; and {len(who) - SHOWN:,} more" if len(who) > SHOWN else ""
    return "; ".join(_with_variants(who)[:SHOWN]) + more


def differing(campaign: Campaign, labels: Mapping[str, str]) -> Iterator[str]:
    """Sentences on the modelled machines, and on swaps and daemons if variants differ in them."""
    for modelled in references(campaign.runs):
        yield f"Machine: {modelled}."
    if words := swaps(campaign, labels):
        yield f"Swap: {words}."
    if words := daemons(campaign, labels):
        yield f"Daemons: {words}."


def memory(runs: Sequence[Run]) -> str:
    """'230 MiB of memory (profile quick; the laptop has 512), MemTotal 196 to 198 MiB'.

    The VM's memory, who set it, and MemTotal of its kernels, as far as the runs say.
    """
    given = number(runs[0].fact("parameters", "memory"))
    totals = [kib / 1024 for run in runs if (kib := number(run.fact("mem_total_kib"))) is not None]
    parts = [f"{given / 2**20:,.0f} MiB of memory{_set_by(runs[0], given)}"] if given else []
    if totals:
        ends = dict.fromkeys(f"{mib:,.0f}" for mib in (min(totals), max(totals)))
        parts.append(f"MemTotal {' to '.join(ends)} MiB")
    return ", ".join(parts)


def _set_by(run: Run, given: float) -> str:
    """' (profile quick; the laptop has 512)', ' (as the laptop)', ' (the workload's own)'."""
    profile, name = run.fact("parameters", "profile"), run.fact("machine", "name")
    own = model_of(name).get("memory")
    of_profile = as_set(profile, "").get("memory")
    if given == of_profile:
        machines = f"; the {name} has {own >> 20:,}" if own and own != given else ""
        return f" (profile {profile}{machines})"
    if given == own:
        return f" (as the {name})"
    of_workload = run.fact("memory_of_workload")
    if given == of_workload:
        of_screen = run.fact("parameters", "screen") is True
        return " (with what --screen needs)" if of_screen else " (the workload's own)"
    recorded = named(run.meta) == DESKTOP or of_workload is not None
    return " (--memory)" if recorded else " (--memory, or the workload's own)"


def workload(run: Run) -> list[str]:
    """The parts of the entry on the workload: what it is, its profile, and other settings."""
    recorded = run.fact("parameters")
    parameters = dict(recorded) if isinstance(recorded, dict) else {}
    usual = as_set(parameters.get("profile"), run.fact("machine", "name"))
    own = changed(parameters, usual)
    own.pop("memory", None)  # see memory()
    profile = parameters.get("profile")
    return [
        *([run.workload.summary] if run.workload.summary else []),
        *([f"profile {safe_line(profile, 30)}"] if profile is not None else []),
        *(_setting(key, value) for key, value in own.items() if key != "profile"),
    ]


def _setting(key: str, value: object) -> str:
    """'--commits 6000', '--no-crypt'; the name and value of what is not an option."""
    if key not in ROWS:
        return f"{safe_line(key, 30)} {safe_line(value, 60)}"
    if isinstance(value, bool):
        return flag(key)
    is_size = ROWS[key].read in (values.size, values.memory)
    return f"{flag(key)} {safe_line(values.sized(value) if is_size else value, 60)}"
