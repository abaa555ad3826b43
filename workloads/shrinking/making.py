# SPDX-License-Identifier: GPL-2.0-or-later
"""Many empty files: fs_mark makes them in parallel; bonnie++ makes, looks up and deletes its own.

fs_mark prints a row `FSUse% Count Size Files/sec App-Overhead` for each of its loops. bonnie++
prints a row of comma-separated values; RATES has the places of the rates of files (bonnie++ 2.00,
format 1.98). The rate of a phase that took less than half a second is `+++++`: not available.
"""

import os
import re
import subprocess
import threading
import time
from pathlib import Path

from workloads.load_output import say, search_path
from workloads.shrinking.measuring import NEVER_RAN, Scene, inodes_used, ticks_while

FSMARK, BONNIE = "fsmark", "bonnie"
LOOPS, THREADS = 5, 2
ROW = re.compile(r"\s*\d+\s+(\d+)\s+\d+\s+(\d+(?:\.\d+)?)\s+\d+\s*")
FILES = 21
RATES = {
    "seq-create": 26,
    "seq-stat": 28,
    "seq-delete": 30,
    "random-create": 32,
    "random-stat": 34,
    "random-delete": 36,
}
UNIT = 1024  # files per unit of bonnie++'s -n


class Program(threading.Thread):
    """A program whose output is read while it runs; `lines` has its lines."""

    def __init__(self, command: list[str], folder: Path) -> None:
        super().__init__()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PATH": search_path()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
        )
        self.lines: list[str] = []
        self.status = NEVER_RAN

    def run(self) -> None:
        """Read the output to its end; call start(), which does this in a thread."""
        assert self._process.stdout
        self.lines += (line.rstrip("\n") for line in self._process.stdout)
        self._process.stdout.close()
        self.status = self._process.wait()


def fsmark(scene: Scene, files: int) -> None:
    """Run fs_mark; adds files-fsmark, fsmark and fsmark-N of loop N (files per second)."""
    per_loop = files // (LOOPS * THREADS)
    command = ["fs_mark", "-k", "-S", "0", "-s", "0", "-n", str(per_loop), "-L", str(LOOPS)]
    folders = [scene.folder / f"{FSMARK}-{n}" for n in range(1, THREADS + 1)]
    for folder in folders:
        folder.mkdir()
        command += ["-d", folder.name]
    began = time.monotonic()
    lines = _run(scene, FSMARK, [*command, "-l", "/dev/null"])
    seconds = time.monotonic() - began
    count = sum(1 for folder in folders for _ in os.scandir(folder))
    scene.figures |= {"files-fsmark": count, "fsmark": count / seconds}
    for loop, (_, rate) in enumerate(fsmark_rows(lines), 1):
        scene.figures[f"fsmark-{loop}"] = rate


def fsmark_rows(lines: list[str]) -> list[tuple[int, float]]:
    """(files so far, files per second) of each loop."""
    rows = (ROW.fullmatch(line) for line in lines)
    return [(int(row[1]), float(row[2])) for row in rows if row]


def bonnie(scene: Scene, units: int) -> None:
    """Run bonnie++; adds files-bonnie, and in bonnie-PHASE the seconds of each phase of RATES."""
    folder = scene.folder / BONNIE
    folder.mkdir()
    command = ["bonnie++", "-q", "-d", BONNIE, "-s", "0", "-n", str(units), "-m", "x"]
    if os.geteuid() == 0:
        command += ["-u", "root"]
    row = bonnie_row(_run(scene, BONNIE, command))
    if not row:
        scene.fail("bonnie: it printed no row of results")
    scene.figures |= {key if key == "files-bonnie" else f"bonnie-{key}": row[key] for key in row}


def bonnie_row(lines: list[str]) -> dict[str, float]:
    """The seconds by phase and files-bonnie from bonnie++'s row; empty without a row."""
    for line in lines:
        words = line.split(",")
        if len(words) <= max(RATES.values()) or not words[FILES].isdigit():
            continue
        files = int(words[FILES]) * UNIT
        rates = {phase: words[place] for phase, place in RATES.items()}
        seconds = {phase: files / float(rate) for phase, rate in rates.items() if _is_rate(rate)}
        return {"files-bonnie": files, **seconds}
    return {}


def _is_rate(word: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", word) is not None and float(word) > 0


def _run(scene: Scene, name: str, command: list[str]) -> list[str]:
    """Run a program; returns its lines. Prints every half second how many files it has made."""
    before = inodes_used(scene.folder)
    try:
        program = Program(command, scene.folder)
    except OSError as error:
        scene.fail(f"{name}: {command[0]}: {error.strerror}")
        return []
    program.start()
    for _ in ticks_while(program.is_alive):
        say(f"{name}: files={max(0, inodes_used(scene.folder) - before)}")
    program.join()
    if program.status:
        scene.fail(f"{name}: {command[0]} ended with status {program.status}")
    return program.lines
