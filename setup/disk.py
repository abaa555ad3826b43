# SPDX-License-Identifier: GPL-2.0-or-later
"""Read-only ext4 disks for the guest, packed from folders by mke2fs, without root or mounting."""

import os
import shutil
import subprocess
from pathlib import Path

from errors import UserError
from setup import apt, cache
from setup.userland import ext4, tools

FORMAT = 3


def pack(folders: dict[str, Path], out: Path, label: str) -> None:
    """Make the ext4 image out, to be mounted read-only, with these top folders.

    The files belong to root in the guest. UserError (3) if there is no room or a file is not
    readable. An existing image is replaced.
    """
    for folder in folders.values():
        if not folder.is_dir():
            raise UserError(f"no such folder: {folder}")
    with tools.workplace() as place, cache.writing():
        tree = place.folder / "tree"
        tree.mkdir()
        for name, folder in folders.items():
            _link_tree(folder, tree / name)
        size, entries = ext4.sizes(tree)
        inodes = entries + 32
        blocks = (size + size // 64 + inodes * 256) // ext4.BLOCK + 512
        # No journal: the disk is never written to.
        features = ("^has_journal", "^resize_inode")
        room = blocks * ext4.BLOCK
        image = ext4.make(place, tree, label, size=room, inodes=inodes, features=features)
        shutil.move(image, out)


def _link_tree(source: Path, target: Path) -> None:
    """Copy a tree as hard links where the file system allows them, else as files."""

    def link(old: str, new: str) -> None:
        try:
            os.link(old, new, follow_symlinks=False)
        except OSError:
            shutil.copy2(old, new, follow_symlinks=False)

    shutil.copytree(source, target, symlinks=True, copy_function=link)


def job_disk(out: Path, suite: Path, extra: dict[str, Path] | None = None) -> None:
    """Make the disk of one run at out: `suite/` with the suite's code, and the folders of extra."""
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
            # A work tree's repository may have hooks, stashes and borrowed objects: take only HEAD.
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
    listing = [f"{path}\0{status.st_size}\0{status.st_mtime_ns}" for path, status in stats]
    name = f"{cache.key(str(FORMAT), *listing)}.ext4"
    return cache.built("music-disks", name, lambda image: pack({"music": folder}, image, "music"))
