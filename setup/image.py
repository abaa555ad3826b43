# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's root file system: Debian bookworm in an ext4 image, built once, as any user.

mmdebstrap checks the packages against Debian's archive keys and makes a tar; mke2fs makes the image
from it under fakeroot, so that owners and modes survive without root.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from errors import UserError, run_command
from setup import apt, cache, mirrors

SUITE = "bookworm"
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
FREE = 256 << 20
FORMAT = 1


def key(more: tuple[str, ...] = ()) -> str:
    """What the image is cached by: it changes when the guest's contents would."""
    return cache.key(str(FORMAT), SUITE, str(FREE), *PACKAGES, *more, *LEFT_OUT)


def describe(more: tuple[str, ...] = ()) -> str:
    """One line that says what build() would do; writes nothing."""
    size = "about 400 MB" + (" without the workloads' own" if more else "")
    return (
        f"a guest image of Debian {SUITE} with {len(PACKAGES + more)} packages ({size}, built once)"
    )


def _debootstrap(tar: Path, more: tuple[str, ...], mirror: str | None) -> None:
    main, security = mirrors.find(mirror)
    mirrors.announce(mirror)
    options = f"[signed-by={apt.KEYRING}]"
    sources = f"deb {options} {main} {SUITE} main\n"
    if security:
        sources += f"deb {options} {security} {SUITE}-security main\n"
    listed = tar.with_name("sources.list")
    listed.write_text(sources)
    command: list[str | Path] = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--architectures=amd64",
        f"--include={','.join(PACKAGES + more)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "2"',
        # The suite's own start-up: no init system, a place for the job disk and for device nodes.
        '--customize-hook=mkdir -p "$1/job" "$1/results" "$1/mnt/test"',
        '--customize-hook=rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/* "$1"/var/log/*',
        '--customize-hook=echo guest > "$1/etc/hostname"',
        '--customize-hook=echo 127.0.0.1 localhost guest > "$1/etc/hosts"',
        '--customize-hook=find "$1/usr/lib/udev/hwdb.d" "$1/usr/share/perl" -delete || true',
    ]
    proxy = apt.host_settings(("Acquire::http", "Acquire::https", "Acquire::Check"))
    command += [f"--aptopt={line}" for line in proxy]
    apt.run(
        [*_of_its_own(), *command, SUITE, tar, listed],
        what="building the guest image",
        hint="check the network",
    )


def _of_its_own() -> list[str]:
    """Before mmdebstrap: what it mounts as root nobody else sees, and it is gone with it."""
    prefix = ["unshare", "--mount"]
    if os.geteuid() != 0 or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return []
    return prefix


def _make_file_system(tar: Path, image: Path) -> None:
    tree = tar.with_name("tree")
    # Features that a 5.10 kernel mounts, whatever newer mke2fs makes by default.
    script = """\
set -eu
mkdir "$2"
tar -x -p --numeric-owner -f "$1" -C "$2"
used=$(du -s --block-size=1 "$2" | cut -f1)
inodes=$(( $(find "$2" -xdev | wc -l) + 16384 ))
size=$(( used + used / 20 + inodes * 256 + (16 << 20) + $4 ))
truncate -s $(( size / 1048576 * 1048576 )) "$3"
mke2fs -q -F -t ext4 -L root -m 0 -J size=16 -N "$inodes" \
    -O ^orphan_file,^metadata_csum_seed -E root_owner=0:0,lazy_itable_init=0 -d "$2" "$3"
"""
    # Only an unprivileged user needs fakeroot; with root the owners are real.
    prefix = [] if os.geteuid() == 0 else ["fakeroot"]
    apt.run(
        [*prefix, "sh", "-c", script, "sh", tar, tree, image, str(FREE)],
        what="making the guest's file system",
    )


def build(more: tuple[str, ...] = (), *, mirror: str | None = None) -> Path:
    """The raw sparse ext4 image, from the cache if it is there; UserError (3) if it cannot be.

    more: packages beside PACKAGES, for an image of its own.
    """

    def write(image: Path) -> None:
        if not apt.KEYRING.exists():
            raise UserError(f"{apt.KEYRING} is missing", hint="run setup/packages.sh")
        tar = image.with_name("root.tar")
        _debootstrap(tar, more, mirror)
        _make_file_system(tar, image)

    return cache.built("images", f"{SUITE}-{key(more)}.ext4", write)


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
