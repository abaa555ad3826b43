# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' one program, compiled here from monitors/ and kept in the cache.

Linked statically, as a guest has neither libbpf nor a compiler. What runs in the kernel is compiled
by clang and lies within the program; libbpf fits it to the kernel that it is loaded into.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

from errors import UserError, run_command
from setup import cache

SOURCES = Path(__file__).resolve().parent.parent / "monitors"
PACKED = SOURCES / "observers"  # where a guest finds it (setup.disk)
TRACE = SOURCES / "trace" / "trace.bpf.c"
BPF = (
    *("clang", "-O2", "-g", "-Wall", "-target", "bpf"),
    *("-mcpu=v3", "-fdebug-compilation-dir=."),  # v3: atomics
)
PROGRAM = ("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-static", "-s")
COMPILERS = (BPF[0], PROGRAM[0])
INCLUDE = f"-I/usr/include/{os.uname().machine}-linux-gnu"
# libelf of Debian 13 knows zstd, too.
LIBRARIES = (("-lbpf", "-lelf", "-lz"), ("-lbpf", "-lelf", "-lz", "-lzstd"))
INSTALL = "apt-get install clang gcc libbpf-dev libelf-dev zlib1g-dev"


@functools.cache
def program() -> Path:
    """The compiled program; UserError (3) says what is missing."""
    files = sorted(SOURCES.rglob("*.[ch]"))
    if not files and PACKED.exists():  # in a guest there are no sources
        return PACKED
    words = [*BPF, *PROGRAM, os.uname().machine, *map(_version, COMPILERS), *_libraries()]
    text = [part for path in files for part in (str(path.relative_to(SOURCES)), path.read_text())]
    return cache.built("observers", cache.key(*words, *text), _compile)


def _compile(target: Path) -> None:
    trace = target.with_name("trace.bpf.o")
    # From there, by a short name: it is what bpftool shows of each line.
    bpf = [*BPF, INCLUDE, "-c", str(TRACE.relative_to(SOURCES.parent)), "-o", str(trace)]
    if error := _run(bpf):
        raise UserError(f"trace.bpf.c cannot be compiled: {error}", hint=INSTALL)
    sources = [str(path) for path in sorted(SOURCES.rglob("*.c")) if path != TRACE]
    command = [*PROGRAM, f"-I{SOURCES}", f'-DTRACE_OBJECT="{trace}"', *sources, "-o", str(target)]
    errors = []
    for libraries in LIBRARIES:
        if not (error := _run([*command, *libraries])):
            return
        errors.append(error)
    raise UserError(f"the observers cannot be compiled: {errors[0]}", hint=INSTALL)


def _version(compiler: str) -> str:
    try:
        return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    except OSError as error:
        raise UserError(f"{compiler}: {error.strerror}", hint=INSTALL) from None


def _libraries() -> list[str]:
    """What stands for the libraries that are linked in: an update makes another program."""
    folder = Path(f"/usr/lib/{os.uname().machine}-linux-gnu")
    found = (folder / f"{name}.a" for name in ("libbpf", "libelf", "libz"))
    return [f"{p.name} {p.stat().st_size} {p.stat().st_mtime_ns}" for p in found if p.exists()]


def _run(command: list[str]) -> str:
    """Why it failed, in a line; empty if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=SOURCES.parent)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or [f"{command[0]} ended with {done.returncode}"]
    return next((line for line in lines if "error" in line), lines[-1])


def main() -> int:
    """python3 -m setup.observers: compile, and say where it is."""
    print(program())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.observers", main))
