# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: programs of tests/monitors/c with parts of the observers, and with sanitizers."""

import contextlib
import functools
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from setup.compile_observers import SOURCES
from setup.observers import program

DRIVERS = Path(__file__).resolve().parent.parent / "monitors" / "c"
COMPILER = ("gcc", "-g", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
PLAIN = ("-O2",)


@functools.cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="observers-")


@functools.cache
def driver(
    name: str, *parts: str, flags: tuple[str, ...] = (), sanitizers: tuple[str, ...] = SANITIZERS
) -> Path:
    """The program of tests/monitors/c/NAME.c and these files of monitors/."""
    target = Path(_folder().name) / f"{name}{sanitizers[0]}"
    files = [str(DRIVERS / f"{name}.c"), *(str(SOURCES / part) for part in parts)]
    command = [*COMPILER, *sanitizers, f"-I{SOURCES}", *flags, *files, "-o", str(target)]
    subprocess.run(command, check=True)
    return target


class Driven:
    """A driver that answers what it is told."""

    def __init__(self, path: Path, *words: str, fds: tuple[int, ...] = ()) -> None:
        self.status = 0  # what it should end with
        self._child = subprocess.Popen(
            [path, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=fds,
            env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._child.stdin
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()
        assert self._child.wait(20) == self.status or kind
        self._output.close()

    @property
    def _output(self) -> IO[bytes]:
        assert self._child.stdout
        return self._child.stdout

    def tell(self, data: bytes) -> None:
        assert self._child.stdin
        # pytest takes a BrokenPipeError for its own; that it died is seen when it does not answer.
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(data)
            self._child.stdin.flush()

    def line(self) -> str:
        line = self._output.readline()
        assert line.endswith(b"\n")  # else it died
        return line[:-1].decode()

    def data(self, size: int) -> bytes:
        found = self._output.read(size)
        assert len(found) == size
        return found


def limited(folder: Path, limit: str) -> Path:
    """The observers' program with this limit of ulimit."""
    script = folder / "limited"
    script.write_text(f'#!/bin/sh\nulimit {limit}\nexec {program()} "$@"\n')
    script.chmod(0o755)
    return script


class Ring(Driven):
    """The kernel's log as kmsg.c reads it."""

    def __init__(self) -> None:
        parts = ("sampler/kmsg.c", "text.c")
        super().__init__(driver("kmsg_driver", *parts, flags=("-Wl,--wrap=read",)))

    def read(self, records: list[bytes | int]) -> tuple[bytes, int, int, int]:
        """Of records (a number: this errno): lines, slices, how many were read and missed."""
        parts = [
            struct.pack("<i", len(record)) + record
            if isinstance(record, bytes)
            else struct.pack("<i", -record)
            for record in records
        ]
        self.tell(b"".join(parts))
        size, slices, read, missed = map(int, self.line().split())
        return self.data(size), slices, read, missed
