# SPDX-License-Identifier: GPL-2.0-or-later
"""Does the parts of `shrinker` one after the other; prints lines and writes a file of figures.

Beside a part's own figures there are COUNTER-PART, the growth of counters of /proc/vmstat during
the part, and NAME-begin and NAME-PART, the objects in the slab caches at the beginning and after
the part.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from contract import start_up
from errors import run_command
from workloads.load_output import say, write_json
from workloads.shrinking import copying, making, mixing
from workloads.shrinking.measuring import Scene, cached, counters, difference

PARTS = ("copy", "fsmark", "bonnie", "mix")


def works(options: argparse.Namespace) -> dict[str, Callable[[Scene], None]]:
    """The function that does each part."""
    return {
        "copy": lambda scene: copying.work(scene, options.objects),
        "fsmark": lambda scene: making.fsmark(scene, options.files),
        "bonnie": lambda scene: making.bonnie(scene, options.bonnie),
        "mix": lambda scene: mixing.work(scene, options.seconds, options.tree),
    }


def work(scene: Scene, part: str, how: Callable[[Scene], None]) -> None:
    """Do one part; adds what the kernel did meanwhile to the figures."""
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
    """Add the numbers of cached inodes and dentries to the figures."""
    for name, cache in (("inodes", scene.cache), ("dentries", "dentry")):
        if (objects := cached(cache)) is not None:
            scene.figures[f"{name}-{when}"] = objects


def main(argv: list[str]) -> int:
    """The command: do the parts; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m workloads.shrinking.load")
    for name in ("--folder", "--figures"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, required=True)
    parser.add_argument("--cache", required=True, help="the slab cache of the file system's inodes")
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
        write_json(scene.figures, options.figures)
    return int(bool(scene.problems))


if __name__ == "__main__":
    # An ordinary exit would swap in all of the interpreter's memory to free it.
    os._exit(run_command("shrinker", lambda: main(sys.argv[1:])))
