# SPDX-License-Identifier: GPL-2.0-or-later
"""The encrypted LVM volume group with a file system and swap of the original report.

    DEV -> dm-crypt crypt-partition -> PV -> VG crypt-volume -> LV crypt-logical (file system)
                                                             -> LV crypt-swap (swap)

usage: python3 -m setup.crypt_lvm create|activate|deactivate|destroy|status DEV [options]

The key is random and lives in the kernel's memory alone, from create to destroy. What must be
undone is written to /run/desktop-freeze before it is done: `destroy` also cleans up after SIGKILL.
"""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contract.swap import NONE, ON_DISK, Swap
from contract.swap import read as read_swap
from errors import Exit, UserError, run_command
from setup import mapper, swaps
from setup.device_check import check_device, identity, is_block, loops_of, mounts, zero_ends
from setup.mapper import lvm, run, uninterrupted
from setup.stack import (
    Stack,
    load_state,
    process_of,
    save_state,
    stack_of,
    state_lock,
    state_path,
)
from setup.stack_build import FILE_SYSTEMS, SWAP_BYTES, build, free_prefix

MOUNT = Path("/scratch")


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
            if state["stage"] == "created" and _is_whole(found):
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


def activate(stack: Stack, mount: Path = MOUNT, swap: Swap = ON_DISK) -> None:
    """Mount the file system at mount, turn this swap on, and all other swap off (remembered)."""
    with state_lock():
        state = load_state(stack.device)
        if not state or state["stage"] != "created":
            raise UserError(f"{stack.device}: nothing to activate", hint="create it first")
        if state.get("swap") not in (None, str(swap)):
            raise UserError(
                f"{stack.device} is active with --swap {state['swap']}", hint="deactivate first"
            )
        try:
            _activate(stack, mount, state, swap)
        except BaseException:
            with uninterrupted():
                _deactivate(stack.device, state)
            raise


def _activate(stack: Stack, mount: Path, state: dict[str, Any], swap: Swap) -> None:
    folder = mount.resolve()
    place = str(folder)
    there = _mounted_at(stack)
    if there and there != [place]:
        raise UserError(f"{stack.fs_device} is mounted on {there[0]}", hint="deactivate first")
    if not there:
        check_mount(mount)
        state["made"] = not folder.is_dir()
        save_state(stack.device, state, mounted=place)
        folder.mkdir(parents=True, exist_ok=True)
        run("mount", "-t", stack.fs, stack.fs_device, place)
    state["stack"]["mount"] = place
    save_state(stack.device, state, swap=str(swap))
    ours = str(state["stack"].get("swapped_to", ""))
    if not swaps.is_on(ours):
        swaps.unmake(stack.device, state)
        ours = swaps.make(swap, stack.swap_device, stack.device, state)
    state["stack"]["swapped_to"] = ours
    found = swaps.others(ours)
    swaps.refuse_unrestorable(found)
    known = {entry[0] for entry in state["swaps"]}
    save_state(
        stack.device, state, swaps=state["swaps"] + [one for one in found if one[0] not in known]
    )
    # Ours first: what the others hold needs a place to go to.
    if ours:
        swaps.turn_on(ours)
    swaps.turn_off(found)


def deactivate(stack: Stack) -> None:
    """Unmount, restore the other swaps with their priorities, and turn ours off."""
    with state_lock(), uninterrupted():
        state = load_state(stack.device)
        if state:
            _deactivate(stack.device, state)


def _deactivate(dev: str, state: dict[str, Any]) -> None:
    stack = stack_of(state)
    _all(
        lambda: swaps.restore(state["swaps"]),
        lambda: swaps.turn_off_ours(stack.swapped_to),
        lambda: _patiently(lambda: swaps.unmake(dev, state)),
        lambda: _unmount(stack, state),
    )
    state["stack"]["mount"] = state["stack"]["swapped_to"] = ""
    save_state(dev, state, swaps=[], mounted=None, made=False, swap=None)


def _unmount(stack: Stack, state: dict[str, Any]) -> None:
    owner = state["owner"]
    # The recorder of a run that was killed is still ending the run's programs.
    attempts = 240 if owner and process_of(owner["pid"]) != owner else 20
    for place in reversed(_mounted_at(stack)):
        _patiently(lambda place=place: run("umount", place, timeout=600), attempts)  # type: ignore[misc]
    if state.get("made") and state["mounted"]:
        with contextlib.suppress(OSError):
            Path(state["mounted"]).rmdir()


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
    _deactivate(dev, state)
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
        _patiently(lambda: zero_ends(loops[0] if loops else dev))
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


def status(dev: str) -> dict[str, Any]:
    """State (`none`, `partial`, `created`, `active`) and parts of the stack on dev."""
    state = load_state(dev)
    if not state:
        facts: dict[str, Any] = {"device": dev, "state": "none", "found": "empty"}
        try:
            check_device(dev, destroy_data=None)
        except UserError as error:
            facts["found"] = str(error)
        return facts
    stack = stack_of(state)
    there, on = _mounted_at(stack), swaps.is_on(stack.swapped_to)
    swap = state.get("swap")
    whole = state["stage"] == "created" and _is_whole(stack)
    word = "partial" if not whole else "active" if there and (on or swap == NONE) else "created"
    return {
        **asdict(stack),
        "state": word,
        "mount": there[0] if there else "",
        "swap": swap,
        "swap_on": on,
        "other_swaps_off": state["swaps"],
        "owner": state["owner"],
    }


def load(dev: str) -> Stack | None:
    """The stack that was created on dev, or None."""
    state = load_state(dev)
    return stack_of(state) if state else None


@contextlib.contextmanager
def prepared(
    dev: str,
    *,
    fs: str = "ext4",
    crypt: bool = True,
    swap_bytes: int = SWAP_BYTES,
    destroy_data: str | None = None,
    mount: Path = MOUNT,
    swap: Swap = ON_DISK,
) -> Iterator[Stack]:
    """Create and activate a stack of this process's own; take all down on every way out.

    What a dead run left on dev is taken down first. A live run's, or one made by hand, is refused.
    """
    clear_dead(dev)
    check_mount(mount)
    swaps.require(swap)
    try:
        stack = create(
            dev,
            fs=fs,
            crypt=crypt,
            swap_bytes=swap_bytes,
            destroy_data=destroy_data,
            owner=os.getpid(),
        )
        activate(stack, mount, swap)
        yield load(dev) or stack
    finally:
        with uninterrupted():
            left = load_state(dev)
            if left and left["owner"] == process_of(os.getpid()):
                destroy(stack_of(left))


def clear_dead(dev: str) -> None:
    """Take down what a dead run left on dev; refuse a live run's, or one made by hand."""
    refuse_others(dev)
    if state := load_state(dev):
        destroy(stack_of(state))


def check_mount(mount: Path = MOUNT) -> None:
    """UserError if the file system cannot be mounted there: something is."""
    place = mount.resolve()
    if any(str(place) == other for _number, other, _source in mounts()):
        raise UserError(f"{mount} is in use as a mount point", hint="unmount it")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UserError(
            f"{mount}, where the file system is mounted, is there and not an empty folder",
            hint="move it away for the test",
        )


def refuse_others(dev: str) -> None:
    """UserError for a live run's stack on dev, or one made by hand."""
    state = load_state(dev)
    if not state:
        return
    owner = state["owner"]
    if owner and process_of(owner["pid"]) == owner:
        raise UserError(f"{dev} is in use by another run (pid {owner['pid']})")
    if owner is None and _is_whole(stack_of(state)):
        raise UserError(
            f"{dev} holds a stack that was made by hand",
            hint=f"python3 -m setup.crypt_lvm destroy {dev}",
        )


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


def _patiently(step: Callable[[], object], attempts: int = 20) -> None:
    """Try for some seconds: a program just ended, or udev's blkid, may still hold the device."""
    for attempt in range(attempts):
        try:
            step()
            return
        except (UserError, OSError):
            if attempt == attempts - 1:
                raise
            time.sleep(0.25)


def _is_whole(stack: Stack) -> bool:
    return all(name in mapper.mapped() for name in stack.logical)


def _mounted_at(stack: Stack) -> list[str]:
    """Where the file system is mounted, by device number; in the order of /proc/self/mountinfo."""
    if not Path(stack.fs_device).exists():
        return []
    node = Path(stack.fs_device).stat().st_rdev
    number = f"{os.major(node)}:{os.minor(node)}"
    return [place for device, place, _source in mounts() if device == number]


def main() -> int:
    """The command line."""
    from contract.values import size

    parser = argparse.ArgumentParser(
        prog="python3 -m setup.crypt_lvm", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument(
        "command", choices=("create", "activate", "deactivate", "destroy", "status")
    )
    parser.add_argument("device", metavar="DEV", help="an unused, empty partition, disk or file")
    parser.add_argument("--fs", choices=FILE_SYSTEMS, default="ext4")
    parser.add_argument("--no-crypt", action="store_true", help="LVM directly on DEV")
    parser.add_argument("--swap-size", type=size, default=SWAP_BYTES, metavar="SIZE")
    parser.add_argument(
        "--swap", type=read_swap, default=ON_DISK, metavar="KIND", help="as run_test.sh's: activate"
    )
    parser.add_argument("--mount", type=Path, default=MOUNT, metavar="DIR")
    parser.add_argument("--destroy-data", metavar="DEV", help="DEV again: what it holds is lost")
    args = parser.parse_args()
    if args.command == "create":
        create(
            args.device,
            fs=args.fs,
            crypt=not args.no_crypt,
            swap_bytes=args.swap_size,
            destroy_data=args.destroy_data,
        )
    elif args.command != "status":
        stack = load(args.device)
        if stack is None:
            if args.command == "activate":
                raise UserError(f"{args.device}: nothing to activate", hint="create it first")
        elif args.command == "activate":
            activate(stack, args.mount, args.swap)
        else:
            {"deactivate": deactivate, "destroy": destroy}[args.command](stack)
    print(json.dumps(status(args.device), indent=1))
    return int(Exit.OK)


if __name__ == "__main__":
    raise SystemExit(run_command("crypt_lvm", main))
