# SPDX-License-Identifier: GPL-2.0-or-later
"""Activates a stack (mounts its file system, switches swap over to it), and undoes that."""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.swap import ON_DISK, Swap
from errors import UserError
from setup.crypt_lvm import swaps
from setup.crypt_lvm.mapper import run, uninterrupted
from setup.crypt_lvm.stack import (
    Stack,
    is_whole,
    load_record,
    process_of,
    save_state,
    stack_of,
    standing,
    state_lock,
)
from setup.devices.use import mounts

MOUNT = Path("/scratch")


def activate(stack: Stack, mount: Path = MOUNT, swap: Swap = ON_DISK) -> None:
    """Mount the file system at mount, turn this swap on, and record and turn off all other swap."""
    with state_lock():
        state = load_record(stack.record)
        if not state or state["stage"] != "created" or not is_whole(stack):
            raise UserError(f"{stack.device}: nothing to activate", hint="create it first")
        if state.get("swap") not in (None, str(swap)):
            raise UserError(
                f"{stack.device} is active with --swap {state['swap']}", hint="deactivate first"
            )
        try:
            _activate(stack, mount, state, swap)
        except BaseException:
            with uninterrupted():
                undo(state)
            raise


def _activate(stack: Stack, mount: Path, state: dict[str, Any], swap: Swap) -> None:
    folder = mount.resolve()
    place = str(folder)
    mounted = mounted_at(stack)
    if mounted and mounted != [place]:
        raise UserError(f"{stack.fs_device} is mounted on {mounted[0]}", hint="deactivate first")
    if not mounted:
        check_mount(mount)
        state["made"] = not folder.is_dir()
        save_state(state, mounted=place)
        folder.mkdir(parents=True, exist_ok=True)
        run("mount", "-t", stack.fs, stack.fs_device, place)
    state["stack"]["mount"] = place
    save_state(state, swap=str(swap))
    ours = str(state["stack"].get("swapped_to", ""))
    if not swaps.is_on(ours):
        swaps.unmake(state)
        ours = swaps.make(swap, stack.swap_device, state)
    state["stack"]["swapped_to"] = ours
    others = swaps.others(ours)
    swaps.refuse_unrestorable(others)
    known = {entry[0] for entry in state["swaps"]}
    save_state(state, swaps=state["swaps"] + [entry for entry in others if entry[0] not in known])
    # Ours first: the contents of the others must go somewhere.
    if ours:
        swaps.turn_on(ours)
    swaps.turn_off(others)


def deactivate(stack: Stack) -> None:
    """Unmount, restore the other swaps with their priorities, and turn ours off."""
    with state_lock(), uninterrupted():
        if state := load_record(stack.record):
            undo(state)


def undo(state: dict[str, Any]) -> None:
    """Undo the activation that the record describes; the caller holds the lock."""
    stack = stack_of(state)
    _all(
        lambda: swaps.restore(state["swaps"]),
        lambda: swaps.turn_off_ours(stack, state),
        lambda: patiently(lambda: swaps.unmake(state)),
        lambda: _unmount(stack, state),
    )
    state["stack"]["mount"] = state["stack"]["swapped_to"] = ""
    save_state(state, swaps=[], mounted=None, made=False, swap=None)


def _unmount(stack: Stack, state: dict[str, Any]) -> None:
    owner = state["owner"]
    # After a run was killed, its recorder may still be ending the run's programs.
    attempts = 240 if owner and process_of(owner["pid"]) != owner else 20
    for place in reversed(mounted_at(stack)):
        patiently(lambda place=place: run("umount", place, timeout=600), attempts)  # type: ignore[misc]
    if state.get("made") and state["mounted"]:
        with contextlib.suppress(OSError):
            Path(state["mounted"]).rmdir()


def check_mount(mount: Path = MOUNT) -> None:
    """UserError if the mount point is in use, or is not an empty folder."""
    place = mount.resolve()
    if any(str(place) == other for _number, other, _source in mounts()):
        raise UserError(f"{mount} is in use as a mount point", hint="unmount it")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UserError(
            f"{mount}, the mount point of the test, exists and is not an empty folder",
            hint="move it away for the test",
        )


def mounted_at(stack: Stack) -> list[str]:
    """The mount points of the file system by its device number, in /proc/self/mountinfo's order."""
    if stack.logical[0] not in standing(stack) or not Path(stack.fs_device).exists():
        return []
    node = Path(stack.fs_device).stat().st_rdev
    number = f"{os.major(node)}:{os.minor(node)}"
    return [place for device, place, _source in mounts() if device == number]


def _all(*steps: Callable[[], None]) -> None:
    """Take every step even if one fails; then raise the first failure."""
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except (UserError, OSError) as error:
            first = first or error
    if first:
        raise first


def patiently(step: Callable[[], object], attempts: int = 20) -> None:
    """Retry for some seconds: an ending program or udev's blkid may still hold the device."""
    for attempt in range(attempts):
        try:
            step()
            return
        except (UserError, OSError):
            if attempt == attempts - 1:
                raise
            time.sleep(0.25)
