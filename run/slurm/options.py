# SPDX-License-Identifier: GPL-2.0-or-later
"""--on slurm[:OPTIONS]: options of sbatch, and the number of runs in the queue."""

import re
from dataclasses import dataclass

SLURM = "slurm"
SLOTS = "slots"
DEFAULT_SLOTS = 16
# Options of sbatch about where runs may be done; the suite sets all other options.
OF_SBATCH = (
    *("account", "constraint", "exclude", "mem", "nice", "nodelist", "partition", "qos"),
    *("reservation", "time"),
)
# A comma separates options; no value begins with a dash or holds a space.
VALUE = re.compile(r"[A-Za-z0-9_.:\[\]()*&|@/+-]+", re.ASCII)
COUNT = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)


@dataclass(frozen=True)
class SlurmOptions:
    """slots: maximum number of runs waiting or running in Slurm; sbatch: (option, value) pairs."""

    slots: int = DEFAULT_SLOTS
    sbatch: tuple[tuple[str, str], ...] = ()


def is_slurm(where: str) -> bool:
    """Whether the value of --on names Slurm."""
    return where.partition(":")[0] == SLURM


def parse(where: str) -> SlurmOptions:
    """The options of `slurm[:NAME=VALUE,...]`; ValueError with a message if they are invalid."""
    _, colon, text = where.partition(":")
    given: dict[str, str] = {}
    for word in text.split(",") if colon else ():
        name, _, value = word.strip().partition("=")
        if name not in (SLOTS, *OF_SBATCH):
            known = ", ".join((SLOTS, *OF_SBATCH))
            raise ValueError(f"--on {where}: unknown option {name!r}: use {known}")
        if not (COUNT if name == SLOTS else VALUE).fullmatch(value):
            raise ValueError(f"--on {where}: {value!r} is not valid for {name}")
        if name in given:
            raise ValueError(f"--on {where}: {name} is given twice")
        given[name] = value
    slots = int(given.pop(SLOTS, DEFAULT_SLOTS))
    return SlurmOptions(slots, tuple(given.items()))
