# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a command: their values, given or derived, and their spelling."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from contract.option_rows import (
    FAKE_GITKS,
    IN_MACHINE,
    MODELLED,
    PARAMETERS,
    PROFILED,
    Profile,
    Row,
)
from contract.option_table import NOTED, ROWS, OptionTable
from contract.variant import Variant
from contract.workload import DESKTOP

MADE = "made, uncompressed"  # the history; in older plans `made` means one with compressed objects


@dataclass(frozen=True)
class Options(OptionTable):
    """The options of a command line and its plan, one per field; then what is derived from them.

    kernel, label, append, swap, knob and plan are empty: `variants` has what they gave.
    """

    # runs: per variant; with `resume` the total, else in addition to the runs that exist.
    # looks: numbers of runs per variant (contract.levels).
    variants: tuple[Variant, ...] = ()
    looks: tuple[int, ...] = ()
    hang_after: int = 0
    # The names of the workloads that have gitk's, and the kind of their gitk's.
    with_gitks: Mapping[str, str] = field(default_factory=lambda: {DESKTOP: FAKE_GITKS})
    history: str = MADE  # or "repo" and its commit (run.identity)
    music_kind: str = "made"  # or "own" and its digest

    def of(self, variant: Variant) -> "Options":
        """The options of one variant's runs, as if it were the only variant."""
        alone = replace(variant, workload="", load="", memory=0)
        if not variant.workload:
            return replace(self, variants=(alone,))
        memory = variant.memory or self.memory
        load = variant.load
        return replace(self, workload=variant.workload, load=load, memory=memory, variants=(alone,))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the variants' workloads, in their order."""
        names = dict.fromkeys(variant.workload or self.workload for variant in self.variants)
        return tuple(names) or (self.workload,)

    @property
    def most_memory(self) -> int:
        """Memory of the largest VM, bytes."""
        return max(
            (variant.memory or self.memory for variant in self.variants), default=self.memory
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The workloads' parameters, which must be equal in two runs that are compared."""
        noted = {name: getattr(self, name) for name in NOTED if NOTED[name].applies(self.gitks)}
        return self._compared(PARAMETERS) | noted

    @property
    def gitks(self) -> frozenset[str]:
        """The kinds of gitk's, which read a history, that the workloads have; empty: no gitk's."""
        kinds = self.with_gitks
        return frozenset(kinds[workload] for workload in self.workloads if workload in kinds)

    @property
    def in_machine(self) -> dict[str, Any]:
        """The options of plan.toml's table `machine`; 0 means that the option was not given."""
        return self._compared(IN_MACHINE)

    def _compared(self, table: str) -> dict[str, Any]:
        values = self._in_table(table, sources=False)
        return {name: 0 if value is None else value for name, value in values.items()}

    def _in_table(self, table: str, *, sources: bool) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name, row in ROWS.items()
            if row.table == table and row.source == sources and row.applies(self.gitks)
        }

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """For each table of a plan the origins (--repo) that were given."""
        return {
            table: {k: v for k, v in self._in_table(table, sources=True).items() if v}
            for table in (PARAMETERS, IN_MACHINE)
        }


def flag(name: str) -> str:
    """The option's flag: '--disk-iops'; for a switch that is on by default '--no-crypt'."""
    negated = "no-" if ROWS[name].default is True else ""
    return f"--{negated}{name.replace('_', '-')}"


def in_table(table: str) -> dict[str, Row]:
    """The options that a table of plan.toml keeps, in their order."""
    return {name: row for name, row in ROWS.items() if row.table == table}


def spelled(name: str, value: Any) -> list[str]:
    """An option as words of a command line; no words if the value is the default."""
    row = ROWS[name]
    if not row.was_given(value):
        return []
    if isinstance(value, bool):
        return [] if value is row.default else [flag(name)]
    if isinstance(value, tuple):
        return [word for item in value for word in (flag(name), _text(item))]
    return [flag(name), _text(value)]


def _text(value: Any) -> str:
    return "=".join(value) if isinstance(value, tuple) else str(value)


def defaults(profile: Profile, model: Mapping[str, Any]) -> dict[str, Any]:
    """The default of each option; model: the defaults from the machine model."""
    values: dict[str, Any] = {}
    for name, row in ROWS.items():
        if row.default is PROFILED:
            value = getattr(profile, name)
            values[name] = model.get(name) if value is None else value
        else:
            values[name] = model.get(name) if row.default is MODELLED else row.default
    return values
