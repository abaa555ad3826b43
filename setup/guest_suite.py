# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's part of the suite: the modules that run there, compiled, and nothing else.

Copying them takes the guest instructions. So one more file, or a changed one, makes other runs, as
another seed does; meta.json has a digest of these files.
"""

import functools
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from setup import cache, observers
from setup.userland import tools

SUITE = Path(__file__).resolve().parent.parent
# run_test.sh --bare is measure.one_run; tests/test_one_way.py checks that these are exactly the
# modules that it imports and starts.
IN_GUEST = (
    *("contract/__init__.py", "contract/command_line.py", "contract/machine_model.py"),
    *("contract/option_rows.py", "contract/option_table.py", "contract/options.py"),
    *("contract/results_memory.py", "contract/run_files.py", "contract/run_record.py"),
    *("contract/start_up.py", "contract/swap.py", "contract/untrusted.py"),
    *("contract/values.py", "contract/variant.py", "contract/workload.py"),
    *("echo_load", "errors.py", "fake_gitk", "fake_player", "measure"),
    *("monitors/__init__.py", "monitors/beacon.py", "monitors/launch.py", "monitors/streams.py"),
    "run_test.sh",
    *("setup/__init__.py", "setup/devices", "setup/meminfo.py", "setup/observers.py"),
    "setup/rsync_daemon.py",
    *("setup/crypt_lvm/__init__.py", "setup/crypt_lvm/activation.py"),
    *("setup/crypt_lvm/creation.py", "setup/crypt_lvm/mapper.py", "setup/crypt_lvm/ownership.py"),
    *("setup/crypt_lvm/stack.py", "setup/crypt_lvm/stack_build.py", "setup/crypt_lvm/swaps.py"),
    *("vm/guest_init.sh", "workloads"),
)
LEFT_OUT = "__pycache__"
COMPILED = (".c", ".h")  # left out: the guest gets the compiled program
# Compiled here: an emulated guest would take seconds.
COMPILE = ("python3", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash")


def files(more: Sequence[str] = ()) -> Iterator[Path]:
    """The files of the suite that a guest gets; more: further files and folders."""
    for name in sorted({*IN_GUEST, *more}):
        if (SUITE / name).is_file():
            yield SUITE / name
        for folder, names, inside in os.walk(SUITE / name):
            names[:] = sorted(set(names) - {LEFT_OUT})
            paths = (Path(folder) / file for file in sorted(inside))
            yield from (path for path in paths if path.suffix not in COMPILED)


def folder(more: Sequence[str] = ()) -> Path:
    """The folder with the guest's part of the suite, from the cache if it is there."""
    parts = [*COMPILE, tools.identity(), observers.program().name]
    for path in files(more):
        executable = "x" if os.access(path, os.X_OK) else ""
        data = hashlib.sha256(path.read_bytes()).hexdigest()
        parts += [str(path.relative_to(SUITE)), executable, data]
    return cache.built("suites", cache.key(*parts), functools.partial(_make, more))


def _make(more: Sequence[str], target: Path) -> None:
    with tools.workplace() as place:
        suite = place.folder / "suite"
        for path in files(more):
            _copy(path, suite / path.relative_to(SUITE))
        _copy(observers.program(), suite / observers.PACKED.relative_to(SUITE))
        _copy(observers.busybox(), suite / observers.PACKED_BUSYBOX.relative_to(SUITE))
        command = [*COMPILE, "-s", "suite", "-p", "/suite", "suite"]
        place.run(command, what="compiling the suite for the guest")
        shutil.move(suite, target)


def _copy(path: Path, copied: Path) -> None:
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, copied)
