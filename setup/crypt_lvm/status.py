# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports the state of the stack on a device, and its parts."""

from dataclasses import asdict
from typing import Any

from contract.swap import NONE
from errors import UserError
from setup.crypt_lvm import swaps
from setup.crypt_lvm.activation import mounted_at
from setup.crypt_lvm.stack import is_whole, load_state, stack_of
from setup.devices.check import check_device


def status(dev: str) -> dict[str, Any]:
    """The state (`none`, `partial`, `created`, `active`) and the parts of the stack on dev."""
    state = load_state(dev)
    if not state:
        facts: dict[str, Any] = {"device": dev, "state": "none", "found": "empty"}
        try:
            check_device(dev, destroy_data=None)
        except UserError as error:
            facts["found"] = str(error)
        return facts
    stack = stack_of(state)
    mounted, on = mounted_at(stack), swaps.is_on(stack.swapped_to)
    swap = state.get("swap")
    whole = state["stage"] == "created" and is_whole(stack)
    word = "partial" if not whole else "active" if mounted and (on or swap == NONE) else "created"
    return {
        **asdict(stack),
        "state": word,
        "mount": mounted[0] if mounted else "",
        "swap": swap,
        "swap_on": on,
        "other_swaps_off": state["swaps"],
        "owner": state["owner"],
    }
