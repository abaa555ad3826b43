# SPDX-License-Identifier: GPL-2.0-or-later
"""A stack on a device, and its record in /run/desktop-freeze, by which it can be undone.

A record is named by the device's identity (its number, or a file's inode), not by its path: two
paths of a device have one record, and a path that leads to another device by now has another.
"""

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import UserError
from setup.crypt_lvm import mapper
from setup.crypt_lvm.mapper import RUN
from setup.devices import device


@dataclass(frozen=True)
class Stack:
    """The parts of a stack on a device, as paths. crypt is None without encryption.

    device: as the user spelled it. record: the name of the record's file. disk: the block device at
    the bottom once the stack is built: the device, or a loop device on the file. swap_device: the
    volume for swap. swapped_to: the swap that is on once the stack is active; "": none.
    """

    device: str
    prefix: str
    crypt: str | None
    vg: str
    fs_device: str
    swap_device: str
    fs: str
    mount: str
    swap_bytes: int = 0
    swapped_to: str = ""
    disk: str = ""
    record: str = ""
    vg_uuid: str = ""

    @property
    def logical(self) -> tuple[str, str]:
        """Device-mapper names of the file system's and the swap's volume."""
        return (
            mapper.mangled(self.vg, f"{self.prefix}crypt-logical"),
            mapper.mangled(self.vg, f"{self.prefix}crypt-swap"),
        )


def process_of(pid: int | None) -> dict[str, Any] | None:
    """A process's pid and start time (/proc/PID/stat, field 22), which together identify it."""
    if pid is None:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return {"pid": pid, "start": ""}
    return {"pid": pid, "start": text.rpartition(")")[2].split()[19]}


def record_of(status: os.stat_result) -> str:
    """The name of the record for a block device or file."""
    if stat.S_ISBLK(status.st_mode):
        return f"stack-block-{device.number_of(status).replace(':', '-')}.json"
    return f"stack-file-{status.st_dev}-{status.st_ino}.json"


def load_record(name: str) -> dict[str, Any] | None:
    """The record of that name; None if there is none."""
    try:
        state = json.loads((RUN / name).read_text())
    except FileNotFoundError:
        return None
    assert isinstance(state, dict)
    return state


def load_state(dev: str) -> dict[str, Any] | None:
    """The record of the device that dev names now, or of one that had this real path before.

    The latter's stack may still exist: its file was replaced, or its disk was removed.
    """
    status = device.stat_of(dev)
    if status is not None and (state := load_record(record_of(status))):
        return state
    real = os.path.realpath(dev)
    return next((state for state in states() if state["path"] == real), None)


def states() -> list[dict[str, Any]]:
    """All records."""
    loaded = (load_record(path.name) for path in sorted(RUN.glob("stack-*.json")))
    return [state for state in loaded if state]


def save_state(state: dict[str, Any], **changes: Any) -> None:
    """Merge changes into state and replace its file as a whole; called before a step is done."""
    state.update(changes)
    path = RUN / state["stack"]["record"]
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(state, indent=1) + "\n")
    aside.rename(path)


def forget(state: dict[str, Any]) -> None:
    """Remove the record: nothing is left to undo."""
    path = RUN / state["stack"]["record"]
    path.with_suffix(".new").unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def stack_of(state: dict[str, Any]) -> Stack:
    return Stack(**state["stack"])


def load(dev: str) -> Stack | None:
    """The stack that was created on dev; None if there is none."""
    state = load_state(dev)
    return stack_of(state) if state else None


def standing(stack: Stack) -> set[str]:
    """The names of its existing mappings.

    A mapping of the same name made by others does not count.
    """
    disk = stack.disk.removeprefix("/dev/").replace("/", "!")
    made_by = {}
    if stack.crypt:
        made_by[Path(stack.crypt).name] = f"CRYPT-PLAIN-{Path(stack.crypt).name}"
    if stack.vg_uuid:  # without it no volume can exist yet
        made_by |= dict.fromkeys(stack.logical, f"LVM-{stack.vg_uuid.replace('-', '')}")
    return {name for name, uuid in made_by.items() if mapper.stands_on(name, disk, uuid)}


def is_whole(stack: Stack) -> bool:
    """Whether both of its volumes exist."""
    return standing(stack) >= set(stack.logical)


@contextlib.contextmanager
def state_lock() -> Iterator[None]:
    """Allow one command at a time.

    A second one also waits for programs that a killed one started.
    """
    try:
        RUN.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise UserError(f"{RUN}: permission denied", hint="this needs root") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with mapper.inherited(descriptor):
            yield
    finally:
        os.close(descriptor)
