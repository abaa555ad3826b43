# SPDX-License-Identifier: GPL-2.0-or-later
"""Read-only ext4 disks for the guest, packed from folders by mke2fs: no root, no mount."""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

from errors import UserError, run_command
from setup import apt, cache, observers

SUITE = Path(__file__).resolve().parent.parent
# What a guest needs of the suite, and no more: what is there takes it instructions to copy, so that
# a change of it makes another run of the same seed.
PACKAGES = (
    *("contract", "echo_load", "fake_gitk", "fake_player", "measure", "monitors", "setup"),
    "workloads",
)
IN_GUEST = (
    *PACKAGES,
    *("benchmarks", "errors.py", "latency_output.py", "machines", "run", "run_test.sh"),
    *("tests/guest", "vm"),
)
LEFT_OUT = "__pycache__"
COMPILED = (".c", ".h")  # what is made of them goes along
BLOCK = 4096
FORMAT = 2


def _suite_files() -> Iterator[Path]:
    for name in IN_GUEST:
        if (SUITE / name).is_file():
            yield SUITE / name
        for folder, names, files in os.walk(SUITE / name):
            names[:] = sorted(set(names) - {LEFT_OUT})
            paths = (Path(folder) / file for file in sorted(files))
            yield from (path for path in paths if path.suffix not in COMPILED)


def copy_suite(target: Path) -> None:
    """Copy what a guest needs of the suite into the folder target."""
    for path in _suite_files():
        copied = target / path.relative_to(SUITE)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copied, follow_symlinks=False)


def _sizes(path: Path) -> tuple[int, int]:
    """Bytes (in whole blocks) and number of entries of a tree."""
    total, entries = BLOCK, 1
    for folder, names, files in os.walk(path):
        entries += len(names) + len(files)
        total += BLOCK * len(names)
        for name in files:
            size = (Path(folder) / name).lstat().st_size
            total += -(-size // BLOCK) * BLOCK
    return total, entries


def pack(folders: dict[str, Path], out: Path, label: str) -> None:
    """Make the ext4 image out (mounted read-only later) whose top folders are named as in folders.

    The files belong to root in the guest. UserError (3) if there is no room or a file is not
    readable. An image that is there is replaced.
    """
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as work:
        tree = Path(work) / "tree"
        tree.mkdir()
        for name, folder in folders.items():
            if not folder.is_dir():
                raise UserError(f"no such folder: {folder}")
            _link_tree(folder, tree / name)
        size, entries = _sizes(tree)
        inodes = entries + 32
        blocks = (size + size // 64 + inodes * 256) // BLOCK + 512
        image = Path(work) / "image"
        command = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", label, "-b", str(BLOCK), "-m", "0"]
        # No journal: never written to. Features that every kernel from 5.10 on mounts.
        command += ["-O", "^has_journal,^orphan_file,^metadata_csum_seed,^resize_inode"]
        # Nothing random: a guest with a clock of its own does the same with the same disk.
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, label))
        extended = f"root_owner=0:0,lazy_itable_init=0,hash_seed={name}"
        command += ["-N", str(inodes), "-U", name, "-E", extended, "-d", str(tree)]
        # As an ordinary user the files would keep that user's number, which git mistrusts.
        prefix = ["fakeroot"] if os.geteuid() != 0 and shutil.which("fakeroot") else []
        apt.run([*prefix, *command, str(image), str(blocks)], what=f"making the {label} disk")
        image.rename(out)


def _link_tree(source: Path, target: Path) -> None:
    """A copy of hard links where the file system allows them, else of files."""

    def link(old: str, new: str) -> None:
        try:
            os.link(old, new, follow_symlinks=False)
        except OSError:
            shutil.copy2(old, new, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=link)


def job_disk(out: Path, extra: dict[str, Path] | None = None) -> None:
    """The disk of one run at out: `suite/` with the suite's code, beside it what extra names."""
    with tempfile.TemporaryDirectory(prefix=".suite.", dir=out.parent) as work:
        suite = Path(work) / "suite"
        copy_suite(suite)
        shutil.copy2(observers.program(), suite / observers.PACKED.relative_to(SUITE))
        # An emulated guest takes seconds to compile what the host compiles in a moment. Guests with
        # another Python than the host's do not look at these.
        for folder in PACKAGES:
            compileall.compile_dir(
                suite / folder, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
            )
        pack({"suite": suite, **(extra or {})}, out, "job")


def _objects(repo: Path) -> Path:
    try:
        done = subprocess.run(
            ["git", "-C", str(repo), "rev-parse", "--absolute-git-dir"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise UserError(f"{repo} is not a git repository") from None
    return Path(done.stdout.strip())


def history_disk(repo: Path) -> Path:
    """The disk with `history.git`, a bare copy of repo's history, cached by path and HEAD."""
    head = apt.run(["git", "-C", repo, "rev-parse", "HEAD"], what=f"reading {repo}").strip()
    name = f"{cache.key(str(FORMAT), str(repo.resolve()), head)}.ext4"

    def write(image: Path) -> None:
        folder = _objects(repo)
        config = folder / "config"
        bare = config.is_file() and "bare = true" in config.read_text(errors="replace")
        alternates = (folder / "objects/info/alternates").exists()
        if not bare or alternates:
            # A work tree's repository may hold hooks, stashes and borrowed objects: take HEAD's.
            copy = image.with_name("history.git")
            apt.run(
                ["git", "clone", "-q", "--bare", "--no-hardlinks", "--single-branch", repo, copy],
                what=f"copying {repo}",
            )
            folder = copy
        pack({"history.git": folder}, image, "history")

    return cache.built("histories", name, write)


def music_disk(folder: Path) -> Path:
    """The disk with `music`, a copy of folder, cached by its files' names, sizes and times."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    stats = [(path, path.stat()) for path in files]
    listing = [f"{path}\0{found.st_size}\0{found.st_mtime_ns}" for path, found in stats]
    name = f"{cache.key(str(FORMAT), *listing)}.ext4"
    return cache.built("music-disks", name, lambda image: pack({"music": folder}, image, "music"))


def main() -> int:
    """python3 -m setup.disk OUT NAME=FOLDER...: pack folders into an ext4 image."""
    parser = argparse.ArgumentParser(prog="setup.disk", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER")
    parser.add_argument("--label", default="job", help="the file system's label (default: job)")
    parser.add_argument("--suite", action="store_true", help="add suite/, the suite's own code")
    arguments = parser.parse_args()
    folders = {
        name: Path(folder) for name, _, folder in (f.partition("=") for f in arguments.folders)
    }
    if arguments.suite:
        job_disk(arguments.out, folders)
    else:
        pack(folders, arguments.out, arguments.label)
    print(arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.disk", main))
