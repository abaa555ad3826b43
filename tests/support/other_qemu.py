# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: a QEMU that the disk model does not work with."""

import shlex
from pathlib import Path

from vm.emulator import find

NONE_CAME = "none of 9 requests reached the library"


def write(path: Path) -> str:
    """Make a program of path: it takes the library, and has requests done in a way of its own."""
    words = 'for word; do shift; set -- "$@" "${word%,aio=io_uring}"; done'
    modules = f"QEMU_MODULE_DIR={shlex.quote(find().environment()['QEMU_MODULE_DIR'])}"
    program = shlex.join(find().command())
    path.write_text(f'#!/bin/sh\n{words}\n{modules} exec {program} "$@"\n')
    path.chmod(0o755)
    return str(path)
