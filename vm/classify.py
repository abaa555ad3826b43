# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides how a run ended: by the guest's own status record, or else by other evidence.

QEMU's exit status does not help: it is 0 for power-off, reboot, panic and the death of init alike.
If a signal killed QEMU, the kernel is not to blame.
"""

import re
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED, HUNG, LOST, PANICKED
from contract.run_record import reported_status

_SETUP = re.compile(rb"DESKTOP-FREEZE-INIT failed: ([^\r\n]*)")
# From guest_init.sh; a shell reports 128 and more for a program that a signal ended.
_COMMAND = re.compile(rb"desktop-freeze: the guest's command ended with status (\d+)")
_BY_SIGNAL = 128
# "Out of memory:" of a whole machine, "Memory cgroup out of memory:" of a control group.
_OOM_KILL = re.compile(rb"ut of memory: Killed process \d+ ")
_PANIC = re.compile(rb"Kernel panic - not syncing:? ?([^\r\n]*)")
# An oops for an int3, and the bytes of code before the next instruction.
_INT3 = re.compile(rb"\bint3: 0000 \[#\d+\].{0,4000}?\bCode: ([0-9a-f ]*)<", re.DOTALL)
_EFLAGS = re.compile(rb"EFLAGS: ([0-9a-f]{8,16})\b")
QEMU_DIED = "QEMU died of "  # the beginning of the reason
# Every bit that a 64-bit x86 CPU can have set (Intel SDM volume 1, figure 3-8): CF 0, always one 1,
# PF 2, AF 4, ZF 6, SF 7, TF 8, IF 9, DF 10, OF 11, IOPL 12 and 13, NT 14, RF 16 ... ID 21.
_POSSIBLE_EFLAGS = 0x003F7FD7


def emulation_fault(console: bytes) -> str | None:
    """The sign of a fault of the emulated CPU in a kernel's oops; None if there is none.

    QEMU 7.2's TCG has two faults that are not the kernel's: it loses the flags of an interrupted
    program, and it runs an old version of code that another CPU is patching (static keys, kprobes).
    Since 8.1 it locks a page before it translates it, not only after.
    """
    for flags in _EFLAGS.findall(console):
        if int(flags, 16) & ~_POSSIBLE_EFLAGS:
            return f"EFLAGS {flags.decode()} is impossible"
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
    """(state, why) for status.json.

    A panic or hang after the workload's end counts, too. ended_by_us: the runner's (state, why) if
    it ended the guest (for a hang, Ctrl-C or a full disk); qemu_died: the signal that ended QEMU,
    with QEMU's last message, or None.
    """
    state, why = reported_status(events) or ("", "")
    console = console_log.read_bytes() if console_log.exists() else b""
    # After a hang we cause the panic ourselves, by the NMI that asks the kernel where it hangs.
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
    if command is None:
        return LOST, "QEMU exited before the guest reported a result"
    status = int(command[1])
    if status <= _BY_SIGNAL:
        # The measuring program ended by itself: the kernel is not to blame.
        return ABORTED, f"the guest's command ended with status {status}"
    return LOST, _killed_session(status - _BY_SIGNAL, console)


def _killed_session(number: int, console: bytes) -> str:
    """What ended the program that measures and whose children the others are."""
    why = f"the session in the guest was killed (signal {number})"
    if killed := _OOM_KILL.findall(console):
        why += f"; OOM kills in the kernel's log: {len(killed)}"
    return why
