# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that time requests of the disk and bios of the crypt device.

They sit on the bare tracepoints and read the kernel's structures, at offsets from its BTF (5.5). So
a request or a bio is known by its address, which no split, merge or remapping changes. And they are
not left out when they interrupt another program on their CPU (bpf_prog_active), as those on a perf
event are: completions would be lost, and what they end stay open for ever.

Busy: at each begin and end the time since the one before is added to disk_busy_ns if the disk had
a request in flight, to crypt_busy_ns if the crypt device had a bio in flight, and to crypt_alone_ns
if only that had.
"""

from __future__ import annotations

from monitors.trace.bpf_asm import (
    KTIME_NS,
    MAP_DELETE,
    MAP_LOOKUP,
    MAP_UPDATE,
    R0,
    R1,
    R2,
    R3,
    R4,
    R6,
    R7,
    R8,
    R9,
    R10,
    Asm,
)
from monitors.trace.bpf_programs import EEXIST, EXIST, KEY, NOEXIST, Maps, add, helper_map

TYPE_CHECKING = False  # what only annotations name is not loaded
if TYPE_CHECKING:
    from monitors.trace.btf import Btf

STRUCTS = ["request", "request_queue", "bio", "bvec_iter", "block_device", "gendisk"]
TRACEPOINTS = ["block_rq_issue", "block_rq_complete", "block_bio_queue", "block_bio_complete"]
READ, WRITE, OPERATION = 0, 1, 0xFF  # REQ_OP_READ, REQ_OP_WRITE, REQ_OP_MASK
WHEN, WHAT = -24, -16  # on the stack; WHEN and WHAT are an entry's value
IN_FLIGHT_BYTES = 16


class Kind:
    """Requests or bios: what the tracepoints' arguments are, and how to read them.

    begin, end: name and type of the tracepoints; argument, end_argument: which of theirs it is;
    operation: offset of its operation and flags; size: of its bytes, if empty ones are left out;
    device: offsets to follow to its device; numbers: what it has at which offsets (32 bits each).
    """

    def __init__(
        self,
        name: str,
        begin: tuple[str, int],
        end: tuple[str, int],
        argument: int,
        end_argument: int,
        operation: int,
        size: int | None,
        device: tuple[int, ...],
        numbers: tuple[tuple[int, int], ...],
    ) -> None:
        self.name = name
        self.begin = begin
        self.end = end
        self.argument = argument
        self.end_argument = end_argument
        self.operation = operation
        self.size = size
        self.device = device
        self.numbers = numbers


def kinds(btf: Btf, devices: dict[str, tuple[int, int]]) -> list[Kind]:
    """How this kernel keeps the requests of `disk` and the bios of `crypt`, those of them that are
    in devices: (major, minor). LookupError says what is missing.

    Before 5.11 (kernel commit a54895fa057c) the begin's tracepoints have the queue before it;
    before 5.12 (309dca309fc3) a bio names its disk, before 5.17 (f3fa33acca9f) a request does.
    """

    def offset(struct: str, *members: str) -> int:
        found = btf.offset(struct, *members)
        if found is None:
            raise KeyError(f"struct {struct} has no {' or '.join(members)}")
        return found

    def argument(tracepoint: str) -> int:
        return (btf.arguments(tracepoint) or 1) - 1

    def typed(tracepoint: str) -> tuple[str, int]:
        found = btf.type_id(tracepoint)
        if found is None:
            raise KeyError(f"no tracepoint {tracepoint}")
        return tracepoint, found

    def of_disk(major: int, minor: int) -> tuple[tuple[int, int], ...]:
        return (offset("gendisk", "major"), major), (offset("gendisk", "first_minor"), minor)

    found = []
    if "disk" in devices:
        if btf.offset("request", "rq_disk") is not None:
            device: tuple[int, ...] = (offset("request", "rq_disk"),)
        else:
            device = (offset("request", "q"), offset("request_queue", "disk"))
        found.append(
            Kind(
                name="disk",
                begin=typed("block_rq_issue"),
                end=typed("block_rq_complete"),
                argument=argument("block_rq_issue"),
                end_argument=0,
                operation=offset("request", "cmd_flags"),
                size=None,
                device=device,
                numbers=of_disk(*devices["disk"]),
            )
        )
    if "crypt" in devices:
        if btf.offset("bio", "bi_bdev") is not None:
            device = (offset("bio", "bi_bdev"),)
            major, minor = devices["crypt"]
            numbers: tuple[tuple[int, int], ...] = (
                (offset("block_device", "bd_dev"), major << 20 | minor),  # MKDEV
            )
        else:
            device, numbers = (offset("bio", "bi_disk"),), of_disk(*devices["crypt"])
        found.append(
            Kind(
                name="crypt",
                begin=typed("block_bio_queue"),
                end=typed("block_bio_complete"),
                argument=argument("block_bio_queue"),
                end_argument=argument("block_bio_complete"),
                operation=offset("bio", "bi_opf"),
                size=offset("bio", "bi_iter") + offset("bvec_iter", "bi_size"),
                device=device,
                numbers=numbers,
            )
        )
    return found


def _account(asm: Asm, maps: Maps) -> None:
    # R9 = now, R7 = the sums. Without a compare-and-exchange (5.12) two CPUs that come here within
    # the same 100 ns or so both add the time since the event before.
    # In this order: what is in flight now was so since the stamp, or the stamp is newer than now.
    asm.call(KTIME_NS)
    asm.alu(R9, "=", R0)
    asm.map_value(R7, maps.sums)
    for register, name in ((R3, "disk"), (R4, "crypt")):
        asm.load(register, R7, maps.at[f"{name}_in_flight"])
        asm.load(R2, R7, maps.at[f"{name}_dropped"])
        asm.alu(register, "-", R2)
    asm.load(R0, R7, maps.at["block_stamp"])
    asm.alu(R8, "=", R9)
    asm.alu(R8, "-", R0)
    asm.jump("accounted", R8, "s<=", 0)
    if maps.exact:
        asm.alu(R1, "=", R0)
        asm.replace(R7, maps.at["block_stamp"], R9)
        asm.jump("accounted", R0, "!=", R1)
    else:
        asm.store(R7, maps.at["block_stamp"], R9)
    asm.jump("disk idle", R3, "s<=", 0)
    asm.add_to(R7, maps.at["disk_busy_ns"], R8)
    asm.label("disk idle")
    asm.jump("accounted", R4, "s<=", 0)
    asm.add_to(R7, maps.at["crypt_busy_ns"], R8)
    asm.jump("accounted", R3, "s>", 0)
    asm.add_to(R7, maps.at["crypt_alone_ns"], R8)
    asm.label("accounted")


def begin(maps: Maps, kind: Kind, again: bool = False) -> bytes:
    """A read or a write of our device begins; again: the program that runs after the other one."""
    asm = Asm()
    asm.load(R6, R1, 8 * kind.argument)
    asm.store(R10, KEY, R6)
    asm.alu(R3, "=", R6)
    # A pointer that leads nowhere reads as 0: the kernel catches the fault.
    for offset in kind.device:
        asm.load(R3, R3, offset)
    for offset, number in kind.numbers:
        asm.load(R1, R3, offset, 4)
        asm.constant(R2, number)
        asm.jump("out", R1, "!=", R2)
    if kind.size is not None:
        asm.load(R1, R6, kind.size, 4)
        asm.jump("out", R1, "==", 0)
    asm.load(R1, R6, kind.operation, 4)
    asm.alu(R1, "&", OPERATION)
    asm.jump("out", R1, ">", WRITE)
    asm.store(R10, WHAT, R1)
    if again:
        helper_map(asm, MAP_LOOKUP, maps.in_flight[kind.name])
        asm.jump("out", R0, "!=", 0)
    _account(asm, maps)
    asm.store(R10, WHEN, R9)
    helper_map(asm, MAP_UPDATE, maps.in_flight[kind.name], WHEN, NOEXIST)
    asm.jump("not added", R0, "!=", 0)
    add(asm, maps, (f"{kind.name}_in_flight", 1))
    asm.jump("out")
    asm.label("not added")
    if again:
        asm.jump("out", R0, "==", EEXIST)
        add(asm, maps, ("no_room", 1))
    else:
        asm.jump("out", R0, "!=", EEXIST)
        # One whose end was not seen, or that was issued twice: it is in flight once. If it has
        # ended meanwhile it must not come back: nothing would count it.
        helper_map(asm, MAP_UPDATE, maps.in_flight[kind.name], WHEN, EXIST)
    asm.label("out")
    asm.exit()
    return asm.bytes()


def end(maps: Maps, kind: Kind) -> bytes:
    """What began on our device ends."""
    asm = Asm()
    asm.load(R6, R1, 8 * kind.end_argument)
    asm.store(R10, KEY, R6)
    helper_map(asm, MAP_LOOKUP, maps.in_flight[kind.name])
    asm.jump("out", R0, "==", 0)
    for offset, place in ((0, WHEN), (8, WHAT)):
        asm.load(R1, R0, offset)
        asm.store(R10, place, R1)
    helper_map(asm, MAP_DELETE, maps.in_flight[kind.name])
    asm.jump("out", R0, "!=", 0)
    _account(asm, maps)
    asm.load(R1, R10, WHEN)
    asm.alu(R9, "-", R1)
    add(asm, maps, (f"{kind.name}_in_flight", -1))
    asm.load(R1, R10, WHAT)
    asm.jump("write", R1, "==", WRITE)
    add(asm, maps, (f"{kind.name}_reads", 1), (f"{kind.name}_read_ns", R9))
    asm.jump("out")
    asm.label("write")
    add(asm, maps, (f"{kind.name}_writes", 1), (f"{kind.name}_write_ns", R9))
    asm.label("out")
    asm.exit()
    return asm.bytes()
