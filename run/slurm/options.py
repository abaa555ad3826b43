# SPDX-License-Identifier: GPL-2.0-or-later
"""--on slurm[:OPTIONS]: what sbatch is called with, and how many runs are in the queue."""

import re
from dataclasses import dataclass

SLURM = "slurm"
SLOTS = "slots"
DEFAULT_SLOTS = 16
# Options of sbatch that say where a run may be done; all others are the suite's to set.
OF_SBATCH = (
    *("account", "constraint", "exclude", "mem", "nice", "nodelist", "partition", "qos"),
    *("reservation", "time"),
)
# A comma separates options; no value begins with a dash or holds a space.
VALUE = re.compile(r"[A-Za-z0-9_.:\[\]()*&|@/+-]+", re.ASCII)
COUNT = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True)
class SlurmOptions:
    """slots: at most so many runs wait or run in Slurm; sbatch: (option, value) pairs."""

    slots: int = DEFAULT_SLOTS
    sbatch: tuple[tuple[str, str], ...] = ()


def is_slurm(where: str) -> bool:
    """Whether an --on names Slurm."""
    return where.partition(":")[0] == SLURM


def parse(where: str) -> SlurmOptions:
    """The options of `slurm[:NAME=VALUE,...]`; ValueError says what is wrong with them."""
    _, colon, text = where.partition(":")
    found: dict[str, str] = {}
    for word in text.split(",") if colon else ():
        name, _, value = word.strip().partition("=")
        if name not in (SLOTS, *OF_SBATCH):
            known = ", ".join((SLOTS, *OF_SBATCH))
            raise ValueError(f"--on {where}: unknown option {name!r}: use {known}")
        if not (COUNT if name == SLOTS else VALUE).fullmatch(value):
            raise ValueError(f"--on {where}: {value!r} is not valid for {name}")
        if name in found:
            raise ValueError(f"--on {where}: {name} is given twice")
        found[name] = value
    slots = int(found.pop(SLOTS, DEFAULT_SLOTS))
    return SlurmOptions(slots, tuple(found.items()))
