# SPDX-License-Identifier: GPL-2.0-or-later
"""Gives all kernels of a bisect the same MemAvailable, however much memory each kernel takes.

A kernel's size changes MemAvailable, and a few MiB change the stalls. The good end's first run, in
a VM of the given size, sets the MemAvailable of all kernels when the workload begins. A run that
has more or less is cut short there, and repeated in a VM smaller or larger by the difference.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from contract.run_files import MEMINFO
from run.bisect.state import State

COLUMN = "MemAvailable"
TOLERANCE_KIB = 1024  # a VM's memory is whole MiB
MOST_MIB = 64  # a larger difference is not due to the kernel's size
ATTEMPTS = 3  # VMs of other sizes, per kernel


class Memory:
    """Chooses each kernel's VM size. reference: the name of the good end; lock: the state's."""

    def __init__(self, state: State, reference: str, lock: AbstractContextManager[Any]) -> None:
        self._state = state
        self._reference = reference
        self._lock = lock
        self._looked: set[Path] = set()
        self._attempts: dict[str, int] = {}

    def more_mib(self, name: str, near: str = "") -> int:
        """MiB to add to the kernel's VM; as for the kernel `near` if this kernel never ran."""
        with self._lock:
            known = self._state.memory.get(name) or self._state.memory.get(near) or {}
            return known.get("more_mib", 0)

    def misfits(self, name: str, run: Path, more_mib: int) -> bool:
        """Whether a run in a VM with more_mib MiB added has another MemAvailable than the good end.

        If so, changes the size of the kernel's next VM.
        """
        if run in self._looked:
            return False
        has = available(run)
        if has is None:
            return False
        with self._lock:
            if not self._state.available_kib:
                if name != self._reference:
                    return False  # compared once the good end's is known
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
    """Kernels whose last run still had another MemAvailable than the good end."""
    wanted = state.available_kib
    return [
        name
        for name, memory in state.memory.items()
        if abs(memory["available_kib"] - wanted) > TOLERANCE_KIB
    ]


def available(run: Path) -> int | None:
    """MemAvailable in KiB when the workload began; None if it is not known yet."""
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
