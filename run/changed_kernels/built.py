# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built for a campaign: those that cannot be, and those that are the same one."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from contract.variant import Variant
from errors import UserError
from setup.kernels import Kernel
from setup.trees import specs
from setup.trees.failures import NotBuilt

LONGEST = 64  # letters of a variant's name
BUILD_LOG = ".build.log"  # after the variant's name, beside plan.toml


class Found(NamedTuple):
    """The kernels by their SPECs, and a line for each that could not be built."""

    kernels: dict[str, Kernel]
    not_built: dict[str, str]


class _Guest(Protocol):
    @property
    def kernel(self) -> Kernel: ...


class _Ready(Protocol):
    @property
    def variant(self) -> Variant: ...

    @property
    def guest(self) -> _Guest: ...


R = TypeVar("R", bound=_Ready)


def found(
    wanted: Iterable[str], resolve: Callable[[str], Kernel], place: Path, say: Callable[[str], None]
) -> Found:
    """Each kernel looked for once. One that cannot be built is left out, and the others go on.

    place: the campaign's folder, in which the log of its build is kept. UserError if none is left;
    any other failure is one of all.
    """
    kernels: dict[str, Kernel] = {}
    not_built: dict[str, str] = {}
    for spec in dict.fromkeys(wanted):
        try:
            kernels[spec] = resolve(spec)
        except NotBuilt as error:
            log = place / f"{error.label[:LONGEST] or 'kernel'}{BUILD_LOG}"
            try:
                error.keep_log(log)
            except OSError as refused:
                raise UserError(f"cannot write results: {refused}") from None
            not_built[spec] = f"{error}; its log is {log}"
            say(f"  left out: {not_built[spec]}")
    if not kernels:
        raise UserError(next(iter(not_built.values()), "no kernel"))
    return Found(kernels, not_built)


def without_twins(
    ready: Sequence[R], known: Iterable[Variant], say: Callable[[str], None]
) -> list[R]:
    """Those with a kernel of its own: of built ones whose binary is the same the first stays.

    known: variants that the campaign has runs of, which stay. UserError if none is left to compare.
    """
    stored = {one.label for one in known}
    kept: list[R] = []
    for one in ready:
        twin = next((other for other in kept if _is_twin(other, one)), None)
        if twin is None or one.variant.label in stored:
            kept.append(one)
            continue
        say(f"  {_name(one)}: the same binary as {_name(twin)}, so one kernel: not run twice")
    if len(kept) < min(len(ready), 2):
        raise UserError(
            f"nothing to compare: {_name(ready[1])} is the same binary as {_name(ready[0])}",
            hint="this configuration compiles nothing of the change: see --kernel-config",
        )
    return kept


def _name(ready: _Ready) -> str:
    return ready.variant.label or ready.guest.kernel.label


def _is_twin(one: _Ready, other: _Ready) -> bool:
    """Whether both were built, from what was asked for as two kernels, and run as one."""
    mine, its = one.variant, other.variant
    return (
        specs.is_tree(mine.kernel)
        and specs.is_tree(its.kernel)
        and mine.kernel != its.kernel
        and replace(mine, kernel="", label="") == replace(its, kernel="", label="")
        and one.guest.kernel.image_digest == other.guest.kernel.image_digest
    )
