# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' one program, compiled from monitors/ by the suite's own tools, kept in the cache.

Linked statically, as a guest has neither libbpf nor a compiler. What runs in the kernel is compiled
by clang and lies within the program; libbpf fits it to the kernel that it is loaded into.
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
LIBRARIES = ("-lbpf", "-lelf", "-lz")


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
    """The sources as monitors/ in that folder; names of those that are programs of their own."""
    for path in files:
        copied = place.folder / SOURCES.name / path.relative_to(SOURCES)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copied)
    parts = [path.relative_to(SOURCES) for path in files]
    return [f"{SOURCES.name}/{one}" for one in parts if one.suffix == ".c" and one != TRACE]


def _compile(files: Sequence[Path], made: Path) -> None:
    with tools.workplace() as place:
        sources = copy_sources(files, place)
        # By a short name: it is what bpftool shows of each line.
        trace = ["-c", f"{SOURCES.name}/{TRACE}", "-o", "trace.bpf.o"]
        place.run([*BPF, *trace], what="compiling trace.bpf.c")
        flags = [f"-I{SOURCES.name}", '-DTRACE_OBJECT="trace.bpf.o"']
        command = [*PROGRAM, *flags, *sources, "-o", made.name, *LIBRARIES]
        place.run(command, what="compiling the observers")
        shutil.move(place.folder / made.name, made)


def main() -> int:
    """python3 -m setup.compile_observers: compile, and say where it is."""
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.compile_observers", main))
