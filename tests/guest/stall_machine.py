# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: the devices, cgroups and knobs with which a program is made to stall.

    disk "work" -> frozen-swap, frozen-fs (linear: suspended, they stand for a disk that froze)
                -> crypt (dm-crypt: suspended, it is slow while the disk below is idle)
                     -> crypt-swap, crypt-fs
    disk "slow" -> slow (dm-crypt) -> slow-swap, slow-fs (each request takes this disk long)

A mapping is suspended and resumed by ioctl(2): no program has to be started while memory is short.
"""

import contextlib
import ctypes
import fcntl
import os
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from setup.crypt_lvm import mapper

MIB_SECTORS = 2048
FILE_BYTES = 16 << 20
FS = Path("/run/fs")
CGROUPS = Path("/run/cgroup")
CGROUPS_V1 = Path("/run/cgroup-v1")
# name -> (device below, offset MiB, size MiB)
LINEAR = {
    "frozen-swap": ("work", 0, 512),
    "frozen-fs": ("work", 512, 128),
    "crypt-swap": ("crypt", 1024, 64),
    "crypt-fs": ("crypt", 1088, 128),
    "slow-swap": ("slow", 0, 64),
    "slow-fs": ("slow", 64, 128),
}
CRYPT = {"crypt": "work", "slow": "slow-disk"}
DM_DEV_SUSPEND = 0xC138FD06
DM_SUSPEND, DM_SKIP_LOCKFS, DM_NOFLUSH = 1 << 1, 1 << 10, 1 << 11
libc = ctypes.CDLL(None, use_errno=True)


class Absent(Exception):
    """This kernel does not offer what a scene needs."""


class Machine:
    """The guest with everything built; what a scene changes is put back by `rescue()`."""

    def __init__(self) -> None:
        self._control = -1
        self._knobs: dict[Path, str] = {}

    def build(self) -> None:
        """Mappings, file systems with a file each, swap areas, cgroups."""
        paths = {"work": disk("work"), "slow-disk": disk("slow")}
        for name, below in CRYPT.items():
            mapper.open_crypt(paths[below], name)
            paths[name] = f"/dev/mapper/{name}"
        for name, (below, offset, size) in LINEAR.items():
            table = f"0 {size * MIB_SECTORS} linear {paths[below]} {offset * MIB_SECTORS}"
            mapper.run("dmsetup", "create", name, "--table", table)
        making = [subprocess.Popen(_maker(name)) for name in LINEAR]
        assert all(one.wait() == 0 for one in making)
        for name in LINEAR:
            if name.endswith("-fs"):
                place = FS / name.removesuffix("-fs")
                place.mkdir(parents=True)
                mapper.run("mount", "-o", "noatime,commit=300", f"/dev/mapper/{name}", str(place))
                piece = os.urandom(1 << 20)
                with open(place / "file", "wb") as file:
                    for _ in range(FILE_BYTES >> 20):
                        file.write(piece)
                    os.fsync(file.fileno())
        CGROUPS.mkdir()
        mapper.run("mount", "-t", "cgroup2", "cgroup2", str(CGROUPS))
        (CGROUPS / "cgroup.subtree_control").write_text("+cpu +memory")
        self._control = os.open("/dev/mapper/control", os.O_RDWR | os.O_CLOEXEC)

    def devices(self, crypt: str) -> dict[str, str]:
        """What the observers watch: the disk under `crypt`, that, its swap and file system."""
        below = "work" if crypt == "crypt" else "slow"
        names = mapper.mapped()
        return {
            "disk": Path(disk(below)).name,
            "crypt": names[crypt],
            "swap": names[f"{crypt}-swap"],
            "fs": names[f"{crypt}-fs"],
        }

    @contextlib.contextmanager
    def suspended(self, name: str) -> Iterator[None]:
        """Within: what is sent to that mapping stays in it."""
        self._order(name, DM_SUSPEND | DM_SKIP_LOCKFS | DM_NOFLUSH)
        try:
            yield
        finally:
            self._order(name, 0)

    def _order(self, name: str, flags: int) -> None:
        # struct dm_ioctl of include/uapi/linux/dm-ioctl.h
        order = struct.pack(
            "=3I 2I I i 2I I Q 128s 129s 7x",
            *(4, 0, 0, 312, 312, 0, 0, flags, 0, 0, 0, name.encode(), b""),
        )
        fcntl.ioctl(self._control, DM_DEV_SUSPEND, bytearray(order))

    @contextlib.contextmanager
    def swap(self, name: str) -> Iterator[None]:
        """Within: the only swap is on that mapping, and read a page at a time."""
        path = f"/dev/mapper/{name}".encode()
        with self.knob("/proc/sys/vm/page-cluster", "0"):
            assert libc.swapon(path, 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                libc.swapoff(path)

    @contextlib.contextmanager
    def encrypted(self, name: str) -> Iterator[str]:
        """Within: a swap area in a dm-crypt mapping of its own upon that mapping; its name."""
        mapper.open_crypt(f"/dev/mapper/{name}", "upon")
        mapper.run("mkswap", "-q", "/dev/mapper/upon")
        try:
            yield "upon"
        finally:
            mapper.run("dmsetup", "remove", "--retry", "upon")
            mapper.run("mkswap", "-q", f"/dev/mapper/{name}")  # what others use as it is

    @contextlib.contextmanager
    def knob(self, path: str, value: str) -> Iterator[None]:
        """Within: that file holds value."""
        place = Path(path)
        before = place.read_text()
        self._knobs[place] = before
        place.write_text(value)
        try:
            yield
        finally:
            place.write_text(before)
            del self._knobs[place]

    @contextlib.contextmanager
    def group(self, name: str) -> Iterator[Path]:
        """Within: a cgroup (v2); what is still in it at the end goes to the root's."""
        folder = CGROUPS / name
        folder.mkdir()
        try:
            yield folder
        finally:
            for pid in (folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (CGROUPS / "cgroup.procs").write_text(pid)
            folder.rmdir()

    def memory_v1(self) -> Path:
        """Give the memory controller to a v1 hierarchy; Absent if this kernel has none."""
        (CGROUPS / "cgroup.subtree_control").write_text("-memory")
        CGROUPS_V1.mkdir(exist_ok=True)
        command = ["mount", "-t", "cgroup", "-o", "memory", "cgroup", str(CGROUPS_V1)]
        until = time.monotonic() + 12
        # The v2 groups of earlier scenes live on until the last page charged to them is gone.
        while not CGROUPS_V1.is_mount():
            Path("/proc/sys/vm/drop_caches").write_text("3")
            said = subprocess.run(command, capture_output=True, text=True).stderr
            if said and "busy" not in said:
                raise Absent(said.splitlines()[0])
            assert time.monotonic() < until, said
            time.sleep(0.3)
        if not (CGROUPS_V1 / "memory.limit_in_bytes").exists():
            raise Absent("no memory controller of cgroup v1")
        return CGROUPS_V1

    def rescue(self) -> None:
        """Let everything go on: resume all mappings, put all knobs back."""
        for name in (*LINEAR, *CRYPT):
            with contextlib.suppress(OSError):
                self._order(name, 0)
        for place, before in list(self._knobs.items()):
            with contextlib.suppress(OSError):
                place.write_text(before)


def disk(serial: str) -> str:
    """The device node of the virtio disk of that serial."""
    for path in Path("/sys/block").glob("vd*/serial"):
        if path.read_text().strip() == serial:
            return f"/dev/{path.parent.name}"
    raise FileNotFoundError(serial)


def _maker(name: str) -> list[str]:
    device = f"/dev/mapper/{name}"
    if name.endswith("-swap"):
        return ["mkswap", "-q", device]
    options = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    return ["mke2fs", "-qF", "-t", "ext4", "-i", "1048576", "-J", "size=4", "-E", options, device]
