# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine models of a VM: machines/NAME.toml, or the user's own file.

docs/explain/machines-and-clocks.md describes them. A key of such a file sets the default of the
option with that name; a key of its table `disk` sets the default of --disk-KEY.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from contract import values
from contract.run_files import PLAN_FILE
from contract.untrusted import LARGEST_TOML, toml_tables

FOLDER = Path(__file__).resolve().parent.parent / "machines"
KINDS = ("rotating", "flash")
MIPS = (1000, 500, 250, 125)  # QEMU counts 2^n ns per instruction: n from 0
PLAIN = ("cpus", "cpu_mips", "memory")
OF_DISK = ("kind", "iops", "bps", "parallel", "depth", "queues")
NEEDED = ("cpus", "memory")
# How a value is read, on a command line and in a file.
READERS: dict[str, Callable[[str], Any]] = {
    "cpus": values.count,
    "memory": values.memory,
    "disk_iops": values.count,
    "disk_bps": values.size,
    "disk_parallel": values.up_to(256),
    "disk_depth": values.power_of_two(4, 1024),
    "disk_queues": values.up_to(64),
}


def named() -> list[str]:
    """Names of the machine models that come with the suite."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def known(text: str) -> str:
    """A machine model's name, or its file's absolute path; Refused unless read() accepts it."""
    machine = os.path.realpath(values.path(text)) if text.endswith(".toml") else text
    if Path(machine).name == PLAN_FILE:
        raise values.Refused(f"{machine}: a campaign's own file is called so, and no machine")
    try:
        read(machine)
    except ValueError as error:
        raise values.Refused(str(error)) from None
    return machine


def name_of(machine: str) -> str:
    """The name of a machine model: its own, or its file's without `.toml`."""
    return Path(machine).stem if machine.endswith(".toml") else machine


def changed(machine: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options that differ from the machine model, except memory, which profiles set, too."""
    model = read(machine)
    return tuple(
        name
        for name in sorted(model)
        if name != "memory" and name in options and (options[name] or None) != model[name]
    )


def read(machine: str) -> dict[str, Any]:
    """The defaults of the options that a machine model can set; None for keys that it lacks.

    machine: a name of named() or a path that ends with .toml. ValueError, in one line, if there is
    no such model or if its file is invalid. Sizes are bytes, rates are per second.
    """
    is_file = machine.endswith(".toml")
    if not is_file and machine not in named():
        raise ValueError(f"no such machine: {machine!r} ({', '.join(named())}, or FILE.toml)")
    path = Path(machine) if is_file else FOLDER / f"{machine}.toml"
    try:
        with path.open(encoding="utf-8") as file:
            tables = toml_tables(file.read(LARGEST_TOML + 1))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {' '.join(str(error).split())}") from None
    try:
        return _checked(tables)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _checked(tables: Mapping[str, Any]) -> dict[str, Any]:
    disk = tables.get("disk", {})
    if not isinstance(disk, dict):
        raise ValueError("[disk] is no table")
    for key in tables:
        if key not in (*PLAIN, "disk"):
            raise ValueError(f"no key {key!r} (there are {', '.join(PLAIN)} and [disk])")
    for key in disk:
        if key not in OF_DISK:
            raise ValueError(f"[disk] has no key {key!r} (it has {', '.join(OF_DISK)})")
    missing = [key for key in NEEDED if key not in tables]
    missing += [f"disk.{key}" for key in OF_DISK if disk and key not in disk]
    if missing:
        raise ValueError(f"{', '.join(missing)}: not said")
    if disk.get("kind") == "rotating" and disk["parallel"] != 1:
        raise ValueError("disk.parallel: a rotating disk does one at a time")
    options: dict[str, Any] = {key: tables.get(key) for key in PLAIN}
    options |= {f"disk_{key}": disk.get(key) for key in OF_DISK}
    return {key: None if value is None else _read(key, value) for key, value in options.items()}


def _read(key: str, value: Any) -> Any:
    """A value, parsed like its option's; the file has numbers as numbers and sizes as strings."""
    if type(value) is not (str if key in ("memory", "disk_kind") else int):
        raise ValueError(f"{key.replace('disk_', 'disk.')}: not {value!r}")
    if key == "cpu_mips" and value not in MIPS:
        raise ValueError(f"cpu_mips: {', '.join(map(str, MIPS))}, not {value}")
    if key == "disk_kind" and value not in KINDS:
        raise ValueError(f"disk.kind: {' or '.join(KINDS)}, not {value!r}")
    try:
        return READERS[key](str(value)) if key in READERS else value
    except values.Refused as error:
        raise ValueError(f"{key.replace('disk_', 'disk.')}: {error}") from None
