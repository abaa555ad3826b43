# SPDX-License-Identifier: GPL-2.0-or-later
"""What stands on a device, and the record in /run/desktop-freeze from which it can be undone."""

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from errors import UserError
from setup.crypt_lvm import mapper
from setup.crypt_lvm.mapper import RUN


@dataclass(frozen=True)
class Stack:
    """What stands on a device: paths of its parts. crypt is None without encryption.

    swap_device: the volume for swap. swapped_to: what is swapped to, once it is active; "": none.
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

    @property
    def logical(self) -> tuple[str, str]:
        """Device-mapper names of the file system's and the swap's volume."""
        return (
            mapper.mangled(self.vg, f"{self.prefix}crypt-logical"),
            mapper.mangled(self.vg, f"{self.prefix}crypt-swap"),
        )


def process_of(pid: int | None) -> dict[str, Any] | None:
    """pid and start time (/proc/PID/stat, field 22): no later process of that pid has both."""
    if pid is None:
        return None
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return {"pid": pid, "start": ""}
    return {"pid": pid, "start": text.rpartition(")")[2].split()[19]}


def state_path(dev: str) -> Path:
    real = os.path.realpath(dev)
    name = real.strip("/").replace("/", "-")
    if len(name) > 100:
        name = hashlib.sha256(real.encode()).hexdigest()[:16]
    return RUN / f"{name}.json"


def load_state(dev: str) -> dict[str, Any] | None:
    try:
        state = json.loads(state_path(dev).read_text())
    except FileNotFoundError:
        return None
    assert isinstance(state, dict)
    return state


def save_state(dev: str, state: dict[str, Any], **changes: Any) -> None:
    """Merge changes into state and write it, whole or not at all; before the thing is done."""
    state.update(changes)
    path = state_path(dev)
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(state, indent=1) + "\n")
    aside.rename(path)


def stack_of(state: dict[str, Any]) -> Stack:
    return Stack(**state["stack"])


def load(dev: str) -> Stack | None:
    """The stack that was created on dev, or None."""
    state = load_state(dev)
    return stack_of(state) if state else None


def is_whole(stack: Stack) -> bool:
    """Whether both of its volumes are there."""
    return all(name in mapper.mapped() for name in stack.logical)


@contextlib.contextmanager
def state_lock() -> Iterator[None]:
    """One command at a time: a second one waits."""
    try:
        RUN.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(RUN / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except PermissionError:
        raise UserError(f"{RUN}: permission denied", hint="this needs root") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
