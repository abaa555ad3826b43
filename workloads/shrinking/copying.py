# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies a large file beside a compile, and walks over the compiled tree before and after it.

The walk looks up each file, as `git status` does. It has to read from the disk what the copy pushed
out of the dentry and inode caches: the amount shows how much was thrown away.
"""

import os
import time
from pathlib import Path

from workloads.load_output import SAY_S, say
from workloads.shrinking import sources
from workloads.shrinking.measuring import (
    Scene,
    Timed,
    cached,
    counters,
    difference,
    ticks_while,
)

TREE, LARGE, COPIED, BUILT = "tree", "large", "large.copy", "built"
WALKS = {"first": "at first", "again": "at once again", "after": "after the copy"}
MIB = 1 << 20


def prepare(folder: Path, objects: int, headers: int, mib: int) -> None:
    """Make the tree and the file to copy (mib MiB); the next sync writes both to the disk."""
    sources.make(folder / TREE, objects, headers)
    (folder / BUILT).mkdir()
    block = bytes(MIB)
    with (folder / LARGE).open("wb") as file:
        for _ in range(mib):
            file.write(block)


def work(scene: Scene, objects: int) -> None:
    """Walk twice, copy and compile at the same time, walk again; adds the figures of all steps."""
    walk(scene, "first")
    walk(scene, "again")
    copy_and_compile(scene, objects)
    walk(scene, "after")


def walk(scene: Scene, which: str) -> None:
    """Stat each file of the tree.

    Adds files-, walk- (s), read- (MiB), inodes- and dentries-WHICH.
    """
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
        if (objects := cached(cache)) is not None:
            scene.figures[f"{what}-{which}"] = objects


def copy_and_compile(scene: Scene, objects: int) -> None:
    """Adds copied (MiB), copy (s), copy-rate (MB/s); objects, compile (s) and compile-faults."""
    folder = scene.folder
    # By default cp shares blocks (xfs) and leaves blocks of zeros out.
    copying = ["cp", "--reflink=never", "--sparse=never", LARGE, COPIED]
    copy = Timed([copying], folder)
    compiling = Timed([_compile(number) for number in range(objects)], folder)
    copy.start()
    compiling.start()
    for _ in ticks_while(lambda: copy.is_alive() or compiling.is_alive()):
        say(f"copy: mib={_size(folder / COPIED) >> 20} objects={compiling.done}")
    for name, timed in (("cp", copy), ("gcc", compiling)):
        timed.join()
        if timed.status:
            scene.fail(f"copy: {name} ended with status {timed.status}")
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
