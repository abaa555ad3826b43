# SPDX-License-Identifier: GPL-2.0-or-later
"""monitors.trace.trace without a kernel: instructions as bytes, format files, BTF, kallsyms.

That the programs load and count is asserted in a guest, never on this host
(tests/in_vm/test_tracing_in_vm.py).
"""

import contextlib
import re
from pathlib import Path
from struct import error, pack, unpack_from
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.trace import bpf_block, bpf_programs
from monitors.trace.bpf_asm import COMM, R0, R1, R2, R3, R10, Asm
from monitors.trace.bpf_programs import Maps
from monitors.trace.btf import BadBtf, Btf, kernel_btf
from monitors.trace.columns import ALWAYS, Offer
from monitors.trace.in_flight import LOOKS, InFlight
from monitors.trace.kallsyms import BASE, BLOCK, Kallsyms
from monitors.trace.trace import Trace, one_moment
from monitors.trace.tracepoints import (
    WANTED,
    Format,
    parse_format,
    print_flags,
    read_format,
    throttle_reasons,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tracing"
KERNELS = ["5.10", "6.1", "6.12", "7.2"]


def one(action: str, *arguments: Any) -> bytes:
    asm = Asm()
    getattr(asm, action)(*arguments)
    return asm.bytes()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # As `llvm-objdump -d` shows them, and the kernel's own tests (BPF_RAW_INSN) write them.
        (one("alu", R1, "=", R10), "bfa1000000000000"),
        (one("alu", R1, "=", -1), "b7010000ffffffff"),
        (one("alu", R2, "+", -8), "07020000f8ffffff"),
        (one("alu", R0, "-", R3), "1f30000000000000"),
        (one("negate", R2), "8702000000000000"),
        (one("extend", R1), "6701000020000000c701000020000000"),
        (one("load", R1, R10, -8), "79a1f8ff00000000"),
        (one("load", R2, R1, 16, 4), "6112100000000000"),
        (one("store", R10, -16, R0), "7b0af0ff00000000"),
        (one("store", R10, -4, 7, 4), "620afcff07000000"),
        (one("add_to", R1, 24, R2), "db21180000000000"),
        (one("replace", R1, 8, R2), "db210800f1000000"),
        (one("call", COMM), "8500000010000000"),
        (one("map_fd", R1, 5), "18110000050000000000000000000000"),
        (one("map_value", R1, 5, 64), "18210000050000000000000040000000"),
        (one("constant", R1, 0xFFFFFFFF80000001), "180100000100008000000000ffffffff"),
        (one("exit"), "b7000000000000009500000000000000"),
    ],
)
def test_instructions(code: bytes, expected: str) -> None:
    assert code.hex() == expected


def test_jumps_lead_to_their_labels() -> None:
    asm = Asm()
    asm.jump("out", R0, "==", 0)
    asm.constant(R1, 1)  # takes two places
    asm.jump("out", R1, "!=", R2)
    asm.jump("out")
    asm.label("out")
    asm.exit()
    code = asm.bytes()
    assert [unpack_from("<h", code, 8 * at + 2)[0] for at in (0, 3, 4)] == [4, 1, 0]
    assert [code[8 * at] for at in (0, 3, 4)] == [0x15, 0x5D, 0x05]
    with pytest.raises(ValueError, match="twice"):
        asm.label("out")


@pytest.mark.parametrize("kernel", KERNELS)
def test_real_formats(kernel: str) -> None:
    found = {path.name for path in (GOLDEN / kernel).iterdir()}
    lacks = {n for n in WANTED if f"{n.replace('/', '-')}.format" not in found}
    assert lacks == (
        {"vmscan/mm_vmscan_throttled"}
        if kernel == "5.10"
        else {"writeback/writeback_congestion_wait", "writeback/writeback_wait_iff_congested"}
    )
    for name in sorted(found):
        text = (GOLDEN / kernel / name).read_text()
        format = parse_format(text)
        assert f"ID: {format.id}\n" in text
        assert len(format.fields) == text.count("\tfield:")
        assert format.fields["common_pid"] == (4, 4, True)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_fields_that_are_read(kernel: str) -> None:
    folder = GOLDEN / kernel
    end = parse_format((folder / "vmscan-mm_vmscan_direct_reclaim_end.format").read_text())
    assert end.fields["nr_reclaimed"] == (8, 8, False)
    sleep = parse_format((folder / "vmscan-mm_vmscan_kswapd_sleep.format").read_text())
    assert sleep.fields["nid"] == (8, 4, True)
    if kernel == "5.10":
        wait = parse_format((folder / "writeback-writeback_congestion_wait.format").read_text())
        assert wait.fields["usec_delayed"] == (12, 4, False)
        return
    throttled = parse_format((folder / "vmscan-mm_vmscan_throttled.format").read_text())
    assert throttled.fields["usec_delayed"] == (16, 4, True)
    assert throttled.fields["reason"] == (20, 4, True)
    names = {"writeback": 1, "isolated": 2, "noprogress": 4, "congested": 8}
    assert throttle_reasons(throttled) == names


@pytest.mark.parametrize("kernel", KERNELS)
def test_allocation_flags(kernel: str) -> None:
    format = parse_format((GOLDEN / kernel / "kmem-mm_page_alloc.format").read_text())
    flags = print_flags(format)
    assert len(flags) == len(re.findall(r'"\w+"}', format.print)) >= 35
    known = {"__GFP_HIGH": 0x20, "__GFP_IO": 0x40, "__GFP_FS": 0x80, "__GFP_NOWARN": 0x2000}
    assert {name: flags[name] for name in known} == known
    kernel_flags = flags["__GFP_IO"] | flags["__GFP_FS"] | flags["__GFP_RECLAIM"]
    assert flags["GFP_KERNEL"] == kernel_flags
    # As the kernel goes through the table: what has more bits comes first.
    assert list(flags).index("GFP_KERNEL") < list(flags).index("__GFP_IO")
    assert flags["GFP_TRANSHUGE_LIGHT"] & flags["__GFP_RECLAIM"] == 0


def test_flags_that_are_no_numbers_are_left_out() -> None:
    text = '__print_flags(x, "|", {(1 << NAME), "A"}, {__import__("os"), "B"}, {(1 << 3), "C"})'
    assert print_flags(Format(1, {}, text)) == {"C": 8}
    assert print_flags(Format(1, {}, '{((1UL) << (2, "A"}, {4u|, "B"}, {(), "C"}')) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["int", "unsigned long", "const char *", "struct a b", "__data_loc x"]),
            st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True),
            st.sampled_from(["", "[16]", "[]", "[TASK_COMM_LEN]"]),
            st.integers(0, 4096),
            st.integers(0, 256),
            st.booleans(),
        ),
        unique_by=lambda row: row[1],
    ),
    st.integers(0, 65535),
)
def test_any_format(rows: list[tuple[str, str, str, int, int, bool]], number: int) -> None:
    lines = [
        f"\tfield:{kind} {name}{array};\toffset:{at};\tsize:{size};\tsigned:{int(signed)};"
        for kind, name, array, at, size, signed in rows
    ]
    text = "\n".join(["name: x", f"ID: {number}", "format:", *lines, '\nprint fmt: "x=%d", 1\n'])
    format = parse_format(text)
    assert (format.id, format.print) == (number, '"x=%d", 1')
    assert format.fields == {row[1]: tuple(row[3:]) for row in rows}


@given(st.text())
def test_any_text_is_a_format_or_a_value_error(text: str) -> None:
    try:
        format = parse_format(text)
    except ValueError:
        return
    print_flags(format)
    with contextlib.suppress(LookupError):
        throttle_reasons(format)


def test_fields_and_reasons_that_this_kernel_calls_otherwise(tmp_path: Path) -> None:
    events = tmp_path / "sys/kernel/tracing/events"
    golden = GOLDEN / "6.1" / "vmscan-mm_vmscan_throttled.format"
    path = events / "vmscan/mm_vmscan_throttled/format"
    path.parent.mkdir(parents=True)
    for old, new, said in (
        ("int reason;", "int why;", "no field reason"),
        ("VMSCAN_THROTTLE_", "THROTTLED_", "no names of its reasons"),
    ):
        path.write_text(golden.read_text().replace(old, new))
        offer = Offer(str(events.parent), {}, str(tmp_path))
        assert f"vmscan/mm_vmscan_throttled: {said}" in offer.not_available
        assert offer.groups == []


def test_a_disk_that_takes_no_requests(tmp_path: Path) -> None:
    for name, inner in (("vda", "mq"), ("vda/vda1", "partition"), ("dm-3", "dm"), ("loop0", "mq")):
        (tmp_path / "sys/devices" / name / inner).mkdir(parents=True)
        link = tmp_path / "sys/class/block" / name.rpartition("/")[2]
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(tmp_path / "sys/devices" / name)
        (link / "dev").write_text("254:0\n")
    for name, stacked in (("vda", False), ("vda1", False), ("loop0", False), ("dm-3", True)):
        offer = Offer(None, {"disk": name}, str(tmp_path))
        said = f"trace of disk {name}: it has no requests of its own"
        assert (said in offer.not_available) == stacked


def test_a_tracepoint_that_is_not_there(tmp_path: Path) -> None:
    assert read_format(str(tmp_path), "vmscan/none") is None


# BTF, written after Documentation/bpf/btf.rst.
INT, STRUCT, FORWARD, POINTER, TYPEDEF, PROTO = 1, 4, 7, 2, 8, 13


def btf(*types: tuple[int, str, int, list[tuple[str, int]]], flag: bool = False) -> bytes:
    """Types as (kind, name, size or type, members as (name, byte offset or type))."""
    strings, body = b"\0", b""

    def place(name: str) -> int:
        nonlocal strings
        whole = b"\0" + name.encode() + b"\0"
        if name and whole not in strings:
            strings += whole[1:]
        return strings.index(whole) + 1 if name else 0

    for kind, name, size, members in types:
        high = 1 << 31 if flag and kind == STRUCT else 0
        body += pack("<III", place(name), kind << 24 | len(members) | high, size)
        if kind == INT:
            body += pack("<I", 64)
        for member, value in members:
            if kind == STRUCT:
                body += pack("<III", place(member), 1, 8 * value | (32 << 24 if flag else 0))
            else:
                body += pack("<II", place(member), value)
    sizes = pack("<IIII", 0, len(body), len(body), len(strings))
    return pack("<HBBI", 0xEB9F, 1, 0, 24) + sizes + body + strings


@pytest.mark.parametrize("flag", [False, True])
def test_members_and_arguments(flag: bool) -> None:
    data = btf(
        (INT, "long", 8, []),
        (FORWARD, "bio", 0, []),
        (STRUCT, "bio", 64, [("bi_next", 0), ("bi_bdev", 8), ("bi_opf", 16)]),
        (PROTO, "", 0, [("", 2), ("bio", 1)]),
        (POINTER, "", 4, []),
        (TYPEDEF, "btf_trace_block_bio_queue", 5, []),
        (TYPEDEF, "btf_trace_other", 1, []),
        flag=flag,
    )
    found = Btf(data, ["bio", "request"], ["block_bio_queue", "other", "none"])
    assert found.offset("bio", "bi_opf") == 16
    assert found.offset("bio", "bi_disk", "bi_bdev") == 8
    assert found.offset("bio", "bi_disk") is None
    assert found.offset("request", "q") is None
    assert found.arguments("block_bio_queue") == 1
    assert found.type_id("block_bio_queue") == 6
    assert found.type_id("none") is None
    assert found.arguments("other") is None
    assert found.arguments("none") is None
    with pytest.raises(LookupError, match="struct request has no q"):
        bpf_block.kinds(found, {"disk": (254, 0)})


@given(st.binary(max_size=200), st.integers(0, 60))
def test_damaged_btf(noise: bytes, cut: int) -> None:
    whole = btf((STRUCT, "bio", 8, [("bi_opf", 0)]), (POINTER, "", 1, []))
    for data in (noise, whole[:cut], whole[:24] + noise + whole[24 + len(noise) :]):
        try:
            found = Btf(data, ["bio"], ["block_bio_queue"])
            found.offset("bio", "bi_opf")
            found.arguments("block_bio_queue")
        except (BadBtf, error):
            continue


def test_names_of_functions(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    path = tmp_path / "proc" / "kallsyms"
    lines = ["0000000000000000 A fixed_percpu_data", f"{BASE + 0xFF0:x} t __pfx_first"]
    lines += [f"{BASE + 0x1000 + 16 * n:x} {'tTwW'[n % 4]} f{n}" for n in range(3 * BLOCK)]
    lines += [f"{BASE + 0x2000_0100:x} t late\t[two]", f"{BASE + 0x2000_0000:x} t early\t[one]"]
    lines += [f"{BASE + 0x1008:x} d no_function"]
    path.write_text("\n".join(lines) + "\n")
    table = Kallsyms(str(tmp_path))
    assert len(table) == 3 * BLOCK + 2
    for n in range(3 * BLOCK):
        for inside in (1, 15, 16):
            assert table.name(BASE + 0x1000 + 16 * n + inside) == b"f%d" % n
    assert table.name(BASE + 0x2000_0050) == b"early"
    assert table.name(BASE + 0x2000_0200) == b"late"
    assert table.name(BASE + 0x1000) == b"0x%x" % (BASE + 0x1000)
    assert table.name(0x1234) == b"0x1234"
    path.write_text("0000000000000000 T hidden\n")
    assert len(Kallsyms(str(tmp_path))) == 0


def test_where_there_is_nothing(tmp_path: Path) -> None:
    trace = Trace({"disk": "vdb", "crypt": "dm-0"}, str(tmp_path))
    assert trace.columns == [] and trace.cells() == [] and trace.failures() == []
    assert trace.reclaimers() == [] and trace.gfp_flags == {} and trace.problems == []
    assert trace.symbols([1]) == {1: b"0x1"}
    words = " ".join(trace.not_available)
    assert all(what in words for what in ("tracefs", "vdb", "dm-0", "alloc_failures"))
    trace.close()


class Entries:
    """A map's entries, here."""

    def __init__(self) -> None:
        self.when: dict[bytes, int] = {}

    def items(self, most: int) -> list[tuple[bytes, bytes]]:
        return [(key, pack("<QQ", when, 0)) for key, when in self.when.items()][:most]

    def remove(self, key: bytes) -> bool:
        return self.when.pop(key, None) is not None


class Numbers:
    """Sums, here."""

    def __init__(self) -> None:
        self.all = dict.fromkeys(ALWAYS, 0)

    def read(self) -> tuple[int, ...]:
        return tuple(self.all.values())

    def write(self, number: int, value: int) -> None:
        self.all[ALWAYS[number]] = value


def test_what_is_in_flight_for_the_programs_alone_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "dm").mkdir()
    (tmp_path / "dm/suspended").write_text("0\n")
    (tmp_path / "inflight").write_text("       1        0\n")
    entries, sums = Entries(), Numbers()
    watched = InFlight("crypt", str(tmp_path), entries, sums)  # type: ignore[arg-type]
    second = 10 * 10**9
    entries.when = {b"lost": second, b"new": 3 * second, b"still there": 2 * second}
    sums.all["crypt_in_flight"] = 3
    (tmp_path / "dm/suspended").write_text("1\n")
    for at in (3, 4, 5):
        watched.check(at * second)
    assert len(entries.when) == 3  # suspended
    (tmp_path / "dm/suspended").write_text("0\n")
    for at in range(6, 5 + LOOKS):
        watched.check(at * second)
    assert len(entries.when) == 3  # those that wait for memory may look like that
    watched.check(20 * second)
    assert set(entries.when) == {b"new"} and sums.all["crypt_dropped"] == watched.dropped == 2
    for at in range(21, 23):
        watched.check(at * second)
    assert sums.all["crypt_dropped"] == 2
    # The last one is lost, too, and there is nothing else; another one has just begun.
    (tmp_path / "inflight").write_text("       0        0\n")
    sums.all["crypt_in_flight"] += 1
    entries.when[b"newest"] = 28 * second  # queued for dm-crypt, and not counted there yet
    for at in (30, 31):
        watched.check(at * second)
    assert set(entries.when) == {b"newest"} and sums.all["crypt_dropped"] == 3
    watched.close()


def test_sums_of_one_moment() -> None:
    sums = Numbers()
    read = sums.read
    sums.all |= {"kswapd_awake_now": 1, "kswapd_awake_ns": -5_000}
    _values, opened = one_moment(sums)  # type: ignore[arg-type]
    assert opened[1] > 5_000

    def changing() -> tuple[int, ...]:
        sums.all["kswapd_awake_ns"] += 1
        return read()

    sums.read = changing  # type: ignore[method-assign]
    assert one_moment(sums)[1] == (0, 0, 0, 0, 0)  # type: ignore[arg-type]


def test_no_jump_leaves_a_program() -> None:
    sums = dict.fromkeys(SUMS, 0)
    maps = Maps(3, 4, 5, 6, 7, {"disk": 8, "crypt": 9}, sums, True)
    kind = bpf_block.Kind("crypt", ("b", 1), ("e", 2), 0, 1, 16, 40, (8,), ((52, 1),))
    field = 8, 4, True
    for code in (
        bpf_programs.span_begin(maps, bpf_programs.DIRECT),
        bpf_programs.span_end(maps, bpf_programs.DIRECT, "direct_reclaim", (8, 8, False)),
        bpf_programs.kswapd_wake(maps, field),
        bpf_programs.kswapd_sleep(maps, field),
        bpf_programs.waited(maps, field, {"a": 1, "b": 2}, field),
        bpf_programs.allocation_failed(maps),
        bpf_block.begin(maps, kind),
        bpf_block.begin(maps, kind, True),
        bpf_block.end(maps, kind),
    ):
        assert code[-8] == 0x95
        for at in range(0, len(code), 8):
            if code[at] & 7 == 5 and code[at] not in (0x85, 0x95):
                (offset,) = unpack_from("<h", code, at + 2)
                assert 0 <= offset < len(code) // 8 - at // 8 - 1


SUMS = [
    *("no_room", "direct_reclaims", "direct_reclaim_ns", "direct_reclaim_pages"),
    *("direct_reclaim_none", "kswapd_wakes", "kswapd_awake_now", "kswapd_awake_ns"),
    *(f"{who}{name}_{unit}" for who in ("", "kswapd_") for name in "ab" for unit in ("n", "us")),
    *("alloc_failures", "block_stamp", "disk_in_flight", "crypt_in_flight", "disk_busy_ns"),
    *("crypt_busy_ns", "crypt_alone_ns", "crypt_reads", "crypt_read_ns", "crypt_writes"),
    *("crypt_write_ns", "disk_dropped", "crypt_dropped"),
]


def test_this_hosts_btf() -> None:
    try:
        found = kernel_btf(bpf_block.STRUCTS, bpf_block.TRACEPOINTS)
    except OSError:
        pytest.skip("this host's kernel says nothing of its types")
    assert found.offset("bio", "bi_opf") is not None
    disk, crypt = bpf_block.kinds(found, {"disk": (8, 0), "crypt": (253, 1)})
    assert [number for _offset, number in disk.numbers] == [8, 0]
    assert all(number > 0 for kind in (disk, crypt) for _name, number in (kind.begin, kind.end))
    assert crypt.end_argument == 1
