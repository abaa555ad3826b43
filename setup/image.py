# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's root file system: Debian bookworm in an ext4 image, built once, by any user.

mmdebstrap makes a tar, from which mke2fs of the suite's tools makes the image. The same packages
give the same bytes, no matter who makes the image, where and when.
"""

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from contract.run_files import GUEST_PACKAGES
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
# Left out of every package: the guest needs no documentation.
LEFT_OUT = (
    "/usr/share/man/*",
    "/usr/share/doc/*",
    "/usr/share/info/*",
    "/usr/share/locale/*",
    "/usr/share/lintian/*",
    "/usr/share/bug/*",
    "/usr/share/zoneinfo/*",
)
# Parts of mmdebstrap's tree that come from the host, change by themselves, or are of no use here.
NOT_THE_GUESTS = (
    *("dev/", "etc/apt/", "etc/dpkg/", "etc/machine-id/", "etc/resolv.conf/", "proc/", "run/"),
    *("sys/", "tmp/", "usr/lib/udev/hwdb.d/", "usr/share/perl/", "var/backups/", "var/cache/"),
    *("var/lib/apt/", "var/lib/dpkg/", "var/log/"),
    *(pattern.removeprefix("/").removesuffix("*") for pattern in LEFT_OUT),
)
DPKG_STATUS = "var/lib/dpkg/status"
EMPTY = ("dev", "proc", "run", "sys", "tmp", "var/cache", "var/log")
FREE = 256 << 20
FORMAT = 3


def key(more: tuple[str, ...] = ()) -> str:
    """The image's key in the cache: it changes if the contents would."""
    parts = (str(FORMAT), bootstrap.SUITE, str(FREE), *PACKAGES, *more, *LEFT_OUT)
    return cache.key(*parts, *((GUEST_PACKAGES,) if more else ()))


def describe(more: tuple[str, ...] = ()) -> str:
    """One line that says what build() would do; writes nothing."""
    size = "about 400 MB" + (" without the workloads' own" if more else "")
    packages = f"{len(PACKAGES + more)} packages ({size}, built once)"
    return f"a guest image of Debian {bootstrap.SUITE} with {packages}"


def _debootstrap(tar: Path, more: tuple[str, ...], mirror: str | None) -> None:
    options = [
        "--variant=minbase",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        # The suite has its own init: it needs mount points for the job disk, results and the test.
        '--customize-hook=mkdir -p "$1/job" "$1/results" "$1/mnt/test"',
        # mmdebstrap has copied those of the host, with their modes.
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
        prefix=_private_mounts(),
    )


def _private_mounts() -> list[str]:
    """The words before mmdebstrap that keep what it mounts as root private to it."""
    prefix = ["unshare", "--mount"]
    if os.geteuid() != 0 or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return []
    return prefix


def versions(status: str, packages: Iterable[str]) -> str:
    """A line "NAME VERSION" for each of these packages; status: of dpkg, as in its own file."""
    version_of = dict(re.findall(r"^Package: (.+)\n(?:.+\n)*?Version: (.+)$", status, re.MULTILINE))
    return "".join(f"{name} {version_of[name]}\n" for name in sorted(packages))


def _unpack(tar: Path, tree: Path, more: tuple[str, ...]) -> None:
    """Unpack the tar without the files that depend on this host or this day."""
    tree.mkdir()
    folders: list[tuple[Path, int]] = []
    status = ""
    with tarfile.open(tar) as archive:
        for member in archive:
            name = member.name.removeprefix("./").rstrip("/")
            if name == DPKG_STATUS and (data := archive.extractfile(member)) is not None:
                with data:
                    status = data.read().decode()
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
    if more:
        (tree / GUEST_PACKAGES.removeprefix("/")).write_text(versions(status, more))
    for path, mode in folders:
        path.chmod(mode)


def _make_file_system(tar: Path, image: Path, more: tuple[str, ...]) -> None:
    with tools.workplace() as place:
        tree = place.folder / "tree"
        _unpack(tar, tree, more)
        used, entries = ext4.sizes(tree)
        inodes = entries + 16384
        size = used + used // 20 + inodes * 256 + (16 << 20) + FREE
        finished = ext4.make(
            place,
            tree,
            "root",
            size=size >> 20 << 20,
            inodes=inodes,
            more=["-J", "size=16"],
            keep_modes=True,
        )
        shutil.move(finished, image)


def build(more: tuple[str, ...] = (), *, mirror: str | None = None) -> Path:
    """The raw sparse ext4 image, from the cache if it is there; UserError (3) if it cannot be made.

    more: further packages; each set of packages has its own image.
    """

    def write(image: Path) -> None:
        tar = image.with_name("root.tar")
        _debootstrap(tar, more, mirror)
        tools.root(mirror)
        _make_file_system(tar, image, more)

    return cache.built("images", f"{bootstrap.SUITE}-{key(more)}.ext4", write)
