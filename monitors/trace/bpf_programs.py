# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that add up reclaim, throttling, compaction and failed allocations in the kernel.

All sums are 64-bit values in one array map, added to atomically; a span's begin is kept in a hash
map by its task until the end comes.
"""

from __future__ import annotations

from monitors.trace.bpf_asm import (
    COMM,
    GET_STACK,
    KTIME_NS,
    MAP_DELETE,
    MAP_LOOKUP,
    MAP_UPDATE,
    PID_TGID,
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
    READ_KERNEL,
    Asm,
    Reg,
)

TYPE_CHECKING = False  # what only annotations name is not loaded
if TYPE_CHECKING:
    from monitors.trace.tracepoints import Field

DIRECT, MEMCG, COMPACTION, KSWAPD = 1, 2, 3, 4
KEY = -8
PASS_ON = 1  # to whoever else watches this event
NOEXIST, EXIST, EEXIST = 1, 2, -17
TASK_BYTES = 40  # count, ns, pages, comm
FRAMES = 24
FAILURE_KEY_BYTES = 24  # pid, order, gfp, 0: 32 bits each; a hash of the stack
FAILURE_BYTES = 32 + 8 * FRAMES  # count, ns of the first, comm, return addresses
# struct pt_regs of x86-64; warn_alloc(gfp_mask, nodemask, fmt, order).
REGS_CX, REGS_DX, REGS_DI = 88, 96, 112
WARN_ALLOC = b"page allocation failure:"


class Maps:
    """Descriptors of the maps, and where in the value of `sums` each sum is (bytes).

    in_flight: by the name of the device; exact: whether there is a compare-and-exchange.
    """

    def __init__(
        self,
        sums: int,
        begun: int,
        tasks: int,
        failures: int,
        scratch: int,
        in_flight: dict[str, int],
        at: dict[str, int],
        exact: bool,
    ) -> None:
        self.sums = sums
        self.begun = begun
        self.tasks = tasks
        self.failures = failures
        self.scratch = scratch
        self.in_flight = in_flight
        self.at = at
        self.exact = exact


def helper_map(asm: Asm, helper: int, fd: int, value: int = 0, flags: int = 0) -> None:
    """Look up, update or delete the key at KEY of the stack; value: its place on the stack."""
    asm.map_fd(R1, fd)
    asm.alu(R2, "=", R10)
    asm.alu(R2, "+", KEY)
    if helper == MAP_UPDATE:
        asm.alu(R3, "=", R10)
        asm.alu(R3, "+", value)
        asm.alu(R4, "=", flags)
    asm.call(helper)


def add(asm: Asm, maps: Maps, *sums: tuple[str, int]) -> None:
    """Add numbers or registers (not R1, R2) to sums."""
    asm.map_value(R1, maps.sums)
    for name, value in sums:
        if isinstance(value, Reg):
            asm.add_to(R1, maps.at[name], value)
        else:
            asm.alu(R2, "=", value)
            asm.add_to(R1, maps.at[name], R2)


def load_field(asm: Asm, dst: Reg, ctx: Reg, field: Field) -> None:
    """Read a field of a tracepoint's record; an int keeps its sign."""
    offset, size, signed = field
    asm.load(dst, ctx, offset, size)
    if signed and size == 4:
        asm.extend(dst)


def _task_key(asm: Asm, kind: int) -> None:
    asm.call(PID_TGID)
    asm.alu(R0, "<<", 32)
    asm.alu(R0, ">>", 32)
    asm.constant(R1, kind << 32)
    asm.alu(R0, "|", R1)
    asm.store(R10, KEY, R0)


def span_begin(maps: Maps, kind: int) -> bytes:
    """Keep the moment at which this task began something."""
    asm = Asm()
    _task_key(asm, kind)
    asm.call(KTIME_NS)
    asm.store(R10, -16, R0)
    helper_map(asm, MAP_UPDATE, maps.begun, -16)
    asm.jump("kept", R0, "==", 0)
    add(asm, maps, ("no_room", 1))
    asm.label("kept")
    asm.exit(PASS_ON)
    return asm.bytes()


def span_end(maps: Maps, kind: int, name: str, pages: Field | None = None) -> bytes:
    """Add a span to the sums NAMEs and NAME_ns and, if it has pages, to NAME_pages.

    A direct reclaim without any counts in NAME_none, and each is added up by its task as well.
    """
    asm = Asm()
    asm.alu(R6, "=", R1)
    _task_key(asm, kind)
    helper_map(asm, MAP_LOOKUP, maps.begun)
    asm.jump("out", R0, "==", 0)
    asm.load(R7, R0, 0)
    helper_map(asm, MAP_DELETE, maps.begun)
    asm.call(KTIME_NS)
    asm.alu(R0, "-", R7)
    asm.alu(R7, "=", R0)
    add(asm, maps, (f"{name}s", 1), (f"{name}_ns", R7))
    if pages is not None:
        load_field(asm, R8, R6, pages)
        add(asm, maps, (f"{name}_pages", R8))
    if kind == DIRECT:
        asm.jump("some", R8, "!=", 0)
        add(asm, maps, (f"{name}_none", 1))
        asm.label("some")
        _add_to_task(asm, maps)
    asm.label("out")
    asm.exit(PASS_ON)
    return asm.bytes()


def _add_to_task(asm: Asm, maps: Maps) -> None:
    # R7 ns, R8 pages
    helper_map(asm, MAP_LOOKUP, maps.tasks)
    asm.jump("known", R0, "!=", 0)
    for offset in range(-48, KEY, 8):
        asm.store(R10, offset, 0)
    helper_map(asm, MAP_UPDATE, maps.tasks, -48, NOEXIST)
    helper_map(asm, MAP_LOOKUP, maps.tasks)
    asm.jump("known", R0, "!=", 0)
    add(asm, maps, ("no_room", 1))
    asm.jump("out")
    asm.label("known")
    asm.alu(R1, "=", 1)
    asm.add_to(R0, 0, R1)
    asm.add_to(R0, 8, R7)
    asm.add_to(R0, 16, R8)
    asm.alu(R1, "=", R0)
    asm.alu(R1, "+", 24)
    asm.alu(R2, "=", 16)
    asm.call(COMM)


def _kswapd_key(asm: Asm, nid: Field) -> None:
    load_field(asm, R7, R1, nid)
    asm.constant(R2, KSWAPD << 32)
    asm.alu(R7, "|", R2)
    asm.store(R10, KEY, R7)


def kswapd_wake(maps: Maps, nid: Field) -> bytes:
    """A kswapd that was not awake is; the event also comes again and again while it is awake.

    The open span needs no look-up by who reads: awake_ns holds minus its begin, and awake_now how
    many are open. In this order: who reads in between sees too little, never too much.
    """
    asm = Asm()
    _kswapd_key(asm, nid)
    asm.store(R10, -16, 0)
    helper_map(asm, MAP_UPDATE, maps.begun, -16, NOEXIST)
    asm.jump("out", R0, "!=", 0)
    asm.call(KTIME_NS)
    asm.alu(R6, "=", R0)
    asm.negate(R6)
    add(asm, maps, ("kswapd_wakes", 1), ("kswapd_awake_ns", R6), ("kswapd_awake_now", 1))
    asm.label("out")
    asm.exit(PASS_ON)
    return asm.bytes()


def kswapd_sleep(maps: Maps, nid: Field) -> bytes:
    """A kswapd that was awake goes to sleep."""
    asm = Asm()
    _kswapd_key(asm, nid)
    helper_map(asm, MAP_DELETE, maps.begun)
    asm.jump("out", R0, "!=", 0)
    asm.call(KTIME_NS)
    asm.alu(R6, "=", R0)
    add(asm, maps, ("kswapd_awake_now", -1), ("kswapd_awake_ns", R6))
    asm.label("out")
    asm.exit(PASS_ON)
    return asm.bytes()


def waited(maps: Maps, delayed: Field, names: dict[str, int], reason: Field | None = None) -> bytes:
    """Add a wait of delayed µs to the sums NAME_n and NAME_us, or kswapd_NAME_… if it was kswapd.

    names: with the value of the field reason for which each is.
    """
    asm = Asm()
    load_field(asm, R7, R1, delayed)
    if reason is not None:
        load_field(asm, R8, R1, reason)
    asm.alu(R1, "=", R10)
    asm.alu(R1, "+", -16)
    asm.alu(R2, "=", 16)
    asm.call(COMM)
    asm.load(R6, R10, -16, 4)
    asm.load(R9, R10, -12, 2)
    for name, value in names.items():
        if reason is not None:
            asm.jump(f"not {name}", R8, "!=", value)
        for register, part in ((R6, b"kswa"), (R9, b"pd")):
            asm.jump(f"others' {name}", register, "!=", _little(part))
        add(asm, maps, (f"kswapd_{name}_n", 1), (f"kswapd_{name}_us", R7))
        asm.jump("out")
        asm.label(f"others' {name}")
        add(asm, maps, (f"{name}_n", 1), (f"{name}_us", R7))
        asm.jump("out")
        asm.label(f"not {name}")
    asm.label("out")
    asm.exit(PASS_ON)
    return asm.bytes()


def allocation_failed(maps: Maps) -> bytes:
    """Count a call of warn_alloc for a failed page allocation, by task, order, flags and stack.

    It is called for each, and looks itself whether it shall be silent (__GFP_NOWARN).
    """
    asm = Asm()
    asm.alu(R6, "=", R1)
    asm.load(R3, R6, REGS_DX)
    asm.alu(R1, "=", R10)
    asm.alu(R1, "+", -len(WARN_ALLOC))
    asm.alu(R2, "=", len(WARN_ALLOC))
    asm.call(READ_KERNEL)
    for start in range(0, len(WARN_ALLOC), 8):
        asm.load(R1, R10, start - len(WARN_ALLOC))
        asm.constant(R2, _little(WARN_ALLOC[start : start + 8]))
        asm.jump("out", R1, "!=", R2)
    add(asm, maps, ("alloc_failures", 1))
    asm.store(R10, KEY, 0)
    helper_map(asm, MAP_LOOKUP, maps.scratch)
    asm.jump("out", R0, "==", 0)
    asm.alu(R7, "=", R0)
    asm.alu(R1, "=", R6)
    asm.alu(R2, "=", R7)
    asm.alu(R2, "+", 32)
    asm.alu(R3, "=", 8 * FRAMES)
    asm.alu(R4, "=", 1)  # without warn_alloc itself; the rest of the buffer is set to 0
    asm.call(GET_STACK)
    asm.alu(R8, "=", 0)
    for offset in range(32, FAILURE_BYTES, 8):
        asm.load(R1, R7, offset)
        asm.alu(R8, "*", 31)
        asm.alu(R8, "+", R1)
    asm.call(PID_TGID)
    asm.store(R10, -24, R0, 4)
    asm.load(R1, R6, REGS_CX)
    asm.store(R10, -20, R1, 4)
    asm.load(R1, R6, REGS_DI)
    asm.store(R10, -16, R1, 4)
    asm.store(R10, -12, 0, 4)
    asm.store(R10, -8, R8)
    for helper in (MAP_LOOKUP, MAP_UPDATE):
        if helper == MAP_UPDATE:
            asm.store(R7, 0, 1)
            asm.call(KTIME_NS)
            asm.store(R7, 8, R0)
            asm.alu(R1, "=", R7)
            asm.alu(R1, "+", 16)
            asm.alu(R2, "=", 16)
            asm.call(COMM)
        asm.map_fd(R1, maps.failures)
        asm.alu(R2, "=", R10)
        asm.alu(R2, "+", -FAILURE_KEY_BYTES)
        asm.alu(R3, "=", R7)
        asm.alu(R4, "=", NOEXIST)
        asm.call(helper)
        if helper == MAP_LOOKUP:
            asm.jump("new", R0, "==", 0)
            asm.alu(R1, "=", 1)
            asm.add_to(R0, 0, R1)
            asm.jump("out")
            asm.label("new")
    asm.jump("out", R0, "==", 0)
    add(asm, maps, ("no_room", 1))
    asm.label("out")
    asm.exit(PASS_ON)
    return asm.bytes()


def _little(text: bytes) -> int:
    return int.from_bytes(text, "little")
