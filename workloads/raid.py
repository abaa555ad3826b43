# SPDX-License-Identifier: GPL-2.0-or-later
"""A RAID-0 of a VM's own disks, made anew for each run and taken apart after it: mdadm(8)."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from workloads.telling import searched

ARRAY = "md0"
PATIENCE_S = 30.0
PACKAGES = {"mdadm": "mdadm"}
MODULES = ("raid0",)
CONFIG = ("CONFIG_MD_RAID0", "CONFIG_EXT2_FS|CONFIG_EXT4_USE_FOR_EXT2")
# An inode for so many bytes: a workload has few files, and more inodes are only more to write.
BYTES_PER_INODE = 1 << 20
# Which block a file's name hashes to must not differ from run to run.
HASH_SEED = "5eed5eed-5eed-4eed-8eed-5eed5eed5eed"


@contextlib.contextmanager
def made(disks: tuple[str, ...], place: Path) -> Iterator[None]:
    """The array of these disks, by the kernel's names, with mdadm's own chunks and nothing on it.

    place: an empty folder for its file system. Whatever is mounted there is unmounted at the end.
    The disks are a VM's own and thrown away with it, and so is what a killed run leaves on them.
    """
    place.mkdir()
    how = ["--run", "--quiet", "--level=0", f"--raid-devices={len(disks)}"]
    command("mdadm", "--create", f"/dev/{ARRAY}", *how, *(f"/dev/{name}" for name in disks))
    try:
        yield
    finally:
        _patiently_unmount(place)
        command("mdadm", "--stop", "--quiet", f"/dev/{ARRAY}")
        place.rmdir()


def file_system(place: Path) -> list[tuple[str, ...]]:
    """The commands that make an ext2 on the whole array, and mount it at place."""
    options = f"lazy_itable_init=0,nodiscard,hash_seed={HASH_SEED}"
    how = ("-qF", "-t", "ext2", "-i", str(BYTES_PER_INODE), "-E", options)
    return [
        ("mke2fs", *how, f"/dev/{ARRAY}"),
        ("mount", "-t", "ext2", f"/dev/{ARRAY}", str(place)),
    ]


def command(*argv: str) -> None:
    """Run it; UserError with its last line if it fails."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": searched()},
        )
    except FileNotFoundError:
        raise UserError(f"{argv[0]} is missing") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = lines[-1] if lines else f"status {done.returncode}"
        raise UserError(f"{' '.join(argv[:2])}: {said}")


def _patiently_unmount(place: Path) -> None:
    """A program of the run may still be ending."""
    give_up = time.monotonic() + PATIENCE_S
    while place.is_mount():
        try:
            command("umount", str(place))
        except UserError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)
