# SPDX-License-Identifier: GPL-2.0-or-later
"""What a campaign compares: its variants, how many runs of each, and in which order.

A plan.toml (docs/CAMPAIGNS.md shows one) says the same as the command line does, and is read as
one: each of its keys is an option of that name. The plan.toml in a campaign's own folder is such a
file too, with what the suite noted in it (docs/FORMAT.md).
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workloads import arguments

ALPHA = 0.05
MARGIN = 0.1
LOOK_RATIO = 1.4  # each look at a growing campaign comes with so many times the runs of the last
TOP = ("baseline", "runs", "margin", "stop_when_sure")
TABLES = {
    "parameters": (
        *("profile", "memory", "gitk", "commits", "every", "passes", "touch", "fs", "crypt"),
        *("repo", "music", "atomic_order", "atomic_rate"),
    ),
    "machine": (
        *("accel", "cpus", "disk_iops", "disk_bps", "timeout", "mirror", "evidence"),
        "live_lock_after",
    ),
}
SWITCHES = ("crypt", "evidence")  # true unless `--no-…` is given
VARIANT = ("label", "kernel", "append", "knobs")
# What the suite itself notes in a campaign's plan.
NOTED = {
    "": ("format", "alpha", "command", "suite", "run", "extended"),
    "parameters": ("history", "music_kind"),
    "variant": ("release", "version", "image_digest"),
}
# Where a stored plan has 0 for an option that was not given.
UNSAID_ZERO = ("commits", "memory", "disk_iops", "disk_bps", "atomic_order", "atomic_rate")
# What a plan of before these were there stands for.
ABSENT = {"atomic_order": 0, "atomic_rate": 0}
ABSENT_MACHINE = {"evidence": False}


@dataclass(frozen=True)
class Variant:
    """A kernel + extra command line + knobs (path, value); label None: the kernel's own."""

    kernel: str
    label: str | None = None
    append: str = ""
    knobs: tuple[tuple[str, str], ...] = ()

    def same_machine(self, other: "Variant") -> bool:
        """Whether both ask for the same, but for the label, which must not contradict."""
        labels = {self.label, other.label} - {None}
        mine = (self.kernel, self.append, sorted(self.knobs))
        return mine == (other.kernel, other.append, sorted(other.knobs)) and len(labels) < 2


@dataclass(frozen=True)
class PlanFile:
    """A plan.toml: its options as a command line, its variants, and the looks that are due."""

    argv: tuple[str, ...]
    variants: tuple[Variant, ...]
    looks: tuple[int, ...] = ()


def read(path: Path, *, resumed: bool = False) -> PlanFile:
    """The plan in this file; ValueError, in one line, if it is none."""
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None
    try:
        return parse(plan, resumed=resumed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def parse(plan: Mapping[str, Any], *, resumed: bool = False) -> PlanFile:
    """The plan of a parsed plan.toml; ValueError names the key that will not do.

    `resumed`: it goes on as it began, also in what an older suite did not have yet.
    """
    _known(plan, "", (*TOP, *TABLES, "variant"))
    if plan.get("alpha", ALPHA) != ALPHA:
        raise ValueError(f"alpha: verdicts have the level {ALPHA}, no other")
    argv: list[str] = []
    looks: tuple[int, ...] = ()
    for key in TOP:
        value = plan.get(key)
        if isinstance(value, dict) and key == "stop_when_sure":
            _known(value, key, ("looks",))
            looks = tuple(value.get("looks", ()))
            numbers = [one for one in looks if type(one) is int and one > 0]
            if not looks or numbers != sorted(set(looks)):
                raise ValueError("stop_when_sure: looks must be growing numbers of runs")
        elif value is not None:
            argv.append(_option(key, _text(key, value)))
    for name, keys in TABLES.items():
        table = plan.get(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"[{name}] is not a table")
        _known(table, name, keys)
        for key in keys:
            value = table.get(key, ABSENT_MACHINE.get(key) if resumed and table else None)
            if key in SWITCHES:
                if not isinstance(value, bool | None):
                    raise ValueError(f"{name}.{key}: true or false, not {value!r}")
                argv += [f"--no-{key}"] if value is False else []
            elif value is not None and not (value == 0 and key in UNSAID_ZERO):
                argv.append(_option(key, _text(f"{name}.{key}", value)))
    variants = plan.get("variant", [])
    if not isinstance(variants, list):
        raise ValueError("write [[variant]], with two brackets")
    return PlanFile(tuple(argv), tuple(_variant(one) for one in variants), looks)


def _variant(table: Any) -> Variant:
    if not isinstance(table, dict):
        raise ValueError("[[variant]] is not a table")
    _known(table, "variant", VARIANT)
    label = table.get("label")
    knobs = table.get("knobs", {})
    if not isinstance(knobs, dict):
        raise ValueError("[variant.knobs] is not a table")
    try:
        return Variant(
            kernel=_text("variant.kernel", table.get("kernel", "debian:stable")),
            label=None if label is None else arguments.label(_text("variant.label", label)),
            append=arguments.append(_text("variant.append", table.get("append", ""))),
            knobs=tuple(
                arguments.knob(f"{path}={_text(path, value)}") for path, value in knobs.items()
            ),
        )
    except arguments.Refused as error:
        raise ValueError(str(error)) from None


def _known(table: Mapping[str, Any], name: str, keys: Iterable[str]) -> None:
    known = (*keys, *NOTED.get(name, ()))
    for key in table:
        if key not in known:
            where = f"[{name}]" if name else "the plan"
            raise ValueError(f"{where} has no key {key!r} (it has {', '.join(keys)})")


def _option(key: str, value: str) -> str:
    return f"--{key.replace('_', '-')}={value}"


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{key}: a text or a number, not {value!r}")
    text = str(value)
    if not re.fullmatch(r"[^\0-\x1f\x7f]*", text):
        raise ValueError(f"{key}: {text!r} will not do")
    return text


def merged(stored: Iterable[Variant], asked: Iterable[Variant]) -> tuple[Variant, ...]:
    """The stored variants, and those of the asked that are not among them."""
    result = list(stored)
    left = list(result)
    for variant in asked:
        same = next((one for one in left if one.same_machine(variant)), None)
        if same is None:
            result.append(variant)
        else:
            left.remove(same)
    return tuple(result)


def schedule(
    labels: Iterable[str], runs: Mapping[str, int], done: Mapping[str, set[int]]
) -> list[tuple[str, int]]:
    """(variant, run number) still to do, interleaved: A 1, B 1, C 1, A 2, …"""
    order = list(labels)
    most = max((runs[label] for label in order), default=0)
    return [
        (label, number)
        for number in range(1, most + 1)
        for label in order
        if number <= runs[label] and number not in done[label]
    ]


def can_decide(runs: int, level: float = ALPHA) -> bool:
    """Whether so many runs of each of two variants can reach the level at all.

    An exact two-sided permutation test has no smaller p than 2 / C(2 runs, runs).
    """
    return 2 / math.comb(2 * runs, runs) <= level


def looks(limit: int, comparisons: int) -> tuple[int, ...]:
    """Numbers of runs of each variant at which a growing campaign is looked at, the last is limit.

    The first is the smallest from which an exact two-sided permutation test can reach the level of
    one look, ALPHA / looks, for all comparisons (Holm). ValueError if limit is too small for any.
    """
    for first in range(2, limit + 1):
        sizes = [first]
        while sizes[-1] < limit:
            sizes.append(min(limit, max(sizes[-1] + 1, round(sizes[-1] * LOOK_RATIO))))
        if can_decide(first, ALPHA / len(sizes) / max(1, comparisons)):
            return tuple(sizes)
    raise ValueError(
        f"up to {limit} runs of each could not give a verdict on {comparisons} comparison(s): "
        "ask for more"
    )
