# SPDX-License-Identifier: GPL-2.0-or-later
"""Owners of stacks: a run takes its own down, and a dead run's; it refuses all other stacks."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from contract.swap import ON_DISK, Swap
from errors import UserError
from setup.crypt_lvm import swaps
from setup.crypt_lvm.activation import MOUNT, activate, check_mount
from setup.crypt_lvm.creation import create, destroy
from setup.crypt_lvm.mapper import uninterrupted
from setup.crypt_lvm.stack import (
    Stack,
    is_whole,
    load_record,
    load_state,
    process_of,
    stack_of,
    states,
)
from setup.crypt_lvm.stack_build import SWAP_BYTES


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
    """Create and activate a stack that this process owns; take it down on leaving in any way.

    A dead run's stack on dev is taken down first; a live run's, or one made by hand, is refused.
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
        state = load_record(stack.record)
        yield stack_of(state) if state else stack
    finally:
        with uninterrupted():
            me = process_of(os.getpid())
            for left in states():
                if left["owner"] == me:
                    destroy(stack_of(left))


def clear_dead(dev: str) -> None:
    """Take a dead run's stack on dev down; refuse a live run's, or one made by hand."""
    refuse_others(dev)
    if state := load_state(dev):
        destroy(stack_of(state))


def refuse_others(dev: str) -> None:
    """UserError for a live run's stack on dev, or one made by hand."""
    state = load_state(dev)
    if not state:
        return
    owner = state["owner"]
    if owner and process_of(owner["pid"]) == owner:
        raise UserError(f"{dev} is in use by another run (pid {owner['pid']})")
    if owner is None and is_whole(stack_of(state)):
        raise UserError(
            f"{dev} holds a stack that was made by hand",
            hint=f"python3 -m setup.crypt_lvm destroy {dev}",
        )
