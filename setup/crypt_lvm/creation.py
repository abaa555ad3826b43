# SPDX-License-Identifier: GPL-2.0-or-later
"""A stack on a device from its first layer until the device is empty again."""

import contextlib
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from errors import Exit, UserError
from setup.crypt_lvm import activation, mapper
from setup.crypt_lvm.activation import patiently
from setup.crypt_lvm.mapper import lvm, run, uninterrupted
from setup.crypt_lvm.stack import (
    Stack,
    is_whole,
    load_state,
    process_of,
    save_state,
    stack_of,
    state_lock,
    state_path,
)
from setup.crypt_lvm.stack_build import FILE_SYSTEMS, SWAP_BYTES, build, free_prefix
from setup.device_check import check_device, identity, is_block, loops_of, zero_ends


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
    with state_lock():
        state = load_state(dev)
        if state:
            found = stack_of(state)
            if state["stage"] == "created" and is_whole(found):
                if (found.fs, found.crypt is not None, state["asked"]) == (fs, crypt, swap_bytes):
                    return found
                raise UserError(
                    f"{dev} holds a stack with other options",
                    hint=f"python3 -m setup.crypt_lvm destroy {dev}",
                )
            _destroy(dev, state)
        mapper.require_kernel(crypt)
        check_device(dev, destroy_data=destroy_data)
        prefix = free_prefix()
        vg = f"{prefix}crypt-volume"
        state = {
            "stage": "checked",
            "identity": identity(dev),
            "owner": process_of(owner),
            "asked": swap_bytes,
            "swaps": [],
            "mounted": None,
            "stack": asdict(
                Stack(
                    device=dev,
                    prefix=prefix,
                    crypt=f"/dev/mapper/{prefix}crypt-partition" if crypt else None,
                    vg=vg,
                    fs_device=f"/dev/{vg}/{prefix}crypt-logical",
                    swap_device=f"/dev/{vg}/{prefix}crypt-swap",
                    fs=fs,
                    mount="",
                )
            ),
        }
        save_state(dev, state)
        try:
            return build(dev, state, swap_bytes, destroy_data is not None)
        except BaseException:
            with uninterrupted():
                _destroy(dev, state, just_made=True)
            raise


def destroy(stack: Stack) -> None:
    """Take the stack down and zero the device's first and last MiB: it is empty again.

    Of a stack that no longer stands only the record goes: what is there now may be another's.
    """
    with state_lock(), uninterrupted():
        state = load_state(stack.device)
        if state:
            _destroy(stack.device, state)


def _destroy(dev: str, state: dict[str, Any], *, just_made: bool = False) -> None:
    """just_made: nobody else can have had the device since its first write.

    Of a dead run that is only known while the stack stands: somebody who took it apart by hand may
    have put data of theirs on the device.
    """
    stack = stack_of(state)
    names = {*stack.logical, Path(stack.crypt or "").name}
    ours = just_made or not names.isdisjoint(mapper.mapped())
    activation.undo(dev, state)
    loops = loops_of(dev) if Path(dev).exists() and not is_block(dev) else []
    physical = stack.crypt or (loops[0] if loops else os.path.realpath(dev))
    if any(name in mapper.mapped() for name in stack.logical):
        with contextlib.suppress(UserError):
            lvm(physical, "vgchange", "--activate", "n", stack.vg)
    for name in stack.logical:
        mapper.remove(name)
    _forget_nodes(stack)
    if stack.crypt:
        mapper.remove(Path(stack.crypt).name)
    written = ours and state["stage"] != "checked"
    if written and Path(dev).exists() and identity(dev) == state["identity"]:
        patiently(lambda: zero_ends(loops[0] if loops else dev))
    for loop in loops:
        run("losetup", "--detach", loop)
    state_path(dev).unlink(missing_ok=True)


def _forget_nodes(stack: Stack) -> None:
    """Remove links that LVM without udev leaves in /dev when it could not deactivate by itself."""
    folder = Path("/dev") / stack.vg
    for path in (Path(stack.fs_device), Path(stack.swap_device)):
        if path.is_symlink() and not path.exists():
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()
