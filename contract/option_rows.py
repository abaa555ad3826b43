# SPDX-License-Identifier: GPL-2.0-or-later
"""What a row of the table of options says (contract.options), and the profiles."""

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
PROFILED = object()  # the default is the profile's


@dataclass(frozen=True)
class Profile:
    """What a profile sets where no option says otherwise. Sizes in bytes, times in seconds."""

    memory: int
    commits: int
    passes: int
    timeout: int
    hang_after: int
    touch: float


PROFILES = {
    "quick": Profile(256 << 20, 60_000, 1, 600, 60, 0.25),
    "standard": Profile(512 << 20, 165_000, 1, 1_800, 120, 0.25),
    "full": Profile(512 << 20, 165_000, 4, 7_200, 120, 0.25),
}


@dataclass(frozen=True)
class Row:
    """What is known of an option beside its name, its type and its default."""

    group: str
    help: str | None
    read: Callable[[str], Any] | None = None  # from text; None: the text itself
    metavar: str | None = None
    choices: tuple[Any, ...] | None = None
    default: Any = None
    repeated: bool = False
    table: str = ""  # of plan.toml; "": in none
    source: bool = False  # where something is taken from: kept in the plan, not compared
    vm_only: bool = False
    device_only: bool = False
    campaign_only: bool = False
    needs: str = ""  # another option, without which this one means nothing
    told: bool = True  # of those in a plan's table: to what measures, in a guest too
    unsaid_zero: bool = False  # a stored plan has 0 where it was not given
    before: Any = None  # what results of before there was such an option stand for
    may_differ: bool = False  # between the commands of one campaign


def option(group: str, help: str | None, *how: Any, **more: Any) -> Any:
    """A field that is an option: the values of its row, in their order or by name."""
    row = Row(group, help, *how, **more)
    return field(default=None if row.default is PROFILED else row.default, metadata={"row": row})
