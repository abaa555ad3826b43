# SPDX-License-Identifier: GPL-2.0-or-later
"""Creates a stack on a device, and destroys it until the device is empty again."""

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from errors import Exit, UserError
from setup.crypt_lvm import activation, mapper
from setup.crypt_lvm.activation import patiently
from setup.crypt_lvm.mapper import uninterrupted
from setup.crypt_lvm.stack import (
    Stack,
    forget,
    is_whole,
    load_record,
    process_of,
    record_of,
    save_state,
    stack_of,
    standing,
    state_lock,
)
from setup.crypt_lvm.stack_build import FILE_SYSTEMS, SWAP_BYTES, build, free_prefix
from setup.devices import loop_devices
from setup.devices.check import checked
from setup.devices.device import Device, opened


def create(
    dev: str,
    *,
    fs: str = "ext4",
    crypt: bool = True,
    swap_bytes: int = SWAP_BYTES,
    destroy_data: str | None = None,
    owner: int | None = None,
) -> Stack:
    """Build the stack on dev, or return the existing one if it was made with the same options.

    swap_bytes is reduced if the file system would get less than 512 MiB or a third of the device.
    owner: pid of the run that owns the stack. Any failure undoes all steps and raises UserError.
    """
    if fs not in FILE_SYSTEMS:
        raise UserError(f"unknown file system: {fs}", status=Exit.USAGE)
    with state_lock(), opened(dev) as device:
        record = record_of(device.stat)
        if state := load_record(record):
            stack = stack_of(state)
            same = state["identity"] == device.identity()
            if same and state["stage"] == "created" and is_whole(stack):
                if (stack.fs, stack.crypt is not None, state["asked"]) == (fs, crypt, swap_bytes):
                    return stack
                raise UserError(
                    f"{dev} holds a stack with other options",
                    hint=f"python3 -m setup.crypt_lvm destroy {dev}",
                )
            _destroy(state)
        mapper.require_kernel(crypt)
        with checked(device, destroy_data=destroy_data):
            state = _new_state(device, record, fs, crypt, swap_bytes, owner)
            save_state(state)
            try:
                return build(device, state, swap_bytes, destroy_data is not None)
            except BaseException:
                with uninterrupted():
                    device.release()
                    _destroy(state, just_made=True)
                raise


def _new_state(
    device: Device, record: str, fs: str, crypt: bool, swap_bytes: int, owner: int | None
) -> dict[str, Any]:
    prefix = free_prefix()
    vg = f"{prefix}crypt-volume"
    stack = Stack(
        device=device.name,
        prefix=prefix,
        crypt=f"/dev/mapper/{prefix}crypt-partition" if crypt else None,
        vg=vg,
        fs_device=f"/dev/{vg}/{prefix}crypt-logical",
        swap_device=f"/dev/{vg}/{prefix}crypt-swap",
        fs=fs,
        mount="",
        record=record,
    )
    return {
        "stage": "checked",
        "identity": device.identity(),
        "path": device.path,
        "loop": None,
        "owner": process_of(owner),
        "asked": swap_bytes,
        "swaps": [],
        "mounted": None,
        "stack": asdict(stack),
    }


def destroy(stack: Stack) -> None:
    """Take the stack down and zero the device's first and last MiB: it is empty again.

    If the stack no longer exists, only its record is removed: the device may hold others' data now.
    """
    with state_lock(), uninterrupted():
        if state := load_record(stack.record):
            _destroy(state)


def _destroy(state: dict[str, Any], *, just_made: bool = False) -> None:
    """Take the stack down. just_made: nobody else can have used the device since our first write.

    For a dead run's stack this is only certain while the stack exists: a user who took it apart by
    hand may have put data on the device.
    """
    stack = stack_of(state)
    existing = standing(stack)
    # Volumes before the layers below them.
    names = [name for name in (*stack.logical, Path(stack.crypt or "").name) if name in existing]
    ours = just_made or bool(existing)
    activation.undo(state)
    loop = _own_loop(state)
    for name in names[:-1]:
        mapper.remove(name)
    if ours and state["stage"] != "checked":
        # While the last layer exists: after a kill, only it shows that the device is ours.
        patiently(lambda: _zero(state, loop, names[-1:]))
    for name in names[-1:]:
        mapper.remove(name)
    _forget_nodes(stack)
    if loop:
        loop_devices.detach(loop)
    forget(state)


def _own_loop(state: dict[str, Any]) -> str:
    """The loop device of this stack, if it is still attached to the same file; else ""."""
    loop, inode = state["loop"], state["identity"].get("inode")
    if not loop or inode is None:
        return ""
    own = loop_devices.Backing(False, tuple(inode))
    return loop if loop in loop_devices.on(own) else ""


def _zero(state: dict[str, Any], loop: str, upon: list[str]) -> None:
    """Zero the ends of the device that was written to, if it still exists and is the same.

    upon: our mapping on top of it, if there is one; nothing may use it.
    """
    node = loop or ("" if state["loop"] else stack_of(state).disk)
    if not node or not Path(node).exists():
        return
    with contextlib.ExitStack() as held:
        for name in upon:
            held.enter_context(opened(mapper.node(name))).claim()
        disk = held.enter_context(opened(node))
        if loop or disk.identity() == state["identity"]:
            disk.claim(alone=not upon)
            disk.zero_ends()


def _forget_nodes(stack: Stack) -> None:
    """Remove the links that LVM made in /dev; if udev runs, it removes them."""
    folder = Path("/dev") / stack.vg
    for path in (Path(stack.fs_device), Path(stack.swap_device)):
        if path.is_symlink() and not path.exists():
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
