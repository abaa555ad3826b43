# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ended: from the guest's own status record; without one, from other evidence.

QEMU's exit status says nothing: it is 0 for power-off, reboot, panic and the death of init alike.
A signal that it died of says that this was none of the kernel's doing.
"""

import re
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED, HUNG, LOST, PANICKED
from contract.run_record import said_status

_SETUP = re.compile(rb"DESKTOP-FREEZE-INIT failed: ([^\r\n]*)")
# Of guest_init.sh; a shell's status is 128 and more of a program that a signal ended.
_COMMAND = re.compile(rb"desktop-freeze: the guest's command ended with status (\d+)")
_BY_SIGNAL = 128
_PANIC = re.compile(rb"Kernel panic - not syncing:? ?([^\r\n]*)")
# An oops for an int3, and the bytes of code before the one that was to run next.
_INT3 = re.compile(rb"\bint3: 0000 \[#\d+\].{0,4000}?\bCode: ([0-9a-f ]*)<", re.DOTALL)
_EFLAGS = re.compile(rb"EFLAGS: ([0-9a-f]{8,16})\b")
QEMU_DIED = "QEMU died of "  # how the reason of such an end begins
# Every bit that a 64-bit x86 CPU can have set (Intel SDM volume 1, figure 3-8): CF 0, always one 1,
# PF 2, AF 4, ZF 6, SF 7, TF 8, IF 9, DF 10, OF 11, IOPL 12 and 13, NT 14, RF 16 ... ID 21.
_POSSIBLE_EFLAGS = 0x003F7FD7


def emulation_fault(console: bytes) -> str | None:
    """What no CPU does, in a kernel's oops; None if there is no such thing.

    Two faults of QEMU 7.2's TCG, in which the kernel has no part: it loses the flags of an
    interrupted program, and it runs code that another CPU is patching (static keys, kprobes) as it
    was a moment ago. Since 8.1 it locks a page before it translates it, and no longer only after.
    """
    for found in _EFLAGS.findall(console):
        if int(found, 16) & ~_POSSIBLE_EFLAGS:
            return f"EFLAGS {found.decode()} cannot be"
    for code in _INT3.findall(console):
        if not code.rstrip().endswith(b"cc"):
            return "it ran an int3 that is not in the kernel's code"
    return None


def classify(
    events: list[dict[str, Any]],
    console_log: Path,
    ended_by_us: tuple[str, str] | None,
    qemu_died: str | None = None,
) -> tuple[str, str]:
    """(state, why) of status.json.

    A kernel that panics or hangs after the workload's end has panicked or hung all the same.
    ended_by_us is the runner's own reason to end the guest (a hang it saw, Ctrl-C, a full disk);
    qemu_died: the signal that ended QEMU, if one did, and what it said.
    """
    state, why = said_status(events) or ("", "")
    console = console_log.read_bytes() if console_log.exists() else b""
    # After a hang the panic is our own doing: the NMI that asked the kernel where it was.
    panic = None if ended_by_us is not None else _PANIC.search(console)
    if panic and (fault := emulation_fault(console)):
        return ABORTED, f"the emulated CPU failed, not the kernel: {fault}"
    if panic:
        reason = f"kernel panic: {panic[1].decode('utf-8', 'replace').strip()}"
        return PANICKED, f"{reason} (the workload: {state}: {why})" if state else reason
    if ended_by_us is not None and (not state or ended_by_us[0] == HUNG):
        reason = ended_by_us[1]
        return ended_by_us[0], f"{reason} (the workload: {state}: {why})" if state else reason
    if state:
        return state, why
    failed = _SETUP.search(console)
    if failed:
        return ABORTED, f"the guest was not set up: {failed[1].decode('utf-8', 'replace')}"
    if qemu_died is not None:
        return ABORTED, f"{QEMU_DIED}{qemu_died}"
    command = _COMMAND.search(console)
    if command and int(command[1]) < _BY_SIGNAL:
        # The measuring program ended by itself: no kernel's doing.
        return ABORTED, f"the guest's command ended with status {int(command[1])}"
    return LOST, "QEMU ended and the guest had not said how its run ended"
