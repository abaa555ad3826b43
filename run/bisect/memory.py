# SPDX-License-Identifier: GPL-2.0-or-later
"""The same MemAvailable for all kernels of a bisect, whatever each takes for itself.

A kernel's size moves what is left, and a few MiB move the stalls. The good end's first run, in a VM
of the size that was asked for, sets what all have when the workload begins. A run that has more or
less is cut short there, and repeated in a VM that is so many MiB smaller or larger.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from contract.run_files import MEMINFO
from run.bisect.state import State

COLUMN = "MemAvailable"
TOLERANCE_KIB = 1024  # a VM's memory is whole MiB
MOST_MIB = 64  # what differs by more is not the kernel's size
ATTEMPTS = 3  # VMs of another size for one kernel


class Memory:
    """Which VM each kernel gets. reference: the name of the good end; lock: of the state."""

    def __init__(self, state: State, reference: str, lock: AbstractContextManager[Any]) -> None:
        self._state = state
        self._reference = reference
        self._lock = lock
        self._looked: set[Path] = set()
        self._attempts: dict[str, int] = {}

    def more_mib(self, name: str, near: str = "") -> int:
        """How much larger its VM is; of a kernel that never ran as that of one near it."""
        with self._lock:
            known = self._state.memory.get(name) or self._state.memory.get(near) or {}
            return known.get("more_mib", 0)

    def misfits(self, name: str, run: Path, more_mib: int) -> bool:
        """Whether that run, which goes on in a VM of so much more, has another MemAvailable.

        What its kernel's next VM gets is changed then.
        """
        if run in self._looked:
            return False
        has = available(run)
        if has is None:
            return False
        with self._lock:
            if not self._state.available_kib:
                if name != self._reference:
                    return False  # looked at again, when it is known
                self._state.available_kib = has
            self._looked.add(run)
            lacks = self._state.available_kib - has
            change = round(lacks / 1024)
            self._state.memory[name] = {"more_mib": more_mib, "available_kib": has}
            if abs(lacks) <= TOLERANCE_KIB or abs(more_mib + change) > MOST_MIB:
                return False
            self._attempts[name] = self._attempts.get(name, 0) + 1
            if self._attempts[name] > ATTEMPTS:
                return False
            self._state.memory[name]["more_mib"] = more_mib + change
            return True


def unmatched(state: State) -> list[str]:
    """The kernels whose last run had another MemAvailable than the good end's, all the same."""
    wanted = state.available_kib
    return [
        name
        for name, one in state.memory.items()
        if abs(one["available_kib"] - wanted) > TOLERANCE_KIB
    ]


def available(run: Path) -> int | None:
    """MemAvailable in KiB as the workload began; None if it is not known yet."""
    try:
        with open(run / f"{MEMINFO}.tsv") as file:
            columns = file.readline().rstrip("\n").split("\t")
            row = file.readline()
    except OSError:
        return None
    cells = row.rstrip("\n").split("\t")
    if not row.endswith("\n") or len(cells) != len(columns) or COLUMN not in columns:
        return None
    cell = cells[columns.index(COLUMN)]
    return int(cell) if cell.isdigit() else None
