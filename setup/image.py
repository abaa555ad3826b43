# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's root file system: Debian bookworm in an ext4 image, built once, as any user.

mmdebstrap makes a tar, and mke2fs of the suite's tools the image of it. The same packages are the
same bytes, whoever makes it, and where and when.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from errors import run_command
from setup import cache
from setup.userland import bootstrap, ext4, tools

PACKAGES = (
    "cryptsetup-bin",
    "dmsetup",
    "e2fsprogs",
    "git",
    "iproute2",
    "iputils-ping",
    "kmod",
    "lvm2",
    "procps",
    "python3",
    "python3-pexpect",
    "rsync",
    "util-linux",
    "xfsprogs",
)
# Left out of every package: nobody reads documentation in the guest.
LEFT_OUT = (
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
    "/usr/share/bug/*",
    "/usr/share/zoneinfo/*",
)
# Of mmdebstrap's tree: what comes from the host, changes by itself, or has no reader in the guest.
NOT_THE_GUESTS = (
    *("dev/", "etc/apt/", "etc/dpkg/", "etc/machine-id/", "etc/resolv.conf/", "proc/", "run/"),
    *("sys/", "tmp/", "usr/lib/udev/hwdb.d/", "usr/share/perl/", "var/backups/", "var/cache/"),
    *("var/lib/apt/", "var/lib/dpkg/", "var/log/"),
    *(pattern.removeprefix("/").removesuffix("*") for pattern in LEFT_OUT),
)
EMPTY = ("dev", "proc", "run", "sys", "tmp", "var/cache", "var/log")
FREE = 256 << 20
FORMAT = 3


def key(more: tuple[str, ...] = ()) -> str:
    """What the image is cached by: it changes when the guest's contents would."""
    return cache.key(str(FORMAT), bootstrap.SUITE, str(FREE), *PACKAGES, *more, *LEFT_OUT)


def describe(more: tuple[str, ...] = ()) -> str:
    """One line that says what build() would do; writes nothing."""
    size = "about 400 MB" + (" without the workloads' own" if more else "")
    packages = f"{len(PACKAGES + more)} packages ({size}, built once)"
    return f"a guest image of Debian {bootstrap.SUITE} with {packages}"


def _debootstrap(tar: Path, more: tuple[str, ...], mirror: str | None) -> None:
    options = [
        "--variant=minbase",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        # The suite's own start-up: no init system, a place for the job disk and for device nodes.
        '--customize-hook=mkdir -p "$1/job" "$1/results" "$1/mnt/test"',
        # mmdebstrap has copied the host's, with its mode.
        '--customize-hook=rm -f "$1/etc/hostname" "$1/etc/hosts"',
        '--customize-hook=echo guest > "$1/etc/hostname"',
        '--customize-hook=echo 127.0.0.1 localhost guest > "$1/etc/hosts"',
        '--customize-hook=chmod 0644 "$1/etc/hostname" "$1/etc/hosts"',
    ]
    bootstrap.make_tar(
        tar,
        PACKAGES + more,
        options,
        mirror=mirror,
        what="building the guest image",
        prefix=_of_its_own(),
    )


def _of_its_own() -> list[str]:
    """Before mmdebstrap: what it mounts as root nobody else sees, and it is gone with it."""
    prefix = ["unshare", "--mount"]
    if os.geteuid() != 0 or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return []
    return prefix


def _unpack(tar: Path, tree: Path) -> None:
    """The files of the tar, without what tells of this host or of this day."""
    tree.mkdir()
    folders: list[tuple[Path, int]] = []
    with tarfile.open(tar) as archive:
        for member in archive:
            name = member.name.removeprefix("./").rstrip("/")
            if name in ("", ".") or f"{name}/".startswith(NOT_THE_GUESTS):
                continue
            path = tree / name
            if member.isdir():
                path.mkdir()
                folders.append((path, member.mode))
            elif member.issym():
                path.symlink_to(member.linkname)
            elif member.islnk():
                os.link(tree / member.linkname.removeprefix("./"), path)
            elif (data := archive.extractfile(member)) is not None:
                with data, open(path, "wb") as file:
                    shutil.copyfileobj(data, file)
                path.chmod(member.mode)
    for name in EMPTY:
        (tree / name).mkdir(exist_ok=True)
    for path, mode in folders:
        path.chmod(mode)


def _make_file_system(tar: Path, image: Path) -> None:
    with tools.workplace() as place:
        tree = place.folder / "tree"
        _unpack(tar, tree)
        used, entries = ext4.sizes(tree)
        inodes = entries + 16384
        size = used + used // 20 + inodes * 256 + (16 << 20) + FREE
        more = ["-J", "size=16"]
        made = ext4.make(
            place, tree, "root", size=size >> 20 << 20, inodes=inodes, more=more, keep_modes=True
        )
        shutil.move(made, image)


def build(more: tuple[str, ...] = (), *, mirror: str | None = None) -> Path:
    """The raw sparse ext4 image, from the cache if it is there; UserError (3) if it cannot be.

    more: packages beside PACKAGES, for an image of its own.
    """

    def write(image: Path) -> None:
        tar = image.with_name("root.tar")
        _debootstrap(tar, more, mirror)
        tools.root(mirror)
        _make_file_system(tar, image)

    return cache.built("images", f"{bootstrap.SUITE}-{key(more)}.ext4", write)


def main() -> int:
    """python3 -m setup.image: build the guest image and print its path."""
    parser = argparse.ArgumentParser(prog="setup.image", description=__doc__)
    parser.add_argument("--mirror", metavar="URL", help="instead of the one in the host's sources")
    parser.add_argument("more", nargs="*", metavar="PACKAGE", help="for an image of its own")
    arguments = parser.parse_args()
    print(build(tuple(arguments.more), mirror=arguments.mirror))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.image", main))
