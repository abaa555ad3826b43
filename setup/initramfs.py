# SPDX-License-Identifier: GPL-2.0-or-later
"""A small initramfs for one kernel: busybox, the modules that the test needs, and an /init."""

import stat
from pathlib import Path

from contract.swap import ON_DISK, Swap
from setup import cache, modules
from setup.kernels import Kernel
from setup.userland import tools

INIT = Path(__file__).resolve().parent.parent / "vm" / "initramfs_init.sh"
APPLETS = ("sh", "cat", "echo", "insmod", "mkdir", "mount", "poweroff", "sleep", "switch_root")
FORMAT = 2


class Archive:
    """A newc cpio archive, which needs no root: device nodes are only entries in it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._inode = 0

    def add(
        self, name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)
    ) -> None:
        """Append an entry; mode includes the file type."""
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(encoded), 0)
        entry = b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self._parts += [entry, bytes(-len(entry) % 4), data, bytes(-len(data) % 4)]

    def folder(self, name: str) -> None:
        """Append a folder."""
        self.add(name, stat.S_IFDIR | 0o755)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Append a file."""
        self.add(name, stat.S_IFREG | mode, data)

    def link(self, name: str, target: str) -> None:
        """Append a symbolic link."""
        self.add(name, stat.S_IFLNK | 0o777, target.encode())

    def finish(self) -> bytes:
        """The whole archive."""
        self._inode = -1
        self.add("TRAILER!!!", 0)
        return b"".join(self._parts)


def _archive(chosen: list[modules.Module], shell: Path) -> bytes:
    archive = Archive()
    for folder in ("bin", "dev", "modules", "proc", "sys", "root-mnt"):
        archive.folder(folder)
    # Until devtmpfs is mounted, /init can only write to these.
    archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.add("dev/null", stat.S_IFCHR | 0o666, device=(1, 3))
    archive.file("bin/busybox", shell.read_bytes(), 0o755)
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    lines = []
    for module in chosen:
        archive.file(f"modules/{module.name}", modules.contents(module.path))
        lines.append(f"{'-' if module.optional else ''}{module.name}\n")
    archive.file("modules.list", "".join(lines).encode())
    archive.file("init", INIT.read_bytes(), 0o755)
    return archive.finish()


def _write(path: Path, chosen: list[modules.Module], shell: Path) -> None:
    path.write_bytes(_archive(chosen, shell))


def build(
    kernel: Kernel,
    *,
    fs: str = "ext4",
    crypt: bool = True,
    swap: Swap = ON_DISK,
    more: tuple[str, ...] = (),
) -> Path:
    """The initramfs of this kernel for this test, from the cache if it is there.

    The cpio is not compressed, so that it does not depend on a version of zlib.

    more: the modules that a workload needs.
    """
    shell = tools.root() / "usr/bin/busybox"
    chosen = modules.needed(kernel, fs=fs, crypt=crypt, swap=swap, more=more)
    stamps = [
        f"{module.path} {module.optional} {module.path.stat().st_mtime_ns} "
        f"{module.path.stat().st_size}"
        for module in chosen
    ]
    parts = [tools.identity(), INIT.read_text(), kernel.image_digest, *stamps]
    key = cache.key(str(FORMAT), *parts)
    return cache.built("initramfs", f"{key}.cpio", lambda path: _write(path, chosen, shell))
