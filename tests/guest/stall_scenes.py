# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: the scenes, each of which makes a victim stall in one way only.

A scene prepares the victim, lets it go, holds it up for some HOLD_S, and puts everything back.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.guest.stall_machine import FS, Absent, Machine

HOLD_S = 3.2
STOPPED_S = 4.0
PATIENCE_S = 20.0
AFTERWARDS_S = 0.4
HOG_PRIORITY = "1"  # below ours and the observers'
HELPERS = Path(__file__).with_name("stall_helpers.py")
FROZEN, CRYPT, SLOW = (str(FS / name / "file") for name in ("frozen", "crypt", "slow"))


class SceneError(Exception):
    """The scene could not be played."""


class Victim:
    """The victim as the driver sees it; `began` and `ended` of its stall are monotonic seconds."""

    def __init__(self, folder: Path) -> None:
        self.reset()
        self.fifos = [str(folder / name) for name in ("orders", "said")]
        for fifo in self.fifos:
            os.mkfifo(fifo)
        self._orders, self._said = (os.open(fifo, os.O_RDWR) for fifo in self.fifos)
        self._heard = b""
        self._ended = False
        self.pid = 0

    def reset(self) -> None:
        """Before a scene."""
        self.began = self.ended = self.held = self.stalled = 0.0

    def line(self) -> str:
        """The next thing that it says."""
        until = time.monotonic() + PATIENCE_S
        while b"\n" not in self._heard:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._said], [], [], left)[0]:
                raise SceneError("the victim says nothing")
            self._heard += os.read(self._said, 4096)
        line, _, self._heard = self._heard.partition(b"\n")
        word, _, rest = line.decode().partition(" ")
        if word == "error":
            raise SceneError(rest)
        return rest or word

    def prepare(self, name: str, **arguments: Any) -> None:
        """Have it make ready for its stall."""
        self._order(f"prepare {name} {json.dumps(arguments)}")
        self.line()

    def go(self, hold_s: float = 0.0) -> None:
        """Let it stall; return hold_s later."""
        self.began = time.monotonic()
        self._order("go")
        time.sleep(hold_s)
        self.held = time.monotonic() - self.began

    def done(self) -> None:
        """Return when the stall is over."""
        self.stalled = float(self.line())
        self.ended = time.monotonic()

    def end(self) -> None:
        """Have it end, a moment after its stall, and wait until it has."""
        if self._ended:
            return
        self._ended = True
        time.sleep(AFTERWARDS_S)
        self._order("end")
        until = time.monotonic() + PATIENCE_S
        while Path(f"/proc/{self.pid}").exists() and time.monotonic() < until:
            time.sleep(0.05)

    def close(self) -> None:
        """Close and remove the FIFOs."""
        os.close(self._orders)
        os.close(self._said)
        for fifo in self.fifos:
            Path(fifo).unlink()

    def _order(self, text: str) -> None:
        os.write(self._orders, text.encode() + b"\n")


@contextlib.contextmanager
def helper(*words: str) -> Iterator[Callable[[], int]]:
    """A program of stall_helpers.py that is ready; what is yielded lets it act."""
    process = subprocess.Popen(
        [sys.executable, "-S", str(HELPERS), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin and process.stdout
    to, said = process.stdin.fileno(), process.stdout.fileno()
    try:
        if not select.select([said], [], [], PATIENCE_S)[0] or os.read(said, 6) != b"ready\n":
            raise SceneError(f"{words[0]} is not ready")
        yield partial(os.write, to, b"go\n")
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def stopped(machine: Machine, victim: Victim) -> None:
    victim.began = time.monotonic()
    os.kill(victim.pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    os.kill(victim.pid, signal.SIGCONT)
    victim.ended = time.monotonic()
    victim.held = victim.stalled = victim.ended - victim.began


def cpu_running(machine: Machine, victim: Victim) -> None:
    victim.prepare("compute", seconds=HOLD_S)
    victim.go()
    victim.done()


def cpu_starved_fifo(machine: Machine, victim: Victim) -> None:
    # What a fair server (6.12) gives the victim beside the hog must not be enough for a line.
    victim.prepare("compute", cpu_s=0.25)
    unlimited = machine.knob("/proc/sys/kernel/sched_rt_runtime_us", "-1")
    with helper("hog", HOG_PRIORITY, str(HOLD_S)) as act, unlimited:
        victim.go(0.05)
        act()
        victim.done()


def cpu_starved_quota(machine: Machine, victim: Victim) -> None:
    with machine.group("quota") as group:
        victim.prepare("compute", cpu_s=0.16, group=str(group))
        (group / "cpu.max").write_text("4000 100000")
        victim.go()
        victim.done()
        (group / "cpu.max").write_text("max 100000")


def _swap_in(machine: Machine, victim: Victim, swap: str, suspend: str = "") -> None:
    with machine.group("swapped") as group, machine.swap(swap):
        seconds = 0.0 if suspend else HOLD_S
        victim.prepare("swapped", mib=1, group=str(group), seconds=seconds)
        if suspend:
            with machine.suspended(suspend):
                victim.go(HOLD_S)
        else:
            victim.go()
        victim.done()
        if not suspend:
            victim.end()  # what it has in swap need not be read to turn that off


def swap_in_frozen(machine: Machine, victim: Victim) -> None:
    _swap_in(machine, victim, "frozen-swap", "frozen-swap")


def swap_in_slow(machine: Machine, victim: Victim) -> None:
    _swap_in(machine, victim, "slow-swap")


def dm_crypt_swap(machine: Machine, victim: Victim) -> None:
    _swap_in(machine, victim, "crypt-swap", "crypt")


def _held_up(machine: Machine, victim: Victim, suspend: str) -> None:
    with machine.suspended(suspend):
        victim.go(HOLD_S)
    victim.done()


def file_read_frozen(machine: Machine, victim: Victim) -> None:
    victim.prepare("read", path=FROZEN)
    _held_up(machine, victim, "frozen-fs")


def file_read_slow(machine: Machine, victim: Victim) -> None:
    victim.prepare("read", path=SLOW, seconds=HOLD_S)
    victim.go()
    victim.done()


def dm_crypt_read(machine: Machine, victim: Victim) -> None:
    victim.prepare("read", path=CRYPT)
    _held_up(machine, victim, "crypt")


def file_write_frozen(machine: Machine, victim: Victim) -> None:
    victim.prepare("synced", path=FROZEN)
    _held_up(machine, victim, "frozen-fs")


def dm_crypt_write(machine: Machine, victim: Victim) -> None:
    victim.prepare("synced", path=CRYPT)
    _held_up(machine, victim, "crypt")


def lock(machine: Machine, victim: Victim) -> None:
    with helper("holder", FROZEN) as act:
        victim.prepare("locked", path=FROZEN)
        with machine.suspended("frozen-fs"):
            act()
            time.sleep(0.3)
            victim.go(HOLD_S)
        victim.done()


def compaction(machine: Machine, victim: Victim) -> None:
    path = "/proc/sys/vm/compact_memory"
    victim.prepare("ordered", path=path, value="1", seconds=HOLD_S)
    victim.go()
    victim.done()


def reclaim_scan(machine: Machine, victim: Victim) -> None:
    hole = str(FS / "frozen/hole")
    with machine.group("pinned") as group, helper("pinner", hole, "24", str(group)):
        path = str(group / "memory.high")
        victim.prepare("ordered", path=path, value="0", seconds=HOLD_S)
        victim.go()
        victim.done()


def reclaim_noprogress(machine: Machine, victim: Victim) -> None:
    with machine.group("high") as group:
        victim.prepare("grown", mib=48, seconds=HOLD_S, group=str(group))
        (group / "memory.high").write_text("2M")
        victim.go()
        victim.done()
        (group / "memory.high").write_text("max")


def reclaim_kswapd(machine: Machine, victim: Victim) -> None:
    with machine.swap("frozen-swap"):
        Path("/proc/sys/vm/drop_caches").write_text("1")
        with helper("filler", "70"):
            victim.prepare("grown", mib=32, seconds=HOLD_S)
            reserves = machine.knob("/proc/sys/vm/min_free_kbytes", str(200 << 10))
            with machine.suspended("frozen-swap"), reserves:
                victim.go(HOLD_S)
        victim.done()


def reclaim_swapout(machine: Machine, victim: Victim) -> None:
    # dm-crypt lets one request of swap-out be under way, and that one is held up below it.
    limit = "/sys/module/dm_mod/parameters/swap_bios"
    if not Path(limit).exists():
        raise Absent("device-mapper does not limit swap-out")
    with (
        machine.group("grown") as group,
        machine.encrypted("frozen-swap") as swap,
        machine.swap(swap),
        machine.knob(limit, "1"),
    ):
        victim.prepare("grown", mib=8, seconds=HOLD_S, group=str(group))
        (group / "memory.max").write_text("4M")
        _held_up(machine, victim, "frozen-swap")
        (group / "memory.max").write_text("max")
        victim.end()


def reclaim_writeback(machine: Machine, victim: Victim) -> None:
    group = machine.memory_v1() / "small"
    group.mkdir(exist_ok=True)
    (group / "memory.limit_in_bytes").write_text("8M")
    with machine.knob("/proc/sys/vm/dirty_ratio", "90"):
        # Of an existing file: who finds blocks for a new one reads the device, and holds a lock.
        victim.prepare("written", path=FROZEN, mib=11, group=str(group))
        _held_up(machine, victim, "frozen-fs")


@dataclass(frozen=True)
class Scene:
    """How a scene is played."""

    play: Callable[[Machine, Victim], None]
    crypt: str = "crypt"  # the dm-crypt mapping that is observed
    alone: bool = False  # in a recording of its own

    def goes_with(self, other: "Scene") -> bool:
        """Whether the other can be in the same recording, after this one."""
        return other is self or not (self.alone or other.alone or self.crypt != other.crypt)

    @property
    def name(self) -> str:
        """Its name."""
        return self.play.__name__


SCENES = {
    scene.name: scene
    for scene in (
        Scene(stopped),
        Scene(cpu_running),
        Scene(cpu_starved_fifo),
        Scene(cpu_starved_quota),
        Scene(swap_in_frozen),
        Scene(file_read_frozen),
        Scene(file_write_frozen),
        Scene(dm_crypt_read),
        Scene(dm_crypt_write),
        Scene(dm_crypt_swap),
        Scene(lock),
        Scene(compaction),
        Scene(reclaim_scan),
        Scene(reclaim_noprogress),
        Scene(swap_in_slow, "slow", alone=True),
        Scene(file_read_slow, "slow", alone=True),
        Scene(reclaim_swapout, alone=True),
        Scene(reclaim_kswapd, alone=True),
        # The last: it takes the memory controller from the cgroups of the others.
        Scene(reclaim_writeback, alone=True),
    )
}
