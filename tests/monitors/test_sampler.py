# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler on the host's own /proc, and on made-up ones; the kernel log's parser."""

import errno
import os
import re
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.launch import SamplerProcess, in_memory
from setup.observers import program
from tests.support.kernel_logs import wait_for
from tests.support.observers import Ring, limited

pytestmark = pytest.mark.clock

# Of /proc/vmstat: these only grow.
MONOTONE = ("pgpgin", "pgpgout", "pgfault", "pgalloc_normal", "pgfree")


def table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a .tsv."""
    lines = path.read_text().splitlines()
    return lines[0].split("\t"), [line.split("\t") for line in lines[1:]]


def vmstat() -> dict[str, int]:
    """/proc/vmstat, read beside the sampler."""
    pairs = [line.split() for line in Path("/proc/vmstat").read_text().splitlines()]
    return {name: int(value) for name, value in pairs}


def first_disk() -> str:
    """Some block device of this machine."""
    return sorted(path.name for path in Path("/sys/class/block").iterdir())[0]


def test_a_sample_agrees_with_proc_read_beside_it(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {"disk": first_disk()}, hz=20.0, priority=0)
    before = vmstat()
    sampler.start(time.monotonic())
    time.sleep(0.5)
    facts = sampler.stop()
    after = vmstat()
    assert facts and facts["samples"] + facts["missed"] >= 5
    columns, rows = table(tmp_path / "vmstat.tsv")
    assert columns == ["elapsed_s", "late_s", *before]
    assert all(len(row) == len(columns) for row in rows)
    for name in MONOTONE:
        if name in before:
            seen = [int(row[columns.index(name)]) for row in rows]
            assert [before[name], *seen, after[name]] == sorted([before[name], *seen, after[name]])
    columns, rows = table(tmp_path / "meminfo.tsv")
    total = re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())
    assert total and rows[0][columns.index("MemTotal")] == total[1]
    columns, rows = table(tmp_path / "diskstats.tsv")
    assert columns[2] == "disk_reads" and columns[-1] == "disk_queue_ms" and len(columns) == 11
    assert [path for path in ("psi.tsv",) if (tmp_path / path).exists()] or [
        name for name in sampler.not_available if "pressure" in name
    ]


def test_each_row_is_on_its_deadline_or_says_how_late_it_is(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {}, hz=10.0, priority=0)
    sampler.start(time.monotonic())
    time.sleep(0.45)
    os.kill(sampler.pid, signal.SIGSTOP)
    stopped = time.monotonic()
    time.sleep(0.8)
    os.kill(sampler.pid, signal.SIGCONT)
    stopped = time.monotonic() - stopped
    time.sleep(0.35)
    facts = sampler.stop()
    _columns, rows = table(tmp_path / "vmstat.tsv")
    times = [(float(row[0]), float(row[1])) for row in rows[:-1]]
    for elapsed, late in times:
        assert abs((elapsed - late) * 10 - round((elapsed - late) * 10)) < 0.03, (elapsed, late)
    worst = max(late for _elapsed, late in times)
    assert stopped - 0.15 < worst
    assert facts and abs(facts["observer"]["worst_late_s"] - worst) < 0.002
    assert facts["missed"] >= int(worst * 10)
    # Every deadline was either sampled or counted as missed.
    last = times[-1][0] - times[-1][1]
    assert len(times) + facts["missed"] == round(last * 10) + 1


def test_sampling_starts_at_t0_and_not_before(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {}, hz=10.0, priority=0)
    time.sleep(0.2)
    assert (tmp_path / "vmstat.tsv").read_text() == ""
    sampler.start(time.monotonic() + 0.3)
    time.sleep(0.6)
    os.kill(sampler.pid, signal.SIGTERM)
    facts = sampler.stop()
    assert facts and facts["samples"] + facts["missed"] >= 3
    _columns, rows = table(tmp_path / "vmstat.tsv")
    assert 0 <= float(rows[0][0]) == pytest.approx(float(rows[0][1]), abs=0.002)
    assert len(rows) == facts["samples"]


def test_ended_before_t0(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {}, priority=0)
    facts = sampler.stop()
    assert facts and facts["samples"] == 0
    assert not sampler.alive()


def test_what_the_observer_costs_is_measured(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {"disk": first_disk()}, hz=4.0)
    sampler.start(time.monotonic())
    time.sleep(1.1)
    facts = sampler.stop()
    assert facts
    observer = facts["observer"]
    assert observer["name"] == "sampler" and observer["cpu_s"] > 0
    assert 1.0 < observer["elapsed_s"] < 20
    if any(problem.startswith("mlockall") for problem in sampler.problems):
        pytest.skip(f"not permitted here: {sampler.problems}")
    assert 500 < observer["locked_kib"] <= 4 * 1024
    assert observer["locked_kib"] <= observer["vmlck_kib"] + 64


def fake_root(tmp_path: Path, **files: str) -> Path:
    """A made-up /proc and /sys with these files."""
    root = tmp_path / "root"
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "dev").mkdir(parents=True, exist_ok=True)
    return root


def test_a_kernel_without_psi_has_no_psi_columns(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        proc__vmstat="nr_free_pages 12\nnr_writeback 3\n",
        proc__meminfo="MemTotal:  512 kB\nHugePages_Total:  0\n",
    )
    out = tmp_path / "out"
    out.mkdir()
    sampler = SamplerProcess(program(), out, {"swap": "dm-2"}, hz=20.0, priority=0, root=str(root))
    for name in ("/proc/pressure/memory", "block device dm-2", "/dev/kmsg"):
        assert name in sampler.not_available
    sampler.start(time.monotonic())
    time.sleep(0.2)
    assert sampler.stop()
    assert sorted(path.name for path in out.iterdir()) == [
        "kern.log",
        "meminfo.tsv",
        "vmstat.tsv",
    ]
    columns, rows = table(out / "vmstat.tsv")
    assert columns == ["elapsed_s", "late_s", "nr_free_pages", "nr_writeback"]
    assert rows[0][2:] == ["12", "3"]
    columns, rows = table(out / "meminfo.tsv")
    assert columns[2:] == ["MemTotal", "HugePages_Total"] and rows[0][2:] == ["512", "0"]


def named_rows(values: dict[str, int]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())


def test_counters_that_come_and_go_leave_empty_cells(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        proc__vmstat="a 1\nb 2\nbb 4\n",
        proc__meminfo="MemTotal:  512 kB\n",
        proc__pressure__memory="some avg10=0.00 total=7\nfull avg10=0.00 total=5\n",
        proc__pressure__cpu="some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
        sys__class__block__vdb__stat=" ".join(str(n) for n in range(17)) + "\n",
    )
    out = tmp_path / "out"
    out.mkdir()
    sampler = SamplerProcess(program(), out, {"disk": "vdb"}, priority=0, root=str(root), hz=20.0)
    assert "/proc/pressure/io" in sampler.not_available
    sampler.start(time.monotonic())
    wait_for(lambda: (out / "vmstat.tsv").read_text().count("\n") >= 2)
    (root / "proc/vmstat").write_text("b 3\nc 4\nbb 5\n")
    (root / "proc/pressure/memory").write_text("")
    (root / "sys/class/block/vdb/stat").write_text("1 2 3\n")
    time.sleep(0.2)
    assert sampler.stop()
    columns, rows = table(out / "vmstat.tsv")
    assert columns[2:] == ["a", "b", "bb"]
    assert rows[0][2:] == ["1", "2", "4"] and rows[-1][2:] == ["", "3", "5"]
    columns, rows = table(out / "psi.tsv")
    assert columns[2:] == ["memory_some_us", "memory_full_us", "cpu_some_us"]
    assert rows[0][2:] == ["7", "5", "9"] and rows[-1][2:] == ["", "", "9"]
    columns, rows = table(out / "diskstats.tsv")
    assert rows[0][2:] == ["0", "2", "3", "4", "6", "7", "8", "9", "10"]
    assert rows[-1][2:] == [""] * 9


def slabinfo(objects: dict[str, tuple[int, int]]) -> str:
    """As the kernel prints it (mm/slab_common.c)."""
    rows = [
        f"{name:<17} {active:>6} {total:>6} 1024 4 1 : tunables 0 0 0 : slabdata 1 1 0\n"
        for name, (active, total) in objects.items()
    ]
    return "slabinfo - version: 2.1\n# name   <active_objs> <num_objs> …\n" + "".join(rows)


def test_slab_caches_that_are_asked_for_have_each_fourth_row(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        proc__vmstat="a 1\n",
        proc__slabinfo=slabinfo({"xfs_inode": (7, 9), "dentry_x": (1, 1), "dentry": (3, 4)}),
    )
    out = tmp_path / "out"
    out.mkdir()
    wanted = ["dentry", "xfs_inode", "none"]
    sampler = SamplerProcess(program(), out, {}, slabs=wanted, priority=0, root=str(root), hz=20.0)
    assert "slab cache none" in sampler.not_available
    sampler.start(time.monotonic())
    wait_for(lambda: (out / "slabinfo.tsv").read_text().count("\n") >= 2)
    # A cache that is new comes first, and one may go.
    (root / "proc/slabinfo").write_text(slabinfo({"new": (1, 1), "dentry": (30, 40)}))
    wait_for(lambda: (out / "slabinfo.tsv").read_text().count("\n") >= 4)
    assert sampler.stop()
    columns, rows = table(out / "slabinfo.tsv")
    names = ["xfs_inode_active", "xfs_inode_objs", "dentry_active", "dentry_objs"]
    assert columns == ["elapsed_s", "late_s", *names]
    assert rows[0][2:] == ["7", "9", "3", "4"] and rows[-1][2:] == ["", "", "30", "40"]
    each = len(table(out / "vmstat.tsv")[1])
    assert each / 4 - 2 <= len(rows) <= each / 4 + 2


def test_without_slab_caches_there_is_no_table_of_them(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {}, hz=20.0, priority=0)
    sampler.start(time.monotonic())
    assert sampler.stop() and not (tmp_path / "slabinfo.tsv").exists()


@settings(max_examples=12)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,20}(\([a-z]+\))?", fullmatch=True),
        st.tuples(st.integers(0, 2**64 - 1), st.booleans()),
        min_size=1,
        max_size=600,
    ),
    st.randoms(use_true_random=False),
)
def test_any_counters_are_rows_of_their_values(
    found: dict[str, tuple[int, bool]], shuffler: Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = {name: value for name, (value, _kept) in found.items()}
        root = fake_root(Path(folder), proc__vmstat=named_rows(first))
        units = "".join(f"{name}:  {value} kB\n" for name, value in first.items())
        (root / "proc/meminfo").write_text(units)
        sampler = SamplerProcess(program(), Path(folder), {}, priority=0, root=str(root))
        # The first row is taken at t0, the last one at the end.
        sampler.start(time.monotonic())
        wait_for(lambda: (Path(folder) / "vmstat.tsv").read_text().count("\n") >= 2)
        names = [name for name, (_value, kept) in found.items() if kept]
        shuffler.shuffle(names)
        (root / "proc/vmstat").write_text(named_rows({name: first[name] for name in names}))
        assert sampler.stop()
        for file in ("vmstat.tsv", "meminfo.tsv"):
            columns, rows = table(Path(folder) / file)
            assert columns == ["elapsed_s", "late_s", *first]
            assert rows[0][2:] == [str(value) for value in first.values()]
        _columns, rows = table(Path(folder) / "vmstat.tsv")
        assert rows[-1][2:] == [str(value) if kept else "" for value, kept in found.values()]


def test_a_blocked_file_does_not_delay_sampling(tmp_path: Path) -> None:
    root = fake_root(tmp_path, proc__vmstat="".join(f"c{n} {n}\n" for n in range(2000)))
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "vmstat.tsv")
    reader = os.open(out / "vmstat.tsv", os.O_RDONLY | os.O_NONBLOCK)
    sampler = SamplerProcess(program(), out, {}, hz=50.0, priority=0, root=str(root))
    sampler.start(time.monotonic())
    # 64 KiB of pipe are full after some ten rows of 8 KiB; nobody reads for the rest of the time.
    time.sleep(1.2)
    taken = b""
    os.set_blocking(reader, True)
    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(sampler.stop)
        while piece := os.read(reader, 1 << 16):
            taken += piece
        facts = stopped.result()
    os.close(reader)
    assert facts and not facts["dropped"] and not facts["write_errors"]
    assert facts["slowest_write_s"] > 0.5
    rows = [line.split("\t") for line in taken.decode().splitlines()[1:]]
    assert len(rows) == facts["samples"] and facts["samples"] + facts["missed"] >= 30
    assert facts["observer"]["worst_late_s"] < facts["slowest_write_s"] / 2


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "vmstat.tsv").symlink_to("/dev/full")
    sampler = SamplerProcess(program(), tmp_path, {}, hz=20.0, priority=0)
    sampler.start(time.monotonic())
    time.sleep(0.2)
    facts = sampler.stop()
    assert facts and facts["write_errors"] == {"vmstat.tsv": "No space left on device"}
    assert len(table(tmp_path / "meminfo.tsv")[1]) == facts["samples"]


def test_a_file_that_may_not_grow_is_named(tmp_path: Path) -> None:
    sampler = SamplerProcess(limited(tmp_path, "-f 1"), tmp_path, {}, hz=20.0, priority=0)
    sampler.start(time.monotonic())
    time.sleep(0.2)
    facts = sampler.stop()
    assert facts and facts["write_errors"]["vmstat.tsv"] == "File too large"
    assert facts["dropped"]["vmstat.tsv"][0] > 0


@pytest.mark.parametrize("copied", [False, True])
def test_all_of_the_program_is_locked_what_it_writes_too(tmp_path: Path, copied: bool) -> None:
    sampler = SamplerProcess(in_memory(program()) if copied else program(), tmp_path, {})
    name = f"/memfd:{program().name} (deleted)" if copied else str(program())
    smaps = Path(f"/proc/{sampler.pid}/smaps").read_text()
    problems = sampler.problems
    assert sampler.stop()
    if any(problem.startswith("ml") for problem in problems):
        pytest.skip(f"not permitted here: {problems}")
    kinds = set()
    for head, body in re.findall(r"(?m)^([0-9a-f]+-[0-9a-f]+ .*)\n((?:\w+:.*\n)+)", smaps):
        if not head.endswith(name):
            continue
        kinds.add(head.split()[1])
        sizes = {name: int(kib) for name, kib in re.findall(r"(\w+): +(\d+) kB", body)}
        assert sizes["Rss"] == sizes["Size"] and sizes["Locked"] > 0, head
        # A page that is written for the first time would need a new one.
        assert sizes["Anonymous"] == sizes["Size"] or "w" not in head.split()[1], head
    assert kinds >= {"r-xp", "r--p", "rw-p"}


def test_a_sampler_that_died_is_none(tmp_path: Path) -> None:
    sampler = SamplerProcess(program(), tmp_path, {}, priority=0)
    os.kill(sampler.pid, signal.SIGKILL)
    assert sampler.stop() is None


@pytest.fixture(scope="module")
def ring() -> Iterator[Ring]:
    """Made-up records of the kernel's log."""
    with Ring() as started:
        yield started


@pytest.mark.parametrize(
    ("record", "lines"),
    [
        (b"6,339,5140900,-;NET: Registered\n", b"[5.140900] <6> NET: Registered\n"),
        (b"30,7,1,-,caller=T1;a b\n", b"[0.000001] <6> a b\n"),
        (
            b"4,2,61000002,c;pci 0\n SUBSYSTEM=pci\n DEVICE=+pci:0\n",
            b"[61.000002] <4> pci 0\n SUBSYSTEM=pci\n DEVICE=+pci:0\n",
        ),
        (b"3,9,1500000,-;one\\x0atwo \\x1b[0m\n", b"[1.500000] <3> one\n two \\x1b[0m\n"),
        (b"0,1,2,-;;x;\n", b"[0.000002] <0> ;x;\n"),
        (b"6,1,2,-;a\n\n", b"[0.000002] <6> a\n"),
        (b"6,1,2,-;\n", b"[0.000002] <6> \n"),
        (b"garbage", b""),
        (b"x,1,2,-;text", b""),
        (b"6,1,2;text", b""),
        (b"6,1,99999999999999999999,-;text", b""),
    ],
)
def test_records(ring: Ring, record: bytes, lines: bytes) -> None:
    assert ring.read([record, errno.EAGAIN]) == (lines, 1, 1, 0)


def escaped(text: bytes) -> bytes:
    """As the kernel does it (msg_add_ext_text)."""
    return b"".join(bytes([c]) if 32 <= c < 127 and c != 0x5C else b"\\x%02x" % c for c in text)


@given(
    prio=st.integers(0, 255),
    usec=st.integers(0, 10**13),
    text=st.binary(max_size=300),
    keys=st.lists(st.from_regex(rb"[A-Z]{1,8}=[a-z0-9:+]{0,9}", fullmatch=True), max_size=3),
)
def test_any_record_keeps_its_text(
    ring: Ring, prio: int, usec: int, text: bytes, keys: list[bytes]
) -> None:
    record = b"%d,5,%d,-;%b\n" % (prio, usec, escaped(text))
    record += b"".join(b" %b\n" % key for key in keys)
    found, *_facts = ring.read([record, errno.EAGAIN])
    assert found.endswith(b"\n")
    first, *more = found[:-1].split(b"\n")
    match = re.fullmatch(rb"\[(\d+)\.(\d{6})\] <([0-7])> (.*)", first)
    assert match and int(match[1]) * 1_000_000 + int(match[2]) == usec
    assert int(match[3]) == prio & 7
    assert all(line.startswith(b" ") for line in more)
    body = [match[4], *(line[1:] for line in more)]
    assert body[len(body) - len(keys) :] == keys
    assert b"\\x0a".join(body[: len(body) - len(keys)]) == escaped(text)


@given(st.binary(min_size=1, max_size=200))
def test_no_record_breaks_the_parser(ring: Ring, record: bytes) -> None:
    found, *facts = ring.read([record, errno.EAGAIN])
    assert (not found or found.endswith(b"\n")) and facts == [1, 1, 0]


def test_a_flood_is_read_in_slices_and_loses_nothing(ring: Ring) -> None:
    records: list[bytes | int] = [b"6,%d,%d,-;r%d\n" % (n, n, n) for n in range(200)]
    records.insert(100, errno.EPIPE)
    text, *facts = ring.read([*records, errno.EAGAIN])
    assert facts == [4, 200, 1]
    lines = text.splitlines()
    assert lines[100] == b"<missed>" and lines[-1].endswith(b"r199")


def test_slices_of_long_records_stay_small(ring: Ring) -> None:
    record = b"6,1,1,-;" + b"x" * 8000 + b"\n"
    text, *facts = ring.read([*[record] * 30, errno.EAGAIN])
    assert facts == [11, 30, 0] and text.count(b"\n") == 30


def test_the_longest_records_need_no_memory_that_was_not_rehearsed(ring: Ring) -> None:
    head, size = b"6,1,%d,-;" % (10**17), 8192
    for body in (b"x", b"\n", b"\nx", b"\\x0a"):
        short = head + (body * size)[: 8000 - len(head)] + b"x"
        full = head + (body * size)[: size - len(head) - 1] + b"x"
        text, *facts = ring.read([short, short, full, full, errno.EAGAIN])
        assert facts[1:] == [4, 0]
        assert text.count(b"\n ") == 2 * short.count(body) + 2 * full.count(body) or body == b"x"


def test_the_kernels_log_is_written_from_the_start(tmp_path: Path) -> None:
    root = fake_root(tmp_path, dev__kmsg="")
    (root / "dev/kmsg").unlink()
    os.mkfifo(root / "dev/kmsg")
    log = os.open(root / "dev/kmsg", os.O_RDWR)
    out = tmp_path / "out"
    out.mkdir()
    sampler = SamplerProcess(program(), out, {}, priority=0, root=str(root))
    os.write(log, b"6,1,1500000,-;hello\n")
    wait_for(lambda: (out / "kern.log").read_text() == "[1.500000] <6> hello\n")
    facts = sampler.stop()
    os.close(log)
    assert facts and facts["log_records"] == 1 and facts["log_missed"] == 0
