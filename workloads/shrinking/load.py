# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of `shrinker`, one after the other: a line each half second, and a JSON of figures.

Beside a part's own figures: COUNTER-PART, how much those counters of /proc/vmstat grew meanwhile,
and NAME-begin, NAME-PART: objects in the slab caches NAME at the beginning and after the part.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from contract import start_up
from errors import run_command
from workloads.shrinking import copying, making, mixing
from workloads.shrinking.ground import Scene, cached, counters, difference
from workloads.telling import keep, say

PARTS = ("copy", "fsmark", "bonnie", "mix")


def works(options: argparse.Namespace) -> dict[str, Callable[[Scene], None]]:
    """What each part does."""
    return {
        "copy": lambda scene: copying.work(scene, options.objects),
        "fsmark": lambda scene: making.fsmark(scene, options.files),
        "bonnie": lambda scene: making.bonnie(scene, options.bonnie),
        "mix": lambda scene: mixing.work(scene, options.seconds, options.tree),
    }


def work(scene: Scene, part: str, how: Callable[[Scene], None]) -> None:
    """One part, and what the kernel did meanwhile."""
    before, began = counters(), time.monotonic()
    say(f"{part}: begins")
    how(scene)
    seconds = time.monotonic() - began
    say(f"{part}: done after {seconds:.1f} s")
    counted = difference(before, counters())
    if "pgpgin" in counted:
        scene.figures[f"read-{part}"] = counted.pop("pgpgin") / 1024
    scene.figures |= {f"{name}-{part}": grown for name, grown in counted.items()}
    scene.figures[f"seconds-{part}"] = seconds
    look(scene, part)


def look(scene: Scene, when: str) -> None:
    """How many inodes and dentries are cached."""
    for name, cache in (("inodes", scene.cache), ("dentries", "dentry")):
        if (found := cached(cache)) is not None:
            scene.figures[f"{name}-{when}"] = found


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m workloads.shrinking.load")
    for name in ("--folder", "--figures"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, required=True)
    parser.add_argument("--cache", required=True, help="of the file system's inodes")
    for name in ("--objects", "--tree", "--files", "--bonnie", "--seconds"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args(argv)
    scene = Scene(options.folder, options.cache)
    if options.wait:
        start_up.wait()
    look(scene, "begin")
    for part in options.parts:
        work(scene, part, works(options)[part])
        keep(scene.figures, options.figures)
    return int(bool(scene.problems))


if __name__ == "__main__":
    # The interpreter's own end would swap in all that it has, page by page, to throw it away.
    os._exit(run_command("shrinker", lambda: main(sys.argv[1:])))
