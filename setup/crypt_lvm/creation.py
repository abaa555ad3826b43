# SPDX-License-Identifier: GPL-2.0-or-later
"""A stack on a device from its first layer until the device is empty again."""

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
    """Build the stack on dev, or return the one that is there if it was made with the same options.

    swap_bytes shrinks until the file system has 512 MiB and a third of the device. owner is the pid
    of the run that the stack belongs to. Any failure undoes what was done, then raises UserError.
    """
    if fs not in FILE_SYSTEMS:
        raise UserError(f"no such file system: {fs}", status=Exit.USAGE)
    with state_lock(), opened(dev) as device:
        record = record_of(device.found)
        if state := load_record(record):
            found = stack_of(state)
            its = state["identity"] == device.identity()
            if its and state["stage"] == "created" and is_whole(found):
                if (found.fs, found.crypt is not None, state["asked"]) == (fs, crypt, swap_bytes):
                    return found
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

    Of a stack that no longer stands only the record goes: what is there now may be another's.
    """
    with state_lock(), uninterrupted():
        if state := load_record(stack.record):
            _destroy(state)


def _destroy(state: dict[str, Any], *, just_made: bool = False) -> None:
    """just_made: nobody else can have had the device since its first write.

    Of a dead run that is only known while the stack stands: somebody who took it apart by hand may
    have put data of theirs on the device.
    """
    stack = stack_of(state)
    there = standing(stack)
    # Volumes before what they stand on.
    names = [name for name in (*stack.logical, Path(stack.crypt or "").name) if name in there]
    ours = just_made or bool(there)
    activation.undo(state)
    loop = _own_loop(state)
    for name in names[:-1]:
        mapper.remove(name)
    if ours and state["stage"] != "checked":
        # While the last one stands: without it, nobody could tell after a kill that it is ours.
        patiently(lambda: _zero(state, loop, names[-1:]))
    for name in names[-1:]:
        mapper.remove(name)
    _forget_nodes(stack)
    if loop:
        loop_devices.detach(loop)
    forget(state)


def _own_loop(state: dict[str, Any]) -> str:
    """The loop device that was attached for this stack, if it still is on the same file; or ""."""
    loop, inode = state["loop"], state["identity"].get("inode")
    if not loop or inode is None:
        return ""
    own = loop_devices.Backing(False, tuple(inode))
    return loop if loop in loop_devices.on(own) else ""


def _zero(state: dict[str, Any], loop: str, upon: list[str]) -> None:
    """Zero the ends of the device that was written to, if it is there and is still the same.

    upon: the mapping of ours that stands upon it, if one does; nobody may use that.
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
    """Remove the links that LVM has made in /dev; where udev runs, it does."""
    folder = Path("/dev") / stack.vg
    for path in (Path(stack.fs_device), Path(stack.swap_device)):
        if path.is_symlink() and not path.exists():
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
