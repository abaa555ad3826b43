# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of report.txt that says how to run the campaign again: the plan, and a command line.

The first command is not enough: a campaign grows, and a plan may have come from a file that only
its author has. What the campaign became is in its plan.toml, which the bundle holds.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from analysis.compare import Compared
from analysis.load import Run
from analysis.plan import Plan, Variant
from analysis.words import NOT_AVAILABLE, WIDTH, paragraph, plain, plural

KERNELS = 12  # that are described one by one, and that a command line is made for
# What run_test.sh takes for a label: one with a token in it (docs/BUNDLE.md) is none.
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
VALUE = re.compile(r"(?!-)[!-~](?:[ -~]*[!-~])?")
RUNNING = "the running one"  # the kernel of a test of a machine, which has no plan for a VM
SIZES = ("memory", "disk_bps")
TAKE_0 = ("touch", "live_lock_after")
OPTIONS = {
    "parameters": (
        *("profile", "memory", "gitk", "commits", "every", "passes", "touch", "fs"),
        *("repo", "music", "atomic_order", "atomic_rate"),
    ),
    "machine": ("accel", "cpus", "disk_iops", "disk_bps", "timeout", "mirror", "live_lock_after"),
}
DEBIAN_VERSION = re.compile(r"\bDebian ([0-9][\w.+~-]*) \(")


def command(compared: Compared) -> Iterator[str]:
    """How to run it again, and what a name such as debian:6.1 stood for."""
    plan = compared.campaign.plan
    suites = sorted({plain(run.fact("suite"), 40) for run in compared.campaign.runs})
    yield from paragraph(f"Suite: commit {', '.join(suites[:3])}.")
    toml = _toml(plan.text)
    kernels = [variant.kernel for variant in plan.variants]
    if RUNNING in kernels:
        yield from paragraph("It was run on a machine itself (--device), not in a VM.")
    elif "variant" in toml and all(kernels):
        yield from paragraph("In the suite's folder, with plan.toml of this bundle:")
        yield "  ./run_test.sh --plan plan.toml"
        options = _options(plan, toml)
        if options:
            yield "The same without the plan:"
            yield from _shell(["./run_test.sh", *options])
        yield from _obstacles(plan.variants, toml)
    else:
        yield from paragraph("No plan was recorded; kernels and parameters are below.")
    if plan.command:
        first = "First asked for as: " + _without_folder(plan.command)
        yield from paragraph(plain(first, 4000), "  ")
    yield from paragraph("The kernels as they were resolved then (names may mean newer ones now):")
    for variant in compared.variants[:KERNELS]:
        run = compared.campaign.variants()[variant][0]
        yield from _kernel(run, plain(compared.labels[variant], 40))
        for words in _settings(plan.variants, variant):
            yield from _indented(words, 4)
    left = len(compared.variants) - KERNELS
    if left > 0:
        yield f"  and {plural(left, 'more variant')}: see plan.toml"


def _indented(text: str, columns: int) -> list[str]:
    lines = wrap(text, WIDTH - columns, subsequent_indent="  ", break_on_hyphens=False)
    return [" " * columns + line for line in lines]


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}  # analysis.plan has named the damage


def _options(plan: Plan, toml: dict[str, Any]) -> list[str]:
    """Each option with its value, quoted; none if only the plan can say it.

    A knob or more of the command line would go to every kernel. What run_test.sh would refuse, or
    would take for an option, is left to the plan too: this line is there to be pasted.
    """
    if len(plan.variants) > KERNELS or any(one.knobs or one.append for one in plan.variants):
        return []
    pairs: list[tuple[str, Any]] = []
    for variant in plan.variants:
        pairs += [("kernel", variant.kernel), ("label", variant.label)]
    pairs.append(("stop-when-sure", plan.looks[-1]) if plan.looks else ("runs", plan.runs))
    pairs += [("baseline", plan.baseline), ("margin", plan.margin)]
    switches: list[str] = []
    for name, keys in OPTIONS.items():
        table = toml.get(name, {})
        if not isinstance(table, dict):
            return []
        # 0 stands for an option that was not given, unless the option takes it.
        given = [(key, table.get(key)) for key in keys]
        pairs += [(key, value) for key, value in given if key in TAKE_0 or value != 0]
        switches += [f"--no-{key}" for key in ("crypt", "evidence") if table.get(key) is False]
    options = []
    for key, value in pairs:
        if value is None:
            continue
        text = _size(value) if key in SIZES else str(value)
        option = f"--{key.replace('_', '-')} {shlex.quote(text)}"
        if isinstance(value, bool | list | dict) or not VALUE.fullmatch(text):
            return []
        if len(option) > WIDTH - 6 or (key in ("label", "baseline") and not LABEL.fullmatch(text)):
            return []
        options.append(option)
    return options + switches


def _size(value: object) -> str:
    """Bytes as run_test.sh takes them: 512M."""
    return f"{value >> 20}M" if isinstance(value, int) and value % 2**20 == 0 else str(value)


def _obstacles(variants: tuple[Variant, ...], toml: dict[str, Any]) -> Iterator[str]:
    """What a reader has to write into the plan before it can be run elsewhere."""
    labels = [one.label for one in variants if not LABEL.fullmatch(one.label)]
    if labels:
        shown = ", ".join(plain(label, 60) for label in labels[:3])
        yield from paragraph(f"Give other labels in it first: {shown} cannot be one.")
    parameters = toml.get("parameters", {})
    known = parameters if isinstance(parameters, dict) else {}
    sources = [known.get(key) for key in ("repo", "music")]
    files = [one.kernel for one in variants if not one.kernel.startswith("debian:")]
    files += [source for source in sources if isinstance(source, str) and "://" not in source]
    if files:
        shown = ", ".join(plain(file, 100) for file in dict.fromkeys(files[:4]))
        yield from paragraph(f"Of the machine that ran it, and not in this bundle: {shown}.")


def _shell(words: list[str]) -> Iterator[str]:
    """A command in lines that a shell joins again; the words are quoted."""
    line = " "
    for word in words:
        if len(line) + 1 + len(word) > WIDTH - 2 and line.strip():
            yield line + " \\"
            line = "   "
        line += f" {word}"
    yield line


def _without_folder(text: str) -> str:
    """The command without the folder for its results, which is nothing to anybody else."""
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
    """What the variant's kernel was called, what it was, and its exact name."""
    spec = run.fact("kernel", "spec")
    release = plain(run.fact("kernel", "release"), 60)
    lines = _indented(f"{label}: {plain(spec, 60)} = {release}", 2)
    if isinstance(spec, str) and spec.startswith("debian:"):
        version = DEBIAN_VERSION.search(plain(run.fact("kernel", "version")))
        exact = version[1] if version else release
        if exact not in (NOT_AVAILABLE, spec.removeprefix("debian:")):
            lines += _indented(f"exactly that one: --kernel debian:{exact}", 4)
    return lines


def _settings(variants: tuple[Variant, ...], label: str) -> Iterator[str]:
    """Knobs and extra command line of a variant, as asked for."""
    asked = next((one for one in variants if one.label == label), None)
    if asked is None:
        return
    for path, setting in asked.knobs.items():
        yield f"{plain(path, 100)} = {plain(setting, 100)}"
    if asked.append:
        yield f"command line: {plain(asked.append, 400)}"
