# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ended: from the guest's own status record; without one, from other evidence.

QEMU's exit status says nothing: it is 0 for power-off, reboot, panic and the death of init alike.
"""

import re
from pathlib import Path
from typing import Any

_SETUP = re.compile(rb"DESKTOP-FREEZE-INIT failed: ([^\r\n]*)")
_PANIC = re.compile(rb"Kernel panic - not syncing:? ?([^\r\n]*)")


def classify(
    events: list[dict[str, Any]], console_log: Path, ended_by_us: tuple[str, str] | None
) -> tuple[str, str]:
    """(state, why) of status.json.

    A kernel that panics or hangs after the workload's end has panicked or hung all the same.
    ended_by_us is the runner's own reason to end the guest (a hang it saw, Ctrl-C, a full disk).
    """
    said = next((event for event in reversed(events) if event["event"] == "status"), None)
    state, why = (str(said["state"]), str(said["why"])) if said is not None else ("", "")
    console = console_log.read_bytes() if console_log.exists() else b""
    # After a hang the panic is our own doing: the NMI that asked the kernel where it was.
    panic = None if ended_by_us is not None else _PANIC.search(console)
    if panic:
        reason = f"kernel panic: {panic[1].decode('utf-8', 'replace').strip()}"
        return "panicked", f"{reason} (the workload: {state}: {why})" if state else reason
    if ended_by_us is not None and (not state or ended_by_us[0] == "hung"):
        reason = ended_by_us[1]
        return ended_by_us[0], f"{reason} (the workload: {state}: {why})" if state else reason
    if state:
        return state, why
    failed = _SETUP.search(console)
    if failed:
        return "aborted", f"the guest was not set up: {failed[1].decode('utf-8', 'replace')}"
    return "lost", "QEMU ended and the guest had not said how its run ended"
