# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes memory control groups for workloads and remedies: version 2, or 1 if there is only that.

Documentation/admin-guide/cgroup-v2.rst (memory.max, memory.events, memory.stat) and
cgroup-v1/memory.rst (memory.limit_in_bytes, memory.oom_control).
"""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from contract.values import SUBTREE
from errors import UserError, write_kernel_file

# Where to mount a memory controller if none is: version 2 in its usual place if that is empty.
STANDARD_MOUNT, OWN_MOUNT = Path("/sys/fs/cgroup"), Path("/run/desktop-freeze/cgroup")
# A record for each group; it is written before the step that it describes.
RECORDS, RECORD = Path("/run/desktop-freeze"), "cgroup-{}.json"
NAME = "desktop-freeze"
MOUNTS, FILE_SYSTEMS = Path("/proc/self/mounts"), Path("/proc/filesystems")
PATIENCE_S = 30.0


@dataclass(frozen=True)
class Memcg:
    """A control group. folder: its folder in the hierarchy; old: it is of version 1."""

    folder: Path
    old: bool

    def joining(self) -> tuple[str, ...]:
        """The words to put before a command so that it runs inside the group."""
        join = 'echo $$ > "$0" && exec "$@"'
        return ("sh", "-c", join, str(self.folder / "cgroup.procs"))

    def killed(self) -> int | None:
        """The number of its processes that the kernel killed for lack of memory; None if unknown.

        From `oom_kill` in memory.events; in version 1 memory.oom_control (4.13, 8e675f7af507).
        """
        name = "memory.oom_control" if self.old else "memory.events"
        return self._counts(name).get("oom_kill")

    def dirty_and_writeback(self) -> tuple[int, int] | None:
        """The bytes of its page cache that are dirty, and those under writeback (memory.stat)."""
        counts = self._counts("memory.stat")
        names = ("dirty", "writeback") if self.old else ("file_dirty", "file_writeback")
        dirty, writeback = (counts.get(name) for name in names)
        return None if dirty is None or writeback is None else (dirty, writeback)

    def _counts(self, name: str) -> dict[str, int]:
        try:
            lines = (self.folder / name).read_text().splitlines()
        except OSError:
            return {}
        words = (line.split() for line in lines)
        return {two[0]: int(two[1]) for two in words if len(two) == 2 and two[1].isdigit()}


def of_limit(limit: int, version: int) -> Memcg:
    """The group for a limit in bytes; it exists while `limited_group` is open."""
    root, old = hierarchy(version)
    return Memcg(root / f"{NAME}-{limit}", old)


def offered() -> int:
    """The version number of this machine's memory controller: 2, or 1 if it has only that."""
    if hierarchy(2)[1]:
        return 1
    return 2 if "cgroup2" in _words(FILE_SYSTEMS) else 1


def hierarchy(version: int) -> tuple[Path, bool]:
    """The folder of the machine's memory controller, and whether it is of version 1.

    The controller is in one version only, whichever was requested. If none is mounted: where to
    mount it.
    """
    for line in MOUNTS.read_text().splitlines():
        _source, place, kind, options, *_rest = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(place), True
        if kind == "cgroup2" and "memory" in _words(Path(place) / "cgroup.controllers"):
            return Path(place), False
    free = version == 2 and STANDARD_MOUNT.is_dir() and not any(STANDARD_MOUNT.iterdir())
    return STANDARD_MOUNT if free else OWN_MOUNT, version == 1


@contextlib.contextmanager
def limited_group(limit: int, version: int) -> Iterator[Memcg]:
    """Make the group with a limit in bytes; processes that are still in it at the end are killed.

    UserError if this machine or kernel has no memory controller of that version.
    """
    group = of_limit(limit, version)
    file = "memory.limit_in_bytes" if group.old else "memory.max"
    with settled(group, {file: str(limit)}, version):
        yield group


@contextlib.contextmanager
def settled(group: Memcg, settings: Mapping[str, str], version: int = 2) -> Iterator[None]:
    """Make the group and write these of its files, whose names begin with their controllers.

    A value of `cgroup.subtree_control` (`+memory`) names the controllers of its own groups.

    Processes that are still in it at the end are killed. UserError as in `limited_group`.
    """
    record = RECORDS / RECORD.format(group.folder.name)
    _undo(record)
    root, old = hierarchy(version)
    if old != (version == 1):
        raise UserError(
            f"{root}: this machine's memory controller is of version {2 - old}",
            hint=f"--load version={2 - old}",
        )
    made_here: dict[str, str] = {}
    try:
        if root in (STANDARD_MOUNT, OWN_MOUNT) and not root.is_mount():
            _note(record, made_here, mount=str(root))
            _mount(root, version)
        if not old:
            controllers = {
                value.removeprefix("+") if name == SUBTREE else name.partition(".")[0]
                for name, value in settings.items()
            }
            _delegate(root, record, made_here, controllers)
        if group.folder.exists():
            raise UserError(
                f"{group.folder} exists and was not made by this suite", hint="rmdir it"
            )
        _note(record, made_here, folder=str(group.folder))
        try:
            group.folder.mkdir()
        except OSError as error:
            raise UserError(f"{group.folder}: {error.strerror}") from None
        for name, value in settings.items():
            write_kernel_file(group.folder / name, value)
        yield
    finally:
        _undo(record)


def undo() -> None:
    """Remove the groups that the records name, whose `settled` may have been killed."""
    for record in sorted(RECORDS.glob(RECORD.format("*"))):
        _undo(record)


def _undo(record: Path) -> None:
    try:
        noted: dict[str, str] = json.loads(record.read_text())
    except FileNotFoundError:
        return
    if "folder" in noted:
        _remove(Path(noted["folder"]))
    for controller in noted.get("controllers", "").split():
        # Another program may use the controller in its groups by now.
        with contextlib.suppress(OSError):
            Path(noted["delegated"]).write_text(f"-{controller}")
    if "mount" in noted:
        _unmount(Path(noted["mount"]))
    record.unlink()


def _note(record: Path, made_here: dict[str, str], **more: str) -> None:
    """Record the next step before it is done."""
    made_here.update(more)
    record.parent.mkdir(parents=True, exist_ok=True)
    aside = record.with_suffix(".new")
    aside.write_text(json.dumps(made_here))
    aside.rename(record)


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _mount(root: Path, version: int) -> None:
    root.mkdir(parents=True, exist_ok=True)
    kind = ["cgroup2"] if version == 2 else ["cgroup", "-o", "memory"]
    done = subprocess.run(["mount", "-t", *kind, "none", str(root)], capture_output=True, text=True)
    if done.returncode:
        # Since 6.11 (e93d4166b40a) version 1 is a build option of the kernel.
        needs = "CONFIG_MEMCG" if version == 2 else "CONFIG_MEMCG_V1"
        raise UserError(
            f"no control groups of version {version}: {done.stderr.strip()}",
            hint=f"{needs}, or --load version={3 - version}",
        )


def _unmount(root: Path) -> None:
    subprocess.run(["umount", str(root)], check=False)
    with contextlib.suppress(OSError):
        root.rmdir()


def _delegate(
    root: Path, record: Path, made_here: dict[str, str], controllers: Collection[str]
) -> None:
    """Enable these controllers for groups below the root."""
    for controller in sorted(controllers):
        if controller not in _words(root / "cgroup.controllers"):
            option = {"memory": "CONFIG_MEMCG", "io": "CONFIG_BLK_CGROUP"}.get(
                controller, controller
            )
            raise UserError(
                f"{root}: this kernel has no {controller} controller",
                hint=f"{option}, and no cgroup_disable={controller}",
            )
    control = root / SUBTREE
    if more := sorted({*controllers} - {*_words(control)}):
        _note(record, made_here, delegated=str(control), controllers=" ".join(more))
        write_kernel_file(control, " ".join(f"+{controller}" for controller in more))


def _remove(folder: Path) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while True:
        for inner in folder.glob("*/"):
            _remove(inner)
        for pid in _words(folder / "cgroup.procs"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if time.monotonic() > give_up:
                raise UserError(f"{folder}: {error.strerror}") from None
            time.sleep(0.1)
