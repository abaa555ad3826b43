# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: `observers trace` beside the kernel's own counters, under work of known size.

Arguments: those of run_test.sh --bare; --device names the disk for the crypt stack. Writes one
`part` event for each piece of work: what the sums grew by, and what the kernel's counters did.
"""

import contextlib
import ctypes
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.run_record import Events
from measure.machine_facts import block_name
from measure.tracepoints import gfp_flags
from run.arguments import parse
from setup import observers
from setup.crypt_lvm import activation, creation

READS = 200
HUGE = Path("/proc/sys/vm/nr_hugepages")
FAILING_WRITES = 3
MANY = 300
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")
MOUNT = Path("/run/tracing-check")
GROUP = Path("/run/cgroup/limited")
TYPES = "/sys/kernel/btf/vmlinux"
TOUCH = "import sys; b = bytearray(int(sys.argv[1]))\nfor i in range(0, len(b), 4096): b[i] = 1\n"


class Trace:
    """The sums of this kernel, by the observers' own program."""

    def __init__(self, devices: dict[str, str], types: bool = True) -> None:
        """types: whether the kernel's BTF can be seen."""
        words = [f"{prefix}={name}" for prefix, name in devices.items()]
        command = [str(observers.program()), "trace", *words]
        if not types:
            hide = f"mount --bind /dev/null {TYPES}"
            command = ["unshare", "-m", "sh", "-c", f'{hide} && exec "$@"', "sh", *command]
        self._child = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._child.pid
        *missing, columns = self._answer()
        self.not_available = [line.removeprefix("not available: ") for line in missing]
        self.columns = columns.split("\t")[1:] if columns != "columns:\t" else []

    def ask(self, what: str) -> list[str]:
        """Rows of `cells`, `failures` or `reclaimers`."""
        assert self._child.stdin
        self._child.stdin.write(f"{what}\n")
        self._child.stdin.flush()
        return self._answer()

    def cells(self) -> dict[str, int]:
        """All sums."""
        (row,) = self.ask("cells")
        return dict(zip(self.columns, map(int, row.split("\t")), strict=True))

    def close(self) -> list[str]:
        """End it; its problems."""
        said = self._child.communicate()[0]
        assert self._child.returncode == 0
        return said.splitlines()

    def _answer(self) -> list[str]:
        assert self._child.stdout
        lines = []
        while line := self._child.stdout.readline().removesuffix("\n"):
            lines.append(line)
        return lines


class Watch:
    """The trace, and the counters of the kernel that it is held against."""

    def __init__(self, trace: Trace, events: Events, devices: dict[str, str]) -> None:
        self.trace = trace
        self._events = events
        self._devices = devices

    def now(self) -> dict[str, Any]:
        """All sums and counters."""
        cells = self.trace.cells()
        words = Path("/proc/vmstat").read_text().split()
        kernel = {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}
        for prefix, device in self._devices.items():
            stat = Path(f"/sys/class/block/{device}/stat").read_text().split()
            for name, index in (("reads", 0), ("writes", 4), ("io_ms", 9)):
                kernel[f"{prefix}_{name}"] = int(stat[index])
        return {"trace": cells, "kernel": kernel, "s": time.monotonic()}

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[dict[str, Any]]:
        """Write a `part` event of what grew within; more facts can be put into what it yields."""
        before = self.now()
        facts: dict[str, Any] = {}
        yield facts
        after = self.now()
        for kind in ("trace", "kernel"):
            changed = {key: value - before[kind].get(key, 0) for key, value in after[kind].items()}
            facts[kind] = {key: value for key, value in changed.items() if value}
        self._events.write("part", name=name, s=after["s"] - before["s"], **facts)


def read_directly(device: str, count: int) -> None:
    """So many reads of a page past the page cache, each of another place."""
    fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as page:
        for number in range(count):
            os.preadv(fd, [page], number * (64 << 10))
    os.close(fd)


def write_directly(path: Path, count: int) -> None:
    """So many writes of 16 KiB past the page cache."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
    with mmap.mmap(-1, 16384) as pages:
        pages.write(os.urandom(16384))
        for number in range(count):
            os.pwrite(fd, pages, number * 16384)
    os.close(fd)


def in_group(limit: int, size: int) -> None:
    """Touch size bytes in a control group that may have limit."""
    GROUP.parent.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", str(GROUP.parent)], check=True)
    (GROUP.parent / "cgroup.subtree_control").write_text("+memory")
    GROUP.mkdir()
    (GROUP / "memory.high").write_text(str(limit))
    enter = f"echo $$ >{GROUP}/cgroup.procs; exec python3 -S -c '{TOUCH}' {size}"
    subprocess.run(["sh", "-c", enter], check=True)


def failures(trace: Trace) -> list[dict[str, Any]]:
    """All that were not told yet."""
    found = []
    for row in trace.ask("failures"):
        first, count, pid, comm, order, gfp, stack = row.split("\t")
        found.append(
            {
                "first_s": float(first),
                "count": int(count),
                "pid": int(pid),
                "comm": comm,
                "order": int(order),
                "gfp": int(gfp, 16),
                "stack": stack.split(" <- "),
            }
        )
    return found


def fail_in_child(pages: int) -> tuple[int, int]:
    """Ask for more huge pages than there are, in a process of its own: its PID and status."""
    if not (child := os.fork()):
        status = 1
        try:
            HUGE.write_text(str(pages))
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)


def logged_failures() -> int:
    """Records of failed page allocations in the kernel's log."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True).stdout
    return log.count("page allocation failure")


def fds(pid: int) -> dict[str, dict[str, str]]:
    """What /proc says of a process's BPF descriptors, by their number."""
    found = {}
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            lines = [line.partition(":\t") for line in path.read_text().splitlines()]
            info = {key: value for key, _, value in lines}
            if "memlock" in info:
                found[path.name] = info
    return found


def resident_kib(pid: int) -> int:
    """Memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def main() -> int:
    """All parts, then the cost of it."""
    # Sums and counters are read one after the other: no page of this may have to be swapped in.
    ctypes.CDLL(None).mlockall(1)
    options = parse(sys.argv[1:])
    events = Events(Path(str(options.run_dir)) / "events.jsonl")
    device = str(options.device)
    stack = creation.create(device, fs="ext4")
    crypt = str(stack.crypt)
    devices = {"disk": block_name(device), "crypt": block_name(crypt)}
    os.sync()
    blind = Trace(devices, types=False)
    events.write(
        "no_types",
        columns=blind.columns,
        not_available=blind.not_available,
        problems=blind.close(),
    )
    began = time.monotonic()
    trace = Trace(devices)
    STATS.write_text("1")
    events.write(
        "trace",
        took_s=time.monotonic() - began,
        rss_kib=resident_kib(trace.pid),
        not_available=trace.not_available,
        columns=trace.columns,
        gfp_flags=gfp_flags(),
    )
    watch = Watch(trace, events, devices)
    with watch.part("nothing"):
        time.sleep(1)
    with watch.part("disk"):
        read_directly(device, READS)
    with watch.part("crypt"):
        read_directly(crypt, READS)
    # Not before: a file system just mounted reads and writes on its own.
    activation.activate(stack, MOUNT)
    with watch.part("writes"):
        write_directly(MOUNT / "file", READS)
        os.sync()
    with watch.part("compaction"):
        Path("/proc/sys/vm/compact_memory").write_text("1")
    with watch.part("memcg"):
        in_group(32 << 20, 36 << 20)
    mem_total = int(Path("/proc/meminfo").read_text().split()[1]) << 10
    with watch.part("pressure") as facts:
        touch = [sys.executable, "-S", "-c", TOUCH, str(mem_total * 9 // 20)]
        both = [subprocess.Popen(touch) for _ in range(2)]
        rows = []
        while any(process.poll() is None for process in both):
            time.sleep(0.25)
            trace.cells()  # drops what was lost, as in a run
            rows += failures(trace)[:20]
        facts["status"] = [process.returncode for process in both]
        time.sleep(1)
    found = [row.split("\t") for row in trace.ask("reclaimers")]
    events.write("reclaimers", rows=[[int(r[0]), r[1], *map(int, r[2:])] for r in found])
    events.write("amid_pressure", rows=rows[:20])
    with watch.part("failures") as facts:
        logged = logged_failures()
        for _ in range(FAILING_WRITES):
            HUGE.write_text(str(mem_total >> 20))
            HUGE.write_text("0")
        facts["logged"] = logged_failures() - logged
        facts["rows"] = failures(trace)
    with watch.part("many") as facts:
        facts["children"] = [fail_in_child(mem_total >> 20) for _ in range(MANY)]
        HUGE.write_text("0")
        facts["many"] = trace.ask("many")
        facts["rows"] = failures(trace)
        facts["many_left"] = trace.ask("many")
    beat = time.monotonic()
    for _ in range(100):
        trace.cells()
    cells_us = (time.monotonic() - beat) * 1e4
    beat = time.monotonic()
    for _ in range(100):
        trace.ask("failures")
    failures_us = (time.monotonic() - beat) * 1e4
    info = fds(trace.pid)
    events.write("problems", problems=trace.close())
    events.write("cost", cells_us=cells_us, failures_us=failures_us, fds=info)
    creation.destroy(stack)
    events.write("status", state="completed", why="checked")
    return 0


if __name__ == "__main__":
    sys.exit(main())
