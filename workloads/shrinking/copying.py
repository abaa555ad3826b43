# SPDX-License-Identifier: GPL-2.0-or-later
"""A large file copied beside a compile, and a walk over the compiled tree before and after it.

The walk looks up each file, as `git status` does. What the copy has pushed out of the dentry and
inode caches is read again from the disk, and how much that is tells what was thrown away.
"""

import os
import time
from pathlib import Path

from workloads.shrinking import sources
from workloads.shrinking.ground import (
    Scene,
    Timed,
    cached,
    counters,
    difference,
    telling,
)
from workloads.telling import SAY_S, say

TREE, LARGE, COPIED, BUILT = "tree", "large", "large.copy", "built"
WALKS = {"first": "at first", "again": "at once again", "after": "after the copy"}
MIB = 1 << 20


def prepare(folder: Path, objects: int, headers: int, mib: int) -> None:
    """The tree, and the file that is copied; the next sync writes both."""
    sources.make(folder / TREE, objects, headers)
    (folder / BUILT).mkdir()
    block = bytes(MIB)
    with (folder / LARGE).open("wb") as file:
        for _ in range(mib):
            file.write(block)


def work(scene: Scene, objects: int) -> None:
    """Walk twice, copy and compile at once, walk again; the figures by `walk`'s and own keys."""
    walk(scene, "first")
    walk(scene, "again")
    both(scene, objects)
    walk(scene, "after")


def walk(scene: Scene, which: str) -> None:
    """Stat each file of the tree: files-, walk-, read- (MiB), inodes- and dentries-WHICH."""
    before, began, files = counters(), time.monotonic(), 0
    due = began
    folders = [str(scene.folder / TREE)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    continue
                entry.stat(follow_symlinks=False)
                files += 1
        if time.monotonic() >= due:
            due = time.monotonic() + SAY_S
            say(f"copy: walk {which}, looked={files}")
    seconds = time.monotonic() - began
    read = difference(before, counters()).get("pgpgin", 0) / 1024
    say(f"copy: walk {which} done, {files} files in {seconds:.2f} s, {read:.1f} MiB read")
    scene.figures |= {f"files-{which}": files, f"walk-{which}": seconds, f"read-{which}": read}
    for what, cache in (("inodes", scene.cache), ("dentries", "dentry")):
        if (found := cached(cache)) is not None:
            scene.figures[f"{what}-{which}"] = found


def both(scene: Scene, objects: int) -> None:
    """copied, copy and copy-rate; objects, compile and compile-faults."""
    folder = scene.folder
    # cp's own default is to share the blocks (xfs), and to leave out what is all zeros.
    copying = ["cp", "--reflink=never", "--sparse=never", LARGE, COPIED]
    copy = Timed([copying], folder)
    compiling = Timed([_compile(number) for number in range(objects)], folder)
    for one in (copy, compiling):
        one.start()
    for _ in telling(lambda: copy.is_alive() or compiling.is_alive()):
        say(f"copy: mib={_size(folder / COPIED) >> 20} objects={compiling.done}")
    for name, one in (("cp", copy), ("gcc", compiling)):
        one.join()
        if one.status:
            scene.fail(f"copy: {name} ended with status {one.status}")
    mib = _size(folder / COPIED) / MIB
    built = sum(_size(folder / BUILT / f"s{number}.o") > 0 for number in range(objects))
    scene.figures |= {"copied": mib, "objects": built}
    if not copy.status:
        scene.figures |= {"copy": copy.seconds, "copy-rate": mib * 1.048576 / copy.seconds}
    if not compiling.status:
        scene.figures |= {"compile": compiling.seconds, "compile-faults": compiling.faults}
    (folder / COPIED).unlink(missing_ok=True)


def _compile(number: int) -> list[str]:
    source = sources.source(Path(TREE), number)
    built = f"{BUILT}/s{number}.o"
    return ["gcc", "-O1", "-pipe", "-I", TREE, "-c", str(source), "-o", built]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
