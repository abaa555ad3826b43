# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that run a guest or make its files, from one Debian: the same on every host.

QEMU, compilers, mke2fs, git and python3 are unpacked into a folder of the cache; nothing is
installed. QEMU is run by that folder's own loader (vm.emulator). The other programs have that
folder as their root, for which an ordinary user needs a user namespace.
"""

import contextlib
import functools
import os
import random
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from errors import UserError
from setup import apt, cache
from setup.userland import bootstrap

PACKAGES = (
    *("busybox-static", "clang", "e2fsprogs", "gcc", "git", "libbpf-dev", "libc6-dev"),
    *("libelf-dev", "liburing-dev", "libxau-dev", "libxcb-damage0-dev", "libxcb-shm0-dev"),
    *("libxcb-xtest0-dev", "libxcb1-dev", "python3", "qemu-system-data", "qemu-system-x86"),
    *("seabios", "zlib1g-dev"),
)
# The parts of packages that are unpacked, and the parts of these that no program reads.
KEPT = ("etc/mke2fs.conf", "usr/")
LEFT_OUT = tuple(
    f"usr/{name}/" for name in ("share/doc", "share/locale", "share/man", "share/perl", "lib/perl")
)
MERGED = ("bin", "lib", "lib64", "sbin")  # links in the root to folders of usr
FORMAT = 3
IDENTITY = "identity"
WORK = "work"
CHANGING = ("dev", "tmp", WORK)  # folders to which programs inside write
# The environment of programs inside: nothing of the host.
ENVIRONMENT = {
    "PATH": "/usr/bin:/usr/sbin:/bin:/sbin",
    "LC_ALL": "C.UTF-8",
    "HOME": "/",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
TELLING = ("cannot find", "error", "fatal")
MAY_NOT = "run it as root, or in the container (README.md)"


def root(mirror: str | None = None) -> Path:
    """The folder with the programs, from the cache if it is there.

    UserError (3) if it cannot be made.
    """
    name = f"{bootstrap.SUITE}-{cache.key(str(FORMAT), *PACKAGES, *KEPT, *LEFT_OUT)}"
    return cache.built("tools", name, lambda folder: _make(folder, mirror), CHANGING)


def describe() -> str:
    """One line about what root() would make; writes nothing."""
    return f"QEMU, compilers and mke2fs of Debian {bootstrap.SUITE} (about 700 MB, unpacked once)"


def identity() -> str:
    """The digest of all these programs."""
    return (root() / IDENTITY).read_text().strip()


def _make(folder: Path, mirror: str | None) -> None:
    unpack(folder, PACKAGES, KEPT, LEFT_OUT, mirror=mirror, what="fetching QEMU and compilers")
    (folder / IDENTITY).write_text(f"{cache.tree_digest(folder)}\n")
    # Only root can make device nodes. Plain files are enough for git, which reads nothing from
    # null, and from urandom only the letters of a temporary file's name.
    for name in CHANGING:
        (folder / name).mkdir()
    (folder / "dev/null").touch()
    (folder / "dev/urandom").write_bytes(random.Random(FORMAT).randbytes(4096))


def unpack(
    folder: Path,
    packages: Sequence[str],
    kept: tuple[str, ...],
    left_out: tuple[str, ...],
    *,
    mirror: str | None,
    what: str,
) -> None:
    """Make a folder with the kept parts of these packages; UserError (3) if that fails."""
    tar = folder.with_name("tools.tar")
    # Packages are only unpacked, which needs no root.
    options = ["--mode=chrootless", "--variant=extract", "--format=tar"]
    # Newer mmdebstraps refuse root in this mode without this option; older ones ignore it.
    options.append("--skip=check/chrootless")
    bootstrap.make_tar(tar, packages, options, mirror=mirror, what=what)
    folder.mkdir()
    try:
        with tarfile.open(tar) as archive:
            for member in archive:
                name = _place(member.name)
                if name.startswith(kept) and not f"{name}/".startswith(left_out):
                    _unpack(archive, member, folder)
    except (OSError, tarfile.TarError) as error:
        raise UserError(f"{what}: unpacking failed: {error}") from None
    tar.unlink()
    for name in MERGED:
        (folder / name).symlink_to(f"usr/{name}")


def _unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write an entry into folder, owned by this user and with a fixed mode."""
    name = _place(member.name)
    # unpack() makes the links from bin to usr/bin itself, whether the tar has them or not.
    if member.issym() and name.removeprefix("usr/") in MERGED:
        return
    path = folder / name
    if member.isdir():
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if member.issym():
        # Relative, so that a link does not lead to the host's files when used from outside.
        target = member.linkname
        inside = os.path.relpath(_place(target.lstrip("/")), Path(name).parent)
        path.symlink_to(inside if target.startswith("/") else target)
    elif member.islnk():
        os.link(folder / _place(member.linkname), path)
    elif (data := archive.extractfile(member)) is not None:
        with data, open(path, "wb") as file:
            shutil.copyfileobj(data, file)
        path.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _place(name: str) -> str:
    """A file's path inside, whether the tar has bin and lib as folders or as links to usr."""
    name = name.removeprefix("./").rstrip("/")
    return f"usr/{name}" if name.split("/")[0] in MERGED else name


class Workplace:
    """A folder inside the root in which programs run; inside: its path as they see it."""

    def __init__(self, tools: Path, folder: Path) -> None:
        self._root = tools
        self.folder = folder
        self.inside = f"/{folder.relative_to(tools)}"

    def command(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
        """The command that runs argv there."""
        settings = [f"{name}={value}" for name, value in {**ENVIRONMENT, **(env or {})}.items()]
        return ["env", "-i", *settings, *_enter(self._root, self.inside), *argv]

    def run(self, argv: Sequence[str], *, what: str, env: Mapping[str, str] | None = None) -> str:
        """Run a command and return its output.

        UserError (3) with its most telling line if it fails.
        """
        done = subprocess.run(self.command(argv, env), capture_output=True, text=True)
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            # Compilers and linkers print further lines after the error.
            telling = (line for word in TELLING for line in lines if word in line)
            why = next(telling, lines[-1] if lines else f"it ended with status {done.returncode}")
            raise UserError(f"{what} failed: {why}")
        return done.stdout


def _enter(tools: Path, place: str) -> list[str]:
    as_user = ["--map-root-user"] if os.geteuid() != 0 else []
    return ["unshare", *as_user, f"--root={tools}", f"--wd={place}"]


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """Provide a private folder inside the root; removes the folders of killed processes."""
    tools = root()
    _check(tools)
    cache.sweep(WORK, tools / WORK)
    with cache.scratch(WORK, tools / WORK) as folder:
        yield Workplace(tools, folder)


@functools.cache
def _check(tools: Path) -> None:
    """UserError (3) if this user may not run programs inside."""
    command = [*_enter(tools, "/"), "/bin/busybox", "true"]
    apt.run(command, what=f"entering {tools}", hint=MAY_NOT)
