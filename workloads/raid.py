# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a RAID-0 of the VM's further disks for each run and stops it afterwards, with mdadm(8)."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from workloads.load_output import search_path

ARRAY = "md0"
PATIENCE_S = 30.0
PACKAGES = {"mdadm": "mdadm"}
MODULES = ("raid0",)
CONFIG = ("CONFIG_MD_RAID0", "CONFIG_EXT2_FS|CONFIG_EXT4_USE_FOR_EXT2")
# One inode per this many bytes: workloads have few files, and more inodes mean more to write.
BYTES_PER_INODE = 1 << 20
# A fixed seed, so that a file's name hashes to the same block in every run.
HASH_SEED = "5eed5eed-5eed-4eed-8eed-5eed5eed5eed"


@contextlib.contextmanager
def assembled(disks: tuple[str, ...], place: Path) -> Iterator[None]:
    """Make an empty array of these disks (the kernel's names), with mdadm's default chunk size.

    place: an empty folder for its file system, which is unmounted at the end. The disks are thrown
    away with the VM, and with them what a killed run leaves there.
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
    """The commands that make an ext2 file system on the whole array and mount it at place."""
    options = f"lazy_itable_init=0,nodiscard,hash_seed={HASH_SEED}"
    how = ("-qF", "-t", "ext2", "-i", str(BYTES_PER_INODE), "-E", options)
    return [
        ("mke2fs", *how, f"/dev/{ARRAY}"),
        ("mount", "-t", "ext2", f"/dev/{ARRAY}", str(place)),
    ]


def command(*argv: str) -> None:
    """Run a command; UserError with its last line if it fails."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PATH": search_path()},
        )
    except FileNotFoundError:
        raise UserError(f"{argv[0]} is missing") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[-1] if lines else f"status {done.returncode}"
        raise UserError(f"{' '.join(argv[:2])}: {reason}")


def _patiently_unmount(place: Path) -> None:
    """Unmount; retry for PATIENCE_S seconds, as a program of the run may still be ending."""
    give_up = time.monotonic() + PATIENCE_S
    while place.is_mount():
        try:
            command("umount", str(place))
        except UserError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.2)
