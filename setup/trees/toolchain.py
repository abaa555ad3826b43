# SPDX-License-Identifier: GPL-2.0-or-later
"""The tools that compile kernels, from the suite's own Debian, so that all hosts make equal bytes.

They are like setup.userland.tools, but in their own folder of the cache, which is only fetched for
building a kernel. Nothing is installed. Their programs have that folder as their root; they need a
real /dev/null, which a user namespace can mount and root can make.
"""

import functools
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from errors import UserError
from setup import cache
from setup.userland import bootstrap, tools

PACKAGES = (
    *("bash", "bc", "bison", "busybox-static", "ccache", "coreutils", "cpio", "dash", "diffutils"),
    *("dwarves", "findutils", "flex", "gcc", "grep", "gzip", "kmod", "libc6-dev", "libelf-dev"),
    *("libssl-dev", "lz4", "make", "mawk", "perl-base", "python3", "sed", "tar", "xz-utils"),
    *("zlib1g-dev", "zstd"),
)
KEPT = ("usr/",)
LEFT_OUT = tuple(f"usr/share/{name}/" for name in ("doc", "info", "locale", "man"))
# Links that the packages' scripts would make; these scripts are not run.
LINKS = {"usr/bin/awk": "mawk", "usr/bin/sh": "dash"}
# pahole writes BTF in the order in which its threads end: one thread makes equal bytes each time.
PAHOLE = "usr/local/bin/pahole"
ONE_THREAD = """\
#!/bin/sh
for word; do
    shift
    case $word in
    -j*) ;;
    *) set -- "$@" "$word" ;;
    esac
done
exec /usr/bin/pahole "$@"
"""
FORMAT = 1
BUILD, CCACHE = "build", "ccache"
CHANGING = ("dev", "tmp", "proc", BUILD, CCACHE)
NODES = {"null": (1, 3), "zero": (1, 5), "urandom": (1, 9)}
# A shell uses dev/fd to pass a command's output as a file.
SMALL = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1"}
MOUNTED = """\
set -e
root=$1
shift
for name in null zero urandom; do mount --bind /dev/$name "$root/dev/$name"; done
mount --rbind /proc "$root/proc"
exec chroot "$root" "$@"
"""


def root(mirror: str | None = None) -> Path:
    """The folder with the programs, from the cache if it is there.

    UserError (3) if it cannot be made.
    """
    return cache.built("kernel-tools", _name(), lambda folder: _make(folder, mirror), CHANGING)


def _name() -> str:
    parts = (*PACKAGES, *KEPT, *LEFT_OUT, *LINKS, ONE_THREAD)
    return f"{bootstrap.SUITE}-{cache.key(str(FORMAT), *parts)}"


def describe() -> str:
    """One line about what root() would do; writes nothing."""
    cached = (cache.place() / "kernel-tools" / _name()).is_dir()
    how = "in the cache" if cached else "fetched into the cache, 270 MB; nothing is installed"
    return f"gcc, make and what else builds a kernel, of Debian {bootstrap.SUITE} ({how})"


def identity() -> str:
    """The digest of all these programs."""
    return (root() / tools.IDENTITY).read_text().strip()


def _make(folder: Path, mirror: str | None) -> None:
    what = "fetching what compiles a kernel"
    tools.unpack(folder, PACKAGES, KEPT, LEFT_OUT, mirror=mirror, what=what)
    for name, target in LINKS.items():
        if not (folder / name).exists():
            (folder / name).symlink_to(target)
    (folder / PAHOLE).parent.mkdir(parents=True, exist_ok=True)
    (folder / PAHOLE).write_text(ONE_THREAD)
    (folder / PAHOLE).chmod(0o755)
    (folder / tools.IDENTITY).write_text(f"{cache.tree_digest(folder)}\n")
    for name in CHANGING:
        (folder / name).mkdir()
    for name in NODES:
        (folder / "dev" / name).touch()
    for name, target in SMALL.items():
        (folder / "dev" / name).symlink_to(target)


def command(place: Path, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """The command that runs argv with place as its root.

    UserError (3) if this user may not do that.
    """
    settings = {**tools.ENVIRONMENT, "LC_ALL": "C", **env}  # there is no other language in it
    inside = ["env", "-i", *(f"{name}={value}" for name, value in settings.items()), *argv]
    return [*_enter(place), *inside]


@functools.cache
def _enter(place: Path) -> tuple[str, ...]:
    """The words that change the root to place; UserError (3) if this user may not do that."""
    test = ["sh", "-c", "test -c /dev/null && : >/dev/null"]
    # Root in a container may not mount; but like any user it may do so in its own namespace, or it
    # may make devices.
    as_root = [["--mount"]] if os.geteuid() == 0 else []
    complaint = ""
    for how in (*as_root, ["--map-root-user", "--mount"]):
        command = ("unshare", *how, "sh", "-c", MOUNTED, "sh", str(place))
        done = subprocess.run([*command, *test], capture_output=True, text=True)
        if done.returncode == 0:
            return command
        complaint = complaint or done.stderr.strip()
    plain = ("chroot", str(place))
    if os.geteuid() == 0:
        _make_devices(place)
        if subprocess.run([*plain, *test], capture_output=True).returncode == 0:
            return plain
    last = (complaint.splitlines() or ["it printed nothing"])[-1]
    raise UserError(f"entering {place} failed: {last}", hint=tools.MAY_NOT)


def _make_devices(place: Path) -> None:
    for name, (major, minor) in NODES.items():
        node = place / "dev" / name
        if not node.is_char_device():
            node.unlink(missing_ok=True)
            command = ["mknod", "-m", "666", str(node), "c", str(major), str(minor)]
            # If this fails, the next step notices that it is no device.
            if subprocess.run(command, capture_output=True).returncode:
                node.touch()
