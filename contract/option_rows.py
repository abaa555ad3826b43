# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the option table (contract.option_table), and the profiles."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

TESTED = "what is tested"
MANY = "a campaign: several variants, several runs"
LOAD = "the workload"
MACHINE = "the machine"
REST = "the rest"
# The tables of plan.toml that keep options; PLAN: the top level of plan.toml.
PLAN, PARAMETERS, IN_MACHINE = "plan", "parameters", "machine"
VM, DEVICE, CAMPAIGN = "VM", "device", "campaign"
# The kinds of gitk's that a workload can have: the stand-in, and the real program.
FAKE_GITKS, REAL_GITKS = "fake_gitk's", "real gitk's"
GITKS = (FAKE_GITKS, REAL_GITKS)
PROFILED = object()  # the profile sets the default
MODELLED = object()  # the machine model sets the default (contract.machine_model)


@dataclass(frozen=True)
class Profile:
    """The defaults that a profile sets. Sizes are bytes, times are seconds.

    memory: None leaves it to the machine model.
    """

    memory: int | None
    commits: int
    passes: int
    timeout: int
    hang_after: int
    touch: float


PROFILES = {
    "quick": Profile(230 << 20, 40_000, 1, 1_200, 60, 0.12),
    "standard": Profile(None, 165_000, 1, 5_400, 120, 0.12),
    "full": Profile(None, 165_000, 4, 21_600, 120, 0.12),
}


@dataclass(frozen=True)
class Row:
    """The properties of an option beside its name and its type."""

    group: str
    help: str | None
    read: Callable[[str], Any] | None = (
        None  # parses the text; None: takes any text that is not empty
    )
    metavar: str | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    repeated: bool = False
    table: str = ""  # the table of plan.toml that has its key; "": none (--dry-run)
    source: bool = False  # an origin (--repo): in the plan, but not compared
    only: str = ""  # runs that it is restricted to: VM, DEVICE or CAMPAIGN (in VMs)
    needs: str = ""  # an option that it requires; without that option it is 0
    none: Any = None  # the value in a stored plan that means "not given" (0 for --disk-iops)
    may_differ: bool = False  # with --resume: it may differ from the campaign's (--accel)
    of_gitks: tuple[str, ...] = ()  # only workloads with gitk's of these kinds use it; (): all do

    def applies(self, gitks: Collection[str]) -> bool:
        """Whether the option applies to workloads; gitks: the kinds of gitk's that they have."""
        return not self.of_gitks or any(kind in gitks for kind in self.of_gitks)

    def was_given(self, value: Any) -> bool:
        """Whether this value was given, and does not mean "not given" in a stored plan."""
        return value is not None and bool(value != self.none)


def option(group: str, help: str | None, *how: Any, **more: Any) -> Any:
    """A dataclass field for an option; how, more: the other fields of its row."""
    row = Row(group, help, *how, **more)
    has_own = row.default is PROFILED or row.default is MODELLED
    return field(default=None if has_own else row.default, metadata={"row": row})


def parameter(help: str | None, *how: Any, **more: Any) -> Any:
    """An option of the workload; plan.toml keeps it in its table `parameters`."""
    return option(LOAD, help, *how, table=PARAMETERS, **more)


def setting(help: str | None, *how: Any, **more: Any) -> Any:
    """An option of the machine; plan.toml keeps it in its table `machine`."""
    return option(MACHINE, help, *how, table=IN_MACHINE, **more)


def of_machine(help: str | None, *how: Any, **more: Any) -> Any:
    """An option that, if it is given, replaces a value of the machine model."""
    return setting(help, *how, default=MODELLED, only=VM, none=0, **more)
