# SPDX-License-Identifier: GPL-2.0-or-later
"""Are the echoes what they claim? Counts the allocations that the kernel makes for some of them.

A perf counter on the tracepoint kmem:mm_page_alloc, of this task alone (the softirq that makes a
reply runs on top of whoever sent the request), with the kernel's own filter: of this order, of
GFP_ATOMIC. It is there for the time of COUNT echoes, and nothing is left of it.
"""

import ctypes
import os
from fcntl import ioctl
from struct import pack, unpack

from echo_load.echo import ADDRESS, GIVE_UP, exchange
from errors import UserError
from measure.tracepoints import PAGE_ALLOC, find_tracefs, print_flags, read_format

COUNT = 50
DISABLED = 1  # the first flag of perf_event_attr
IOC_ENABLE, IOC_DISABLE, IOC_SET_FILTER = 0x2400, 0x2401, 0x40082406
PERF_TYPE_TRACEPOINT, PERF_FLAG_CLOEXEC, ATTR_BYTES = 2, 8, 112
# perf_event_open's number: x86-64's own; arm64, riscv and loongarch share theirs.
SYSCALLS = {
    **{"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241},
    **{"ppc64le": 319, "s390x": 331},
}


class NotAvailable(Exception):
    """This kernel, or this user, cannot count them: why, in one line."""


def checked(order: int, rate: int) -> dict[str, object]:
    """What meta.json says of the load: `per_echo`, unless `checked` says why not.

    UserError if nothing replies: the load would make no allocation, and each echo would be lost.
    """
    facts: dict[str, object] = {"order": order, "rate": rate}
    try:
        replied = exchange(order, GIVE_UP)
    except OSError as error:
        return {**facts, "checked": f"not available: {error.strerror}"}
    if not replied:
        raise UserError(
            f"--atomic-order {order}: no ICMP echo to {ADDRESS} is replied to",
            hint="set net.ipv4.icmp_echo_ignore_all to 0, or let the firewall pass ICMP on lo",
        )
    try:
        return {**facts, "checked": "yes", "per_echo": round(per_echo(order), 3)}
    except NotAvailable as error:
        return {**facts, "checked": f"not available: {error}"}


def per_echo(order: int) -> float:
    """Atomic allocations of that order for one echo, as counted by the kernel."""
    tracefs = find_tracefs()
    found = read_format(tracefs, PAGE_ALLOC) if tracefs else None
    if found is None:
        raise NotAvailable("no tracefs with kmem:mm_page_alloc")
    flags = print_flags(found)
    try:
        high, waits = flags["__GFP_HIGH"], flags["__GFP_DIRECT_RECLAIM"]
    except KeyError as error:
        raise NotAvailable(f"the kernel does not name {error.args[0]}") from None
    wanted = f"order == {order} && gfp_flags & {high:#x} && !(gfp_flags & {waits:#x})"
    try:
        counter = _counter(found.id, wanted)
        try:
            ioctl(counter, IOC_ENABLE, 0)
            replies = exchange(order, COUNT)
            ioctl(counter, IOC_DISABLE, 0)
            (count,) = unpack("q", os.read(counter, 8))
        finally:
            os.close(counter)
    except OSError as error:
        raise NotAvailable(f"{error.strerror}") from None
    if replies < COUNT:
        raise NotAvailable(f"only {replies} of {COUNT} echoes were replied to")
    return float(count) / COUNT


def _counter(event: int, wanted: str) -> int:
    """A counter of this task's events that the filter lets through; still off."""
    number = SYSCALLS.get(os.uname().machine)
    if number is None:
        raise NotAvailable(f"not known how to on {os.uname().machine}")
    attributes = pack("IIQ24xQ", PERF_TYPE_TRACEPOINT, ATTR_BYTES, event, DISABLED)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    this_task, any_cpu, no_group = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    fd: int = libc.syscall(
        ctypes.c_long(number),
        attributes.ljust(ATTR_BYTES, b"\0"),
        *(this_task, any_cpu, no_group),
        ctypes.c_ulong(PERF_FLAG_CLOEXEC),
    )
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        ioctl(fd, IOC_SET_FILTER, wanted.encode() + b"\0")
    except OSError:
        os.close(fd)
        raise
    return fd
