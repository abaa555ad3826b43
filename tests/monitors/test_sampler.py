# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler on the host's own /proc, and on made-up ones; the kernel log's parser."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.launch import ENVIRONMENT, ROOT, SamplerProcess
from monitors.plain_json import to_json
from monitors.sampler import kmsg
from monitors.sampler.counters import Counters

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
    sampler = SamplerProcess(tmp_path, {"disk": first_disk()}, hz=20.0, priority=0)
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
    sampler = SamplerProcess(tmp_path, {}, hz=10.0, priority=0)
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
    sampler = SamplerProcess(tmp_path, {}, hz=10.0, priority=0)
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
    sampler = SamplerProcess(tmp_path, {}, priority=0)
    facts = sampler.stop()
    assert facts and facts["samples"] == 0
    assert not sampler.alive()


def test_what_the_observer_costs_is_measured(tmp_path: Path) -> None:
    sampler = SamplerProcess(tmp_path, {"disk": first_disk()}, hz=4.0)
    sampler.start(time.monotonic())
    time.sleep(1.1)
    facts = sampler.stop()
    assert facts
    observer = facts["observer"]
    assert observer["name"] == "sampler" and observer["cpu_s"] > 0
    assert 1.0 < observer["elapsed_s"] < 20
    if any(problem.startswith("mlockall") for problem in sampler.problems):
        pytest.skip(f"not permitted here: {sampler.problems}")
    assert 2_000 < observer["locked_kib"] <= 12 * 1024
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
    sampler = SamplerProcess(out, {"swap": "dm-2"}, hz=20.0, priority=0, root=str(root))
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


def test_counters_that_come_and_go_leave_empty_cells(tmp_path: Path) -> None:
    root = fake_root(
        tmp_path,
        proc__vmstat="a 1\nb 2\n",
        proc__pressure__memory="some avg10=0.00 total=7\nfull avg10=0.00 total=5\n",
        proc__pressure__cpu="some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n",
        sys__class__block__vdb__stat=" ".join(str(n) for n in range(17)) + "\n",
    )
    counters = Counters({"disk": "vdb"}, str(root))
    vm, psi, disk = counters.tables
    assert psi.columns == [b"memory_some_us", b"memory_full_us", b"cpu_some_us"]
    assert psi.cells() == [b"7", b"5", b"9"]
    assert disk.cells() == [b"0", b"2", b"3", b"4", b"6", b"7", b"8", b"9", b"10"]
    assert "/proc/pressure/io" in counters.not_available
    (root / "proc/vmstat").write_text("b 3\nc 4\n")
    assert vm.cells() == [b"", b"3"]
    (root / "proc/pressure/memory").write_text("")
    assert psi.cells() == [b"", b"", b"9"]


def test_a_blocked_file_does_not_delay_sampling(tmp_path: Path) -> None:
    root = fake_root(tmp_path, proc__vmstat="".join(f"c{n} {n}\n" for n in range(2000)))
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / "vmstat.tsv")
    reader = os.open(out / "vmstat.tsv", os.O_RDONLY | os.O_NONBLOCK)
    sampler = SamplerProcess(out, {}, hz=50.0, priority=0, root=str(root))
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
    sampler = SamplerProcess(tmp_path, {}, hz=20.0, priority=0)
    sampler.start(time.monotonic())
    time.sleep(0.2)
    facts = sampler.stop()
    assert facts and facts["write_errors"] == {"vmstat.tsv": "No space left on device"}
    assert len(table(tmp_path / "meminfo.tsv")[1]) == facts["samples"]


def test_a_sampler_that_died_is_none(tmp_path: Path) -> None:
    sampler = SamplerProcess(tmp_path, {}, priority=0)
    os.kill(sampler.pid, signal.SIGKILL)
    assert sampler.stop() is None


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
        (b"garbage", None),
        (b"x,1,2,-;text", None),
        (b"", None),
    ],
)
def test_records(record: bytes, lines: bytes | None) -> None:
    assert kmsg.parse(record) == lines


def escaped(text: bytes) -> bytes:
    """As the kernel does it (msg_add_ext_text)."""
    return b"".join(bytes([c]) if 32 <= c < 127 and c != 0x5C else b"\\x%02x" % c for c in text)


@given(
    prio=st.integers(0, 255),
    usec=st.integers(0, 10**13),
    text=st.binary(max_size=300),
    keys=st.lists(st.from_regex(rb"[A-Z]{1,8}=[a-z0-9:+]{0,9}", fullmatch=True), max_size=3),
)
def test_any_record_keeps_its_text(prio: int, usec: int, text: bytes, keys: list[bytes]) -> None:
    record = b"%d,5,%d,-;%b\n" % (prio, usec, escaped(text))
    record += b"".join(b" %b\n" % key for key in keys)
    found = kmsg.parse(record)
    assert found is not None and found.endswith(b"\n")
    first, *more = found[:-1].split(b"\n")
    match = re.fullmatch(rb"\[(\d+)\.(\d{6})\] <([0-7])> (.*)", first)
    assert match and int(match[1]) * 1_000_000 + int(match[2]) == usec
    assert int(match[3]) == prio & 7
    assert all(line.startswith(b" ") for line in more)
    body = [match[4], *(line[1:] for line in more)]
    assert body[len(body) - len(keys) :] == keys
    assert b"\\x0a".join(body[: len(body) - len(keys)]) == escaped(text)


@given(st.binary(max_size=200))
def test_no_record_breaks_the_parser(record: bytes) -> None:
    found = kmsg.parse(record)
    assert found is None or found.endswith(b"\n")


def test_a_flood_is_read_in_slices_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = kmsg.Kmsg("/dev/null")
    records: list[bytes | OSError] = [b"6,%d,%d,-;r%d\n" % (n, n, n) for n in range(200)]
    records.insert(100, BrokenPipeError())
    records.append(BlockingIOError())

    def read(_fd: int, _size: int) -> bytes:
        record = records.pop(0)
        if isinstance(record, OSError):
            raise record
        return record

    monkeypatch.setattr(os, "read", read)
    text, slices, empty = b"", 0, False
    while not empty:
        lines, empty = log.read(64)
        text, slices = text + lines, slices + 1
    assert slices == 4
    assert (log.records, log.missed) == (200, 1)
    lines_read = text.splitlines()
    assert lines_read[100] == b"<missed>" and lines_read[-1].endswith(b"r199")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_json_by_hand_is_json(value: object) -> None:
    text = to_json(value)
    assert json.loads(text) == value and text.isascii() and text.isprintable()


HEAVY = (
    *("contextlib", "dataclasses", "json", "pathlib", "re", "selectors", "signal", "socket"),
    *("subprocess", "threading", "typing"),
)


def test_an_observer_imports_next_to_nothing() -> None:
    modules_of = "monitors.recorder.main, monitors.sampler.main, monitors.evidence.main"
    code = f"import sys, {modules_of}; print(*sys.modules)"
    command = [sys.executable, "-s", "-S", "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    modules = done.stdout.split()
    assert {"monitors.recorder.recorder", "monitors.observe"} <= set(modules)
    assert not [name for name in modules if name.partition(".")[0] in HEAVY]
    assert len(modules) < 70  # 46 with Python 3.11, 23 of them the interpreter's own


def test_nor_does_what_sums_in_the_kernel_import_what_is_dear() -> None:
    # Made, it would trace; imported, not.
    code = "import sys, monitors.trace.trace; print(*sys.modules)"
    command = [sys.executable, "-s", "-S", "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    dear = {"dataclasses", "inspect", "json", "pathlib", "subprocess", "typing"}
    assert not dear & set(done.stdout.split())
