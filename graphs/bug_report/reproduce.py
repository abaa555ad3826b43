# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of report.txt about how to reproduce the campaign: by the plan, or by a command line.

The first command is not enough: a campaign may have grown, and its plan may be a file that only its
author has. The complete campaign is in its plan.toml, which the bundle contains.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from analysis.reading.load import Run
from analysis.reading.settings import as_set, changed
from analysis.reading.words import NOT_AVAILABLE, plural, safe_line
from analysis.text.layout import WIDTH, indented, paragraph
from analysis.verdicts.compared import Compared
from contract import values
from contract.levels import MARGIN
from contract.option_rows import PARAMETERS
from contract.option_table import ROWS
from contract.options import flag, in_table, spelled
from contract.plan import CHANGES, TABLES, Plan, machine_file
from contract.swap import ON_DISK
from contract.variant import RUNNING, Variant, exactly

KERNELS = 12  # kernels described individually; for more there is no command line
VALUE = re.compile(r"(?!-)[!-~](?:[ -~]*[!-~])?")
DEBIAN_VERSION = re.compile(r"\bDebian ([0-9][\w.+~-]*) \(")


def command(compared: Compared) -> Iterator[str]:
    """How to run the campaign again, and the kernels that names such as debian:6.1 resolved to."""
    plan = compared.whole.plan
    suites = sorted({safe_line(run.fact("suite"), 40) for run in compared.whole.runs})
    yield from paragraph(f"Suite: commit {', '.join(suites[:3])}.")
    kernels = [variant.kernel for variant in plan.variants]
    if RUNNING in kernels:
        yield from paragraph("It was run on a machine itself (--device), not in a VM.")
    elif "variant" in plan.tables and all(kernels):
        machine = f" and {safe_line(plan.machine_copy, 60)}" if compared.whole.machine else ""
        yield from paragraph(f"In the suite's folder, with plan.toml{machine} of this bundle:")
        yield "  ./run_test.sh --plan plan.toml"
        options = _options(plan, plan.machine_copy if compared.whole.machine else "")
        if options:
            yield "The same without the plan:"
            yield from _shell(["./run_test.sh", *options])
        yield from _obstacles(plan, compared.whole.changes, has_machine=bool(machine))
    else:
        yield from paragraph("No plan was recorded; kernels and parameters are below.")
    if plan.command:
        first = "First asked for as: " + _without_folder(plan.command)
        yield from paragraph(safe_line(first, 4000), "  ")
    yield from paragraph("The kernels as they were resolved then (names may mean newer ones now):")
    runs = compared.whole.variants()
    labelled = [
        (variant, part.labels[variant]) for part in compared.each for variant in part.variants
    ]
    for variant, label in labelled[:KERNELS]:
        yield from _kernel(runs[variant][0], safe_line(label, 40))
        for words in _own_settings(plan.variants, variant):
            yield from indented(words, 4)
    left = len(labelled) - KERNELS
    if left > 0:
        yield f"  and {plural(left, 'more variant')}: see plan.toml"


def of_two(compared: Compared, two: list[str]) -> Iterator[str]:
    """The command that compares only these two variants; the first is the baseline."""
    plan, runs = compared.whole.plan, compared.campaign.variants()
    asked = {name.label: name for name in plan.variants}
    options: list[str] = []
    if all(name in asked and asked[name].kernel not in ("", RUNNING) for name in two):
        alone = [
            replace(asked[name], kernel=_exact(runs[name][0]) or asked[name].kernel) for name in two
        ]
        many = max(len(runs[name]) for name in two)
        pair = replace(plan, variants=tuple(alone), baseline=None, looks=(), runs=many)
        options = _options(pair, plan.machine_copy if compared.whole.machine else "")
    yield from _shell(["./run_test.sh", *(options or ["--plan plan.toml"])])
    if not options:
        yield "(plan.toml is in the bundle.)"


def _options(plan: Plan, machine: str) -> list[str]:
    """The options with their values, quoted; [] if only the plan can express the campaign.

    machine: the name of the machine file's copy; "" if there is none.

    Omits defaults, except those that the first command gave: the defaults may have been different
    then. On a command line a knob or --append would apply to every kernel, and each swap to every
    kernel; a variant's own workload can only be in the plan. The same is true of values that
    run_test.sh would refuse or take for an option: this line is meant to be pasted.
    """
    own = [one for one in plan.variants if one.knobs or one.append or one.workload or one.remedy]
    tables = {name: plan.tables.get(name, {}) for name in TABLES}
    damaged = not all(isinstance(table, dict) for table in tables.values())
    if len(plan.variants) > KERNELS or own or damaged:
        return []
    swaps = list(dict.fromkeys(one.swap for one in plan.variants))
    kernels = [one.kernel for one in plan.variants[:: len(swaps)]] if swaps else []
    combinations = [(one.kernel, one.swap) for one in plan.variants]
    if combinations != [(kernel, swap) for kernel in kernels for swap in swaps]:
        return []
    named = not _named_by_kernel(plan)
    pairs: list[tuple[str, Any]] = []
    for place, variant in enumerate(plan.variants):
        pairs += [] if place % len(swaps) else [("kernel", variant.kernel)]
        pairs += [("label", variant.label)] if named else []
    pairs += [("swap", swap) for swap in swaps if swaps != [ON_DISK]]
    pairs.append(("stop_when_sure", plan.looks[-1]) if plan.looks else ("runs", plan.runs))
    pairs += [("baseline", plan.baseline)] if named and plan.baseline != _first(plan) else []
    pairs += [("margin", plan.margin)] if plan.margin != MARGIN else []
    switches: list[str] = []
    for key, value in _settings(plan, tables).items():
        row = ROWS[key]
        if row.default is True:
            switches += spelled(key, value) if value is False else []
        elif row.was_given(value):
            pairs.append((key, machine if machine and key == "machine" else value))
    return _quoted(pairs, switches)


def _settings(plan: Plan, tables: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The options in the plan's tables that are not defaults, or that the first command gave."""
    whole = {
        key: value
        for name, table in tables.items()
        for key, value in table.items()
        if key in in_table(name)
    }
    usual = as_set(whole.get("profile", ROWS["profile"].default), whole.get("machine"))
    given = {word.partition("=")[0] for word in plan.command.split()}
    own = changed(whole, usual)
    return {key: value for key, value in whole.items() if key in own or flag(key) in given}


def _quoted(pairs: list[tuple[str, Any]], switches: list[str]) -> list[str]:
    """The options as shell words; [] if a value cannot be given on a command line."""
    words = []
    for key, value in pairs:
        if value is None:
            continue
        is_size = ROWS[key].read in (values.size, values.memory)
        text = values.sized(value) if is_size else str(value)
        option = f"{flag(key)} {shlex.quote(text)}"
        if isinstance(value, bool | list | dict) or not VALUE.fullmatch(text):
            return []
        if len(option) > WIDTH - 6 or (ROWS[key].read is values.label and not _is_label(text)):
            return []
        words.append(option)
    return words + switches


def _first(plan: Plan) -> str:
    return plan.variants[0].label


def _named_by_kernel(plan: Plan) -> bool:
    """Whether run_test.sh would choose the same labels, and the first variant is the baseline."""
    entries = plan.tables.get("variant", [])
    versions = {one.get("label"): one.get("version") for one in entries}
    return plan.baseline in (None, _first(plan)) and all(
        one.swap == ON_DISK and versions.get(one.label) == one.label for one in plan.variants
    )


def _is_label(text: str) -> bool:
    """Whether run_test.sh accepts the label: not one with a token (docs/reference/redaction.md)."""
    return values.LABEL.fullmatch(text) is not None


def _obstacles(plan: Plan, changes: Collection[str], *, has_machine: bool) -> Iterator[str]:
    """What a reader has to change in the plan before it can be run elsewhere.

    changes: the variants with a changed kernel source, whose patch is in the bundle.
    """
    labels = [variant.label for variant in plan.variants if not _is_label(variant.label)]
    if labels:
        shown = ", ".join(safe_line(label, 60) for label in labels[:3])
        yield from paragraph(f"Give other labels in it first: {shown} cannot be one.")
    parameters = plan.tables.get(PARAMETERS, {})
    known = parameters if isinstance(parameters, dict) else {}
    sources = [known.get(key) for key, row in in_table(PARAMETERS).items() if row.source]
    files = [
        file for variant in plan.variants for file in _own_files(variant, variant.label in changes)
    ]
    files += [source for source in sources if isinstance(source, str) and "://" not in source]
    file = machine_file(plan.tables)
    files += [file] if file and not has_machine else []
    if files:
        shown = ", ".join(safe_line(file, 100) for file in dict.fromkeys(files[:4]))
        yield from paragraph(f"Of the machine that ran it, and not in this bundle: {shown}.")
    for variant in plan.variants:
        if variant.label in changes:
            label = safe_line(variant.label, 60)
            yield from paragraph(
                f"{label}: what was changed in its source is {label}/{CHANGES} of this bundle. "
                "Write that path after patch= in plan.toml."
            )


def _own_files(variant: Variant, has_patch: bool) -> list[str]:
    """Files of a variant's kernel that only the original machine has."""
    source, *words = variant.kernel.split(",")
    if source.startswith("debian:"):
        return []
    if not source.startswith("debian-source:"):
        return [variant.kernel]
    files = [] if has_patch else [word[6:] for word in words if word.startswith("patch=")]
    return files + [word[7:] for word in words if word.startswith("config=") and "/" in word]


def _shell(words: list[str]) -> Iterator[str]:
    """A command, split into lines that a shell joins again; the words are quoted."""
    line = " "
    for word in words:
        if len(line) + 1 + len(word) > WIDTH - 2 and line.strip():
            yield line + " \\"
            line = "   "
        line += f" {word}"
    yield line


def _without_folder(text: str) -> str:
    """The command without its results folder, which is useless to others."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    kept: list[str] = []
    skip = False
    for word in words:
        folder = re.fullmatch(r"--(?:out|resume)(=.*)?", word, re.DOTALL)
        if not skip and not folder:
            kept.append(word)
        skip = not skip and folder is not None and folder[1] is None
    return shlex.join(kept)


def _kernel(run: Run, label: str) -> list[str]:
    """The SPEC of the variant's kernel, its release, and its exact name."""
    spec = run.fact("kernel", "spec")
    release = safe_line(run.fact("kernel", "release"), 60)
    lines = indented(f"{label}: {safe_line(spec, 60)} = {release}", 2)
    if (exact := _exact(run)) not in ("", spec):
        lines += indented(f"exactly that one: --kernel {exact}", 4)
    return lines


def _exact(run: Run) -> str:
    """The exact name of this Debian kernel; empty if it is not Debian's."""
    spec = run.fact("kernel", "spec")
    if not isinstance(spec, str) or not spec.startswith("debian:"):
        return ""
    release = safe_line(run.fact("kernel", "release"), 60)
    version = DEBIAN_VERSION.search(safe_line(run.fact("kernel", "version")))
    exact = version[1] if version else release
    return "" if exact == NOT_AVAILABLE else safe_line(exactly(spec, exact), 60)


def _own_settings(variants: tuple[Variant, ...], label: str) -> Iterator[str]:
    """A variant's own workload, remedy, swap, knobs and command line, as in the plan."""
    asked = next((variant for variant in variants if variant.label == label), None)
    if asked is None:
        return
    if asked.workload:
        memory = values.sized(asked.memory)
        load = safe_line(asked.load, 200)
        yield f"workload: {safe_line(asked.workload, 40)}: {load}; memory {memory}"
    if asked.remedy:
        yield f"remedy: {safe_line(asked.remedy, 40)}"
    if asked.daemon:
        yield f"daemon: {safe_line(asked.daemon, 400)}"
    for file, value in asked.slice:
        yield f"control group of the programs: {safe_line(file, 60)} = {safe_line(value, 60)}"
    if asked.swap != ON_DISK:
        yield f"swap: {asked.swap}"
    for path, setting in asked.knobs:
        yield f"{safe_line(path, 100)} = {safe_line(setting, 100)}"
    if asked.append:
        yield f"command line: {safe_line(asked.append, 400)}"
