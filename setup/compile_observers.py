# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the observers' program from monitors/ with the suite's own tools; kept in the cache.

It is linked statically, because a guest has neither libbpf nor a compiler. The part for the kernel
is compiled by clang and embedded in the program; libbpf adapts it to the kernel that loads it.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from errors import run_command
from setup import cache
from setup.userland import tools

SOURCES = Path(__file__).resolve().parent.parent / "monitors"
TRACE = Path("trace/trace.bpf.c")
BPF = (
    *("clang", "-O2", "-g", "-Wall", "-target", "bpf"),
    *("-mcpu=v3", "-fdebug-compilation-dir=."),  # v3: atomics
    "-I/usr/include/x86_64-linux-gnu",
)
PROGRAM = ("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-static", "-s")
LIBRARIES = (
    *("-lbpf", "-lelf", "-lz"),
    *("-lxcb-damage", "-lxcb-shm", "-lxcb-xtest", "-lxcb", "-lXau"),
)


def program() -> Path:
    """The compiled program; UserError (3) says why it cannot be compiled."""
    files = sorted(SOURCES.rglob("*.[ch]"))
    text = [part for path in files for part in (str(path.relative_to(SOURCES)), path.read_text())]
    words = [*BPF, *PROGRAM, *LIBRARIES, tools.identity()]
    return cache.built("observers", cache.key(*words, *text), lambda made: _compile(files, made))


def busybox() -> Path:
    """The editor that the keys' observer types at: of the same tools."""
    return tools.root() / "usr/bin/busybox"


def copy_sources(files: Sequence[Path], place: tools.Workplace) -> list[str]:
    """Copy the sources to monitors/ in that folder; returns the names of the C files to compile."""
    for path in files:
        copied = place.folder / SOURCES.name / path.relative_to(SOURCES)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
    parts = [path.relative_to(SOURCES) for path in files]
    return [f"{SOURCES.name}/{part}" for part in parts if part.suffix == ".c" and part != TRACE]


def _compile(files: Sequence[Path], target: Path) -> None:
    with tools.workplace() as place:
        sources = copy_sources(files, place)
        # A short name, which bpftool shows for each line.
        trace = ["-c", f"{SOURCES.name}/{TRACE}", "-o", "trace.bpf.o"]
        place.run([*BPF, *trace], what="compiling trace.bpf.c")
        flags = [f"-I{SOURCES.name}", '-DTRACE_OBJECT="trace.bpf.o"']
        command = [*PROGRAM, *flags, *sources, "-o", target.name, *LIBRARIES]
        place.run(command, what="compiling the observers")
        shutil.move(place.folder / target.name, target)


def main() -> int:
    """python3 -m setup.compile_observers: compile the program and print its path.

    Returns the exit status.
    """
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.compile_observers", main))
