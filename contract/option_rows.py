# SPDX-License-Identifier: GPL-2.0-or-later
"""What a row of the table of options says (contract.option_table), and the profiles."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TESTED = "what is tested"
MANY = "a campaign: several variants, several runs"
LOAD = "the workload"
MACHINE = "the machine"
REST = "the rest"
# The tables of plan.toml in which options are kept; PLAN: none of them, the plan itself.
PLAN, PARAMETERS, IN_MACHINE = "plan", "parameters", "machine"
VM, DEVICE, CAMPAIGN = "VM", "device", "campaign"
PROFILED = object()  # the default is the profile's
MODELLED = object()  # the default is the machine's (contract.machine_model)


@dataclass(frozen=True)
class Profile:
    """What a profile sets where no option says otherwise. Sizes in bytes, times in seconds.

    memory: None leaves it to the machine.
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
    """What is known of an option beside its name, its type and its default."""

    group: str
    help: str | None
    read: Callable[[str], Any] | None = None  # from text; None: the text itself, if it is not empty
    metavar: str | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    repeated: bool = False
    table: str = ""  # of plan.toml that has its key; "": in none (--dry-run)
    source: bool = False  # where something is from (--repo): in the plan, but in no comparison
    only: str = ""  # what it is for, if not for every run: VM, DEVICE or CAMPAIGN (in VMs)
    needs: str = ""  # another option: without that one this one is an error, and is 0
    none: Any = None  # the value in a stored plan that stands for none (0 of --disk-iops)
    may_differ: bool = False  # with --resume: it may be another one than before (--accel)
    of_gitks: bool = False  # only a workload with gitk's heeds it

    def heeded(self, gitks: bool) -> bool:
        """Whether a workload with or without gitk's knows the option."""
        return gitks or not self.of_gitks

    def was_given(self, value: Any) -> bool:
        """Whether this value was said, and does not stand for none."""
        return value is not None and bool(value != self.none)


def option(group: str, help: str | None, *how: Any, **more: Any) -> Any:
    """A field that is an option: the values of its row, in their order or by name."""
    row = Row(group, help, *how, **more)
    elsewhere = row.default is PROFILED or row.default is MODELLED
    return field(default=None if elsewhere else row.default, metadata={"row": row})


def parameter(help: str | None, *how: Any, **more: Any) -> Any:
    """An option of the workload, which a plan keeps among its parameters."""
    return option(LOAD, help, *how, table=PARAMETERS, **more)


def setting(help: str | None, *how: Any, **more: Any) -> Any:
    """An option of the machine, which a plan keeps among those."""
    return option(MACHINE, help, *how, table=IN_MACHINE, **more)


def of_machine(help: str | None, *how: Any, **more: Any) -> Any:
    """An option that changes one field of the machine's model, where it was given."""
    return setting(help, *how, default=MODELLED, only=VM, none=0, **more)
