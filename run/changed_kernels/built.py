# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built for a campaign: leaves out failed builds and identical binaries."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from contract.variant import Variant
from errors import UserError
from setup.kernels import Kernel
from setup.trees import specs
from setup.trees.failures import NotBuilt

LONGEST = 64  # characters of a variant's name, in a file name
BUILD_LOG = ".build.log"  # after the variant's name, beside plan.toml


class ResolvedKernels(NamedTuple):
    """Kernels by their SPECs, and a line for each SPEC that could not be built."""

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


def resolve_each(
    wanted: Iterable[str], resolve: Callable[[str], Kernel], place: Path, say: Callable[[str], None]
) -> ResolvedKernels:
    """Resolve each kernel once. Kernels that cannot be built are left out.

    place: the campaign's folder, which gets the logs of failed builds. UserError if no kernel is
    left; any other failure ends the command.
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
    return ResolvedKernels(kernels, not_built)


def without_twins(
    ready: Sequence[R], known: Iterable[Variant], say: Callable[[str], None]
) -> list[R]:
    """The variants without duplicates: of built kernels with the same binary the first stays.

    known: variants that the campaign already has; they stay. UserError if nothing is left to
    compare.
    """
    stored = {candidate.label for candidate in known}
    kept: list[R] = []
    for candidate in ready:
        twin = next((other for other in kept if _is_twin(other, candidate)), None)
        if twin is None or candidate.variant.label in stored:
            kept.append(candidate)
            continue
        say(f"  {_name(candidate)}: the same binary as {_name(twin)}, so one kernel: not run twice")
    if len(kept) < min(len(ready), 2):
        raise UserError(
            f"nothing to compare: {_name(ready[1])} is the same binary as {_name(ready[0])}",
            hint="this configuration compiles nothing of the change: see --kernel-config",
        )
    return kept


def _name(ready: _Ready) -> str:
    return ready.variant.label or ready.guest.kernel.label


def _is_twin(ready: _Ready, other: _Ready) -> bool:
    """Whether both were built from different SPECs, have the same binary and run the same way."""
    mine, its = ready.variant, other.variant
    return (
        specs.is_tree(mine.kernel)
        and specs.is_tree(its.kernel)
        and mine.kernel != its.kernel
        and replace(mine, kernel="", label="") == replace(its, kernel="", label="")
        and ready.guest.kernel.image_digest == other.guest.kernel.image_digest
    )
