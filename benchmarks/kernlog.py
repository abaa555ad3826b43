# SPDX-License-Identifier: GPL-2.0-or-later
"""How long and how much memory it takes to read a 100 MB kernel log: `… -m benchmarks.kernlog`.

Makes three logs in a temporary folder, always the same ones, and lets `analysis.kernlog --json`
read each: an ordinary log with occasional failures, the log of a machine that only fails (the
live-lock of the first report), and the same with two CPUs that print at once. Target: 10 s, 100 MB.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from errors import UserError, run_command

SUITE = Path(__file__).resolve().parents[1]
FRAMES = (
    *("warn_alloc", "__alloc_pages_slowpath.constprop.0", "__alloc_pages", "new_slab"),
    *(f"function_number_{n}" for n in range(20)),
)


def failure(task: str, pid: int, order: int) -> list[str]:
    """The lines of one page allocation failure, as 6.1 prints them."""
    zone = "min:1800kB low:2248kB high:2696kB active_anon:9188kB inactive_anon:220048kB " * 4
    return [
        f"{task}: page allocation failure: order:{order}, mode:0x40820(GFP_ATOMIC|__GFP_COMP), "
        "nodemask=(null),cpuset=/,mems_allowed=0",
        f"CPU: 1 PID: {pid} Comm: {task} Not tainted 6.1.0-40-amd64 #1  Debian 6.1.153-1",
        "Hardware name: QEMU Standard PC (i440FX + PIIX, 1996), BIOS 1.16.2-1 04/01/2014",
        "Call Trace:",
        " <TASK>",
        *(f" {name}+0x{40 + n:x}/0x130" for n, name in enumerate(FRAMES)),
        " </TASK>",
        "Mem-Info:",
        "active_anon:2297 inactive_anon:55012 isolated_anon:38",
        " active_file:3211 inactive_file:3190 isolated_file:12",
        " unevictable:12 dirty:3 writeback:702",
        f"Node 0 active_anon:9188kB inactive_anon:220048kB {zone}all_unreclaimable? no",
        f"Node 0 DMA free:1908kB boost:0kB {zone}free_cma:0kB",
        "lowmem_reserve[]: 0 429 429 429",
        f"Node 0 DMA32 free:1756kB boost:0kB {zone}free_cma:0kB",
        "lowmem_reserve[]: 0 0 0 0",
        "Node 0 DMA: 9*4kB (UME) 8*8kB (UME) 3*16kB (U) 1*32kB (E) 0*64kB = 1908kB",
        "Node 0 DMA32: 327*4kB (UME) 56*8kB (UE) 0*16kB 0*32kB 0*64kB 0*128kB = 1756kB",
        "12 total pagecache pages",
        "702 pages in swap cache",
        "Free swap  = 1204404kB",
        "Total swap = 2097148kB",
        "131069 pages RAM",
        "0 pages HighMem/MovableOnly",
        "19281 pages reserved",
    ]


def ordinary(size: int) -> Iterator[str]:
    """A desktop's syslog of `size` bytes, with a failure every 20,000 lines."""
    n = 0
    while size > 0:
        at = f"Nov  2 12:{n // 6000 % 60:02}:{n // 100 % 60:02} desk kernel: [{n / 100:12.6f}] "
        texts = [f"usb 1-{n % 9}: new high-speed USB device number {n % 127} using xhci_hcd"]
        texts = failure("gitk", n, n % 4) if n % 20000 == 0 else texts
        for text in texts:
            yield at + text + "\n"
            size -= len(at) + len(text) + 1
        n += 1


def flood(size: int) -> Iterator[str]:
    """A log of `size` bytes with only failures, one after the other."""
    n = 0
    while size > 0:
        for text in failure(f"gitk-{n % 4}", n, 2):
            line = f"[{n / 50:12.6f}] {text}\n"
            yield line
            size -= len(line)
        n += 1


def two_cpus(size: int) -> Iterator[str]:
    """A log of `size` bytes with failures of two CPUs, whose lines alternate."""
    n = 0
    while size > 0:
        for pair in zip(failure("gitk", n, 2), failure("player", n + 1, 0), strict=True):
            for cpu, text in enumerate(pair):
                line = f"[{n / 50:12.6f}][{f'T{200 + cpu}':>6}] {text}\n"
                yield line
                size -= len(line)
        n += 2


LOGS: dict[str, Callable[[int], Iterator[str]]] = {
    "ordinary": ordinary,
    "flood": flood,
    "two CPUs": two_cpus,
}


def read(path: Path) -> tuple[float, float, float, int]:
    """Elapsed seconds, CPU seconds, peak MB and the number of records."""
    command = [sys.executable, "-m", "analysis.kernlog", "--json", str(path)]
    began = time.monotonic()
    with subprocess.Popen(command, cwd=SUITE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        count = sum(1 for _ in child.stdout)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise UserError(f"analysis.kernlog ended with status {child.returncode}")
    cpu = used.ru_utime + used.ru_stime
    return time.monotonic() - began, cpu, used.ru_maxrss * 1024 / 1e6, count


def main(arguments: list[str] | None = None) -> int:
    """Make the logs, read them and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.kernlog", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--megabytes", type=int, default=100, help="size of each log in MB (default: 100)"
    )
    size = parser.parse_args(arguments).megabytes * 1_000_000
    head = f"{'log':<10} {'MB':>6} {'lines':>9} {'records':>8} {'seconds':>8} {'CPU s':>6}"
    print(f"{head} {'peak MB':>8}")
    with tempfile.TemporaryDirectory(prefix="kernlog-") as folder:
        for name, make in LOGS.items():
            path = Path(folder) / "log"
            lines = 0
            with path.open("w") as log:
                for line in make(size):
                    log.write(line)
                    lines += 1
            seconds, cpu, peak, count = read(path)
            megabytes = path.stat().st_size / 1e6
            row = f"{name:<10} {megabytes:>6.0f} {lines:>9,} {count:>8,}"
            print(f"{row} {seconds:>8.1f} {cpu:>6.1f} {peak:>8.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.kernlog", main))
