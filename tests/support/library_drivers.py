# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles a test's driver in C together with sources of vm/qemu_disk_model."""

import subprocess
from pathlib import Path

from vm.disk_model import SOURCES

DRIVERS = Path(__file__).parents[1] / "vm"
# A function that takes the place of a library's has its parameters, used or not.
COMPILER = ("gcc", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter")
SANITIZERS = "-fsanitize=address,undefined"


def compiled(folder: Path, driver: str, sources: str, *libraries: str) -> Path:
    """The program of tests/vm/DRIVER.c and these sources of vm/qemu_disk_model, in this folder."""
    program = folder / driver
    files = [
        str(DRIVERS / f"{driver}.c"),
        *(str(SOURCES / f"{name}.c") for name in sources.split()),
    ]
    command = [*COMPILER, SANITIZERS, f"-I{SOURCES}", *files, *libraries, "-o", str(program)]
    subprocess.run(command, check=True)
    return program
