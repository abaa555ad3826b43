# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of report.txt that quote results: the worst stalls, kernels, machine, run ends."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator

from analysis.figures.stalls import Stall, stalls
from analysis.reading.files import read_lines
from analysis.reading.kernel_configs import differences
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.streams import STALL, Stream
from analysis.reading.words import plural, safe_line, seconds
from analysis.text.layout import WIDTH, entry, indented, paragraph
from analysis.text.machine import (
    cpus,
    daemons,
    disk,
    known,
    listed,
    memory,
    reference,
    swap,
    swaps,
    workload,
)
from analysis.verdicts.compared import Compared
from contract.run_files import COMPLETED, latency_log

PLACES = 2  # stalls listed per variant
LIMIT = 80  # characters of a fact
KERNELS = 12  # kernels described individually
CONFIGS = 4  # configs whose differences are listed
OPTIONS = 16  # options listed per config
LAST_LINES = 6  # lines of a failed run's kernel log
ENDS = 10  # runs whose end is described individually
RECORD = re.compile(r"\[ *([0-9]{1,9}\.[0-9]{1,9})\]")
# Options about memory, swap, disks and scheduling are listed first.
TELLING = re.compile(
    r"CONFIG_(?:LRU|SWAP|Z?SWAP|ZRAM|PREEMPT|HZ|MEMCG|TRANSPARENT|COMPACTION|PSI|BLK_|IOSCHED|MQ_|"
    r"BFQ|DM_|CRYPTO_XTS|CRYPTO_AES|SCHED|NUMA|KSM|MIGRATION|CMA|WRITEBACK|EXT4|DEBUG_PAGE|SLUB|"
    r"PAGE_|LOCALVERSION)"
)
Clean = Callable[[str], str]


def places(
    compared: Compared, shown: list[str], held: frozenset[tuple[str, int]], clean: Clean
) -> Iterator[str]:
    """The worst stalls of each variant: run, time, file and line; the kernel's messages then."""
    by_variant = compared.campaign.variants()
    for variant in shown:
        silences = [
            (stall, run, stream)
            for run in by_variant[variant]
            for stream in run.subjects
            for stall in stalls(stream, STALL)
        ]
        silences.sort(key=lambda silence: (-silence[0].length, silence[1].number, silence[0].begin))
        yield safe_line(compared.labels[variant], 60)
        if not silences:
            yield f"  no {compared.campaign.subject} was silent for {STALL:.0f} s or more"
        for stall, run, stream in silences[:PLACES]:
            yield from _place(stall, run, stream, (run.variant, run.number) in held, clean)


def _place(stall: Stall, run: Run, stream: Stream, held: bool, clean: Clean) -> Iterator[str]:
    text = f"run {run.number}: {safe_line(stream.name, 24)} silent for {seconds(stall.length)}"
    text += f" from {seconds(stall.begin)} on"
    yield from indented(text + (", no line ended it" if stall.open else ""), 2)
    if not held:
        yield "    (this run is not in the bundle)"
        return
    folder = f"{safe_line(run.variant, 100)}/{run.number}"
    line = _line_of(stream, stall)
    path = f"{folder}/{latency_log(safe_line(stream.name, 100))}"
    yield from indented(path + (f", line {line}" if line else ""), 4)
    messages = _said(run, stall)
    if messages is not None:
        first, last, text = messages
        where = f"{folder}/kern.log"
        if first is None:
            yield from indented(f"{where} has no message of this stall", 4)
        else:
            lines = f"line {first}" if first == last else f"lines {first} to {last}"
            yield from indented(f"{where}, {lines}:", 4)
            yield "      " + safe_line(clean(text), WIDTH - 6)


def _line_of(stream: Stream, stall: Stall) -> int | None:
    """The number of the line that ended the stall; of the last line, if none did."""
    if stream.log is None:
        return None
    last = 0
    wanted = f"{stall.end:.3f} {stall.length:.3f} "
    for last, line in enumerate(read_lines(stream.log), 1):
        if line.startswith(wanted):
            return last
    return last if stall.open and last else None


def _said(run: Run, stall: Stall) -> tuple[int | None, int, str] | None:
    """Numbers of the first and last line of kern.log during the stall, and the first line's text.

    None if unknown; the first number is None if there is no such line. Assumes that the kernel's
    clock and the run's clock agree, which they do within a second.
    """
    t0 = number(run.fact("t0"))
    if t0 is None or not run.has_kern_log:
        return None
    first, last, text = None, 0, ""
    for index, line in enumerate(run.kern_lines(), 1):
        record = RECORD.match(line)
        if record and t0 + stall.begin <= float(record[1]) <= t0 + stall.end:
            first, last, text = (index, index, line) if first is None else (first, index, text)
    return first, last, text


def _more(left: int, noun: str, where: str) -> Iterator[str]:
    if left > 0:
        yield f"  and {plural(left, f'more {noun}')}: see {where}"


def kernels(compared: Compared) -> Iterator[str]:
    """Version and config of each kernel; the differences of the configs from the baseline's."""
    by_variant = compared.campaign.variants()
    for variant in compared.variants[:KERNELS]:
        run = by_variant[variant][0]
        yield safe_line(compared.labels[variant], 60)
        release, version = (
            safe_line(run.fact("kernel", key), 100) for key in ("release", "version")
        )
        yield from indented(f"{release}, {version}", 2)
        yield f"  config {safe_line(run.fact('kernel', 'config_digest'), 64)}"
    yield from _more(len(compared.variants) - KERNELS, "variant", "the runs' meta.json")
    yield from _config_differences(compared)


def _config_differences(compared: Compared) -> Iterator[str]:
    configs = compared.campaign.configs
    base = configs.get(compared.baseline)
    if base is None:
        return
    listed = 0
    for variant in compared.variants[1:]:
        if variant not in configs or configs[variant] == base:
            continue
        listed += 1
        if listed > CONFIGS:
            yield ""
            yield from paragraph("Further configs differ as well: see <variant>/config.")
            return
        yield ""
        yield from _difference(
            safe_line(compared.labels[compared.baseline], 40),
            safe_line(compared.labels[variant], 40),
            differences(base, configs[variant]),
        )


def _difference(base: str, name: str, changed: list[tuple[str, str, str]]) -> list[str]:
    lines = paragraph(
        f"Configs: {plural(len(changed), 'option')} of {name} differ from {base}'s"
        + (f"; {OPTIONS} of them:" if len(changed) > OPTIONS else ":")
    )
    telling = sorted(changed, key=lambda change: TELLING.match(change[0]) is None)
    for option, *values in sorted(telling[:OPTIONS]):
        was, now = (safe_line(value, 20) for value in values)
        lines.append(f"  {safe_line(option, 40)}: {was} -> {now}"[:WIDTH])
    return lines


def machine(compared: Compared) -> Iterator[str]:
    """The machine and the workload of the first run; compared runs share them."""
    runs = compared.campaign.runs
    run = runs[0]
    parts = [
        cpus(run),
        known(run, "{}", "cpu_model", limit=LIMIT),
        memory(runs),
        known(run, "accelerator {}", "accelerator", limit=LIMIT),
        known(run, "QEMU {}", "machine", "qemu", limit=LIMIT),
        known(run, "{}", "machine", "type", limit=LIMIT),
        known(run, "-cpu {}", "machine", "cpu", limit=LIMIT),
    ]
    yield from listed("machine", parts)
    if modelled := reference(run, LIMIT):
        yield from entry("modelled", modelled)
    yield from listed("host", [known(run, "{}", "host", "cpu_model", limit=LIMIT)])
    own_swaps = swaps(compared.campaign, compared.labels)
    yield from listed("disk", [*disk(run, LIMIT), *([] if own_swaps else [swap(run, LIMIT)])])
    if own_swaps:
        yield from entry("swap", own_swaps)
    if own_daemons := daemons(compared.campaign, compared.labels):
        yield from entry("daemons", own_daemons)
    yield from listed("workload", workload(run))
    lines = Counter(safe_line(other.fact("cmdline"), 2000) for other in runs)
    for line, count in lines.most_common(4):
        whose = "" if len(lines) == 1 else f" ({plural(count, 'run')})"
        yield from entry("command line", line + whose)


def ends(compared: Compared, clean: Clean) -> Iterator[str]:
    """How the runs ended; for incomplete runs the reason and the last kernel messages."""
    runs = compared.campaign.runs
    states = Counter(safe_line(run.state, 20) for run in runs)
    yield from paragraph(", ".join(f"{state}: {count}" for state, count in states.items()) + ".")
    others = [run for run in runs if run.state != COMPLETED]
    for run in others[:ENDS]:
        elapsed = number(run.status.get("elapsed_s"))
        when = "" if elapsed is None else f" after {seconds(elapsed)}"
        yield ""
        why = safe_line(run.status.get("why"), 300)
        name = f"{safe_line(run.variant, 60)}/{run.number}"
        yield from paragraph(f"{name} {safe_line(run.state, 20)}{when}: {why}", "  ")
        last = list(deque(run.kern_lines(), LAST_LINES)) if run.has_kern_log else []
        if last:
            yield "  the last lines of its kernel log:"
        for line in last:
            yield "    " + safe_line(clean(line), WIDTH - 4)
    yield from _more(len(others) - ENDS, "run", "the runs' status.json")
