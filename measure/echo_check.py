# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that each echo costs an atomic allocation, by counting the kernel's allocations.

A perf counter on the tracepoint kmem:mm_page_alloc counts for this task alone (the softirq that
makes a reply runs in the context of the task that sent the request). The kernel's filter selects
GFP_ATOMIC allocations of this order. The counter exists only while COUNT echoes are sent.
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
# The number of perf_event_open: x86-64 has its own; arm64, riscv and loongarch share one.
SYSCALLS = {
    **{"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241},
    **{"ppc64le": 319, "s390x": 331},
}


class NotAvailable(Exception):
    """This kernel or this user cannot count allocations.

    The message is one line with the reason.
    """


def checked(order: int, rate: int) -> dict[str, object]:
    """The facts about the load for meta.json: `per_echo`, or in `checked` why it is missing.

    order: pages per allocation, as a power of two; rate: echoes per second. UserError if nothing
    replies: the load would allocate nothing, and every echo would count as lost.
    """
    facts: dict[str, object] = {"order": order, "rate": rate}
    try:
        replied = exchange(order, GIVE_UP)
    except OSError as error:
        return {**facts, "checked": f"not available: {error.strerror}"}
    if not replied:
        raise UserError(
            f"--atomic-order {order}: nothing replies to ICMP echoes to {ADDRESS}",
            hint="set net.ipv4.icmp_echo_ignore_all to 0, or let the firewall pass ICMP on lo",
        )
    try:
        return {**facts, "checked": "yes", "per_echo": round(per_echo(order), 3)}
    except NotAvailable as error:
        return {**facts, "checked": f"not available: {error}"}


def per_echo(order: int) -> float:
    """The number of atomic allocations of this order per echo, as the kernel counts them."""
    tracefs = find_tracefs()
    format = read_format(tracefs, PAGE_ALLOC) if tracefs else None
    if format is None:
        raise NotAvailable("there is no tracefs with kmem:mm_page_alloc")
    flags = print_flags(format)
    try:
        high, waits = flags["__GFP_HIGH"], flags["__GFP_DIRECT_RECLAIM"]
    except KeyError as error:
        raise NotAvailable(f"the kernel does not name {error.args[0]}") from None
    wanted = f"order == {order} && gfp_flags & {high:#x} && !(gfp_flags & {waits:#x})"
    try:
        counter = _counter(format.id, wanted)
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
        raise NotAvailable(f"only {replies} of {COUNT} echoes got a reply")
    return float(count) / COUNT


def _counter(event: int, wanted: str) -> int:
    """Open a counter of this task's events that match the filter, not started yet.

    Returns its descriptor.
    """
    number = SYSCALLS.get(os.uname().machine)
    if number is None:
        raise NotAvailable(f"perf_event_open's number on {os.uname().machine} is unknown")
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
