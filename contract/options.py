# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a command: the values that the user gave or that follow, and their spelling."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from contract.option_rows import IN_MACHINE, MODELLED, PARAMETERS, PROFILED, Profile, Row
from contract.option_table import NOTED, ROWS, OptionTable
from contract.variant import Variant
from contract.workload import DESKTOP

MADE = "made, uncompressed"  # the history; `made` was one whose objects each reader had to inflate


@dataclass(frozen=True)
class Options(OptionTable):
    """What a command line and its plan asked for, an option a field; then what follows from it.

    kernel, label, append, swap, knob and plan are empty: what they said is in `variants`.
    """

    # runs: of each variant, in all with `resume`, else more than there are; looks: contract.levels.
    variants: tuple[Variant, ...] = ()
    looks: tuple[int, ...] = ()
    hang_after: int = 0
    with_gitks: frozenset[str] = frozenset({DESKTOP})  # the workloads that have any
    history: str = MADE  # or "repo" and which (run.identity)
    music_kind: str = "made"  # or "own" and which

    def of(self, variant: Variant) -> "Options":
        """The options of the runs of one of its variants, as if there were no other."""
        alone = replace(variant, workload="", load="", memory=0)
        if not variant.workload:
            return replace(self, variants=(alone,))
        memory = variant.memory or self.memory
        load = variant.load
        return replace(self, workload=variant.workload, load=load, memory=memory, variants=(alone,))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Those of its variants, in their order."""
        found = dict.fromkeys(one.workload or self.workload for one in self.variants)
        return tuple(found) or (self.workload,)

    @property
    def most_memory(self) -> int:
        """Bytes that the largest of its VMs has."""
        return max((one.memory or self.memory for one in self.variants), default=self.memory)

    @property
    def parameters(self) -> dict[str, Any]:
        """The workloads' parameters: what must be equal for two runs of one to be compared."""
        noted = {name: getattr(self, name) for name in NOTED if NOTED[name].heeded(self.gitks)}
        return self._compared(PARAMETERS) | noted

    @property
    def gitks(self) -> bool:
        """Whether one of its workloads has any, which read a history."""
        return any(one in self.with_gitks for one in self.workloads)

    @property
    def in_machine(self) -> dict[str, Any]:
        """What plan.toml keeps of the VM: 0 stands for an option that was not given."""
        return self._compared(IN_MACHINE)

    def _compared(self, table: str) -> dict[str, Any]:
        said = self._in_table(table, sources=False)
        return {name: 0 if value is None else value for name, value in said.items()}

    def _in_table(self, table: str, *, sources: bool) -> dict[str, Any]:
        return {
            name: getattr(self, name)
            for name, row in ROWS.items()
            if row.table == table and row.source == sources and row.heeded(self.gitks)
        }

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """Of each table of a plan where something comes from, as far as it was said."""
        return {
            table: {k: v for k, v in self._in_table(table, sources=True).items() if v}
            for table in (PARAMETERS, IN_MACHINE)
        }


def flag(name: str) -> str:
    """'--disk-iops'; of a switch that is on by itself '--no-crypt'."""
    negated = "no-" if ROWS[name].default is True else ""
    return f"--{negated}{name.replace('_', '-')}"


def in_table(table: str) -> dict[str, Row]:
    """The options that this table of plan.toml keeps, in their order."""
    return {name: row for name, row in ROWS.items() if row.table == table}


def spelled(name: str, value: Any) -> list[str]:
    """An option as words of a command line; none for what need not be said."""
    row = ROWS[name]
    if not row.was_given(value):
        return []
    if isinstance(value, bool):
        return [] if value is row.default else [flag(name)]
    if isinstance(value, tuple):
        return [word for one in value for word in (flag(name), _text(one))]
    return [flag(name), _text(value)]


def _text(value: Any) -> str:
    return "=".join(value) if isinstance(value, tuple) else str(value)


def defaults(profile: Profile, model: Mapping[str, Any]) -> dict[str, Any]:
    """What each option is where nobody said anything; model: what the machine says."""
    found: dict[str, Any] = {}
    for name, row in ROWS.items():
        if row.default is PROFILED:
            said = getattr(profile, name)
            found[name] = model.get(name) if said is None else said
        else:
            found[name] = model.get(name) if row.default is MODELLED else row.default
    return found
