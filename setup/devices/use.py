# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the users of a device or file: mounts, swap, holders, loop devices, and open descriptors.

An O_EXCL open only detects users that claim a block device. Loop devices do not claim their
backing, and QEMU does not claim its disk; so each kind of user is looked for.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup.devices import loop_devices
from setup.devices.device import Device, number_of, sys_folder

# s: udev and blkid open a device briefly after each writer has closed it.
PATIENCE_S = 3.0


def refuse_use(device: Device) -> None:
    """UserError that names a user of the device or file, if it has any."""
    give_up = time.monotonic() + PATIENCE_S
    for user in _users(device):
        raise UserError(user)
    while opener := next(_openers(device), ""):
        if time.monotonic() > give_up:
            raise UserError(opener)
        time.sleep(0.25)


def refuse_open(device: Device) -> None:
    """UserError if any other process has the plain file open in any way.

    The kernel grants a write lease (fcntl(2), F_SETLEASE) only if nobody else has the file open.
    """
    try:
        fcntl.fcntl(device.descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise UserError(f"{device.name} is in use: another program has it open") from None
        return  # a file system without leases, or another user's file
    fcntl.fcntl(device.descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def swaps() -> list[tuple[str, int]]:
    """The path and priority number of each swap that is on, in the order of /proc/swaps."""
    rows = []
    for line in Path("/proc/swaps").read_text().splitlines()[1:]:
        fields = line.split()
        rows.append((unescape(fields[0]), int(fields[4])))
    return rows


def mounts() -> list[tuple[str, str, str]]:
    """(major:minor, mount point, source) of each mount of /proc/self/mountinfo."""
    rows = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        fields, source = before.split(), after.split()[1:2]
        rows.append((fields[2], unescape(fields[4]), unescape(source[0]) if source else ""))
    return rows


def unescape(text: str) -> str:
    """A path from /proc/mounts or /proc/swaps, which escape blank, tab and backslash in octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def same(path: str, other: str) -> bool:
    """Whether both paths lead to the same device or file."""
    try:
        return _place(Path(path).stat()) == _place(Path(other).stat())
    except OSError:
        return False


def _place(status: os.stat_result) -> loop_devices.Backing:
    return loop_devices.backing_of(status)


def _users(device: Device) -> Iterator[str]:
    if device.is_block:
        yield from _block_users(device.number, device.name)
    else:
        yield from _file_users(_place(device.stat), device.name)


def _file_users(file: loop_devices.Backing, what: str, except_for: str = "") -> Iterator[str]:
    for loop in loop_devices.on(file):
        if loop != except_for:
            yield f"{what} is in use by {loop}"
    for path, _priority in swaps():
        with contextlib.suppress(OSError):
            if _place(Path(path).stat()) == file:
                yield f"{what} is in use as swap"


def _block_users(number: str, name: str, except_for: str = "") -> Iterator[str]:
    """The users of the device, its partitions, its disk, and of a loop device's backing."""
    for part, what in _parts(number, name):
        yield from _part_users(part, what, except_for)
    for below, what, loop in _below(number, name):
        if below.block:
            yield from _block_users(_number(below), what, loop)
        else:
            yield from _file_users(below, what, loop)


def _parts(number: str, name: str) -> Iterator[tuple[str, str]]:
    """(number, words) for the device, each of its partitions, and the disk of which it is one."""
    folder = sys_folder(number)
    yield number, name
    for child in sorted(folder.iterdir()):
        if (child / "partition").is_file():
            yield (child / "dev").read_text().strip(), f"{name}'s partition {child.name}"
    if (folder / "partition").is_file():
        yield (folder.parent / "dev").read_text().strip(), f"{name}'s disk {folder.parent.name}"


def _below(number: str, name: str) -> Iterator[tuple[loop_devices.Backing, str, str]]:
    """The backing of a loop device or of its partition, words for it, and the loop device."""
    folder = sys_folder(number)
    disk = folder.parent if (folder / "partition").is_file() else folder
    if below := loop_devices.backings().get(disk.name):
        file = (disk / "loop/backing_file").read_text().strip()
        yield below, f"{file}, on which {name} stands,", f"/dev/{disk.name}"


def _part_users(number: str, what: str, except_for: str) -> Iterator[str]:
    for device, place, source in mounts():
        # Some file systems show their own number instead of the device's.
        if device == number or (source.startswith("/") and _is_block(source, number)):
            yield f"{what} is mounted on {place}"
    for path, _priority in swaps():
        if _is_block(path, number):
            yield f"{what} is in use as swap"
    for loop in loop_devices.on(_block(number)):
        if loop != except_for:
            yield f"{what} is in use by {loop}"
    holders = sys_folder(number) / "holders"
    for holder in sorted(holders.iterdir()) if holders.is_dir() else []:
        dm = holder / "dm/name"
        shown = f"{holder.name} ({dm.read_text().strip()})" if dm.is_file() else holder.name
        yield f"{what} is held by {shown}"


def _is_block(path: str, number: str) -> bool:
    try:
        status = Path(path).stat()
    except OSError:
        return False
    return stat.S_ISBLK(status.st_mode) and number_of(status) == number


def _number(below: loop_devices.Backing) -> str:
    return f"{os.major(below.place[0])}:{os.minor(below.place[0])}"


def _openers(device: Device) -> Iterator[str]:
    """Other processes that have the device or file open.

    For its whole disk only those that may write.
    """
    sought = {place: rest for place, *rest in _opened_parts(device)}
    inodes = {place.place[1] for place in sought if not place.block}
    # Our parent may hold the device for us.
    ours = {str(os.getpid()), str(os.getppid())}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # another user's, or it has ended
            for link in (folder / "fd").iterdir() if folder.name not in ours else ():
                facts = (folder / "fdinfo" / link.name).read_text()
                if not _may_be(str(link.readlink()), facts, inodes):
                    continue
                what, any_opener = sought.get(_place(link.stat()), ("", False))
                how = int(_fact(facts, "flags") or "0", 8)
                reads = how & os.O_ACCMODE == os.O_RDONLY
                if what and not how & os.O_PATH and (any_opener or not reads):
                    program = (folder / "comm").read_text().strip()
                    yield f"{what} is open in {program} (pid {folder.name})"


def _opened_parts(device: Device) -> Iterator[tuple[loop_devices.Backing, str, bool]]:
    """(backing, words, whether a reader counts as a user) of all that belongs to the device."""
    if not device.is_block:
        yield _place(device.stat), device.name, True
        return
    numbers = [(device.number, device.name)]
    for number, name in numbers:
        folder = sys_folder(number)
        for part, what in _parts(number, name):
            whole = sys_folder(part) == folder.parent
            yield _block(part), what, not whole
        for below, what, _loop in _below(number, name):
            if below.block:
                numbers.append((_number(below), what))
            else:
                yield below, what, True


def _may_be(target: str, facts: str, inodes: set[int]) -> bool:
    """Whether a descriptor may be a sought one.

    Avoids stat() on files of a dead server, which hangs.
    """
    if target.startswith("/dev/"):
        return True
    inode = _fact(facts, "ino")  # since 5.14
    return target.startswith("/") and bool(inodes) and (not inode or int(inode) in inodes)


def _fact(facts: str, name: str) -> str:
    match = re.search(rf"^{name}:\s*(\d+)$", facts, re.MULTILINE)
    return match[1] if match else ""


def _block(number: str) -> loop_devices.Backing:
    major, minor = map(int, number.split(":"))
    return loop_devices.Backing(True, (os.makedev(major, minor),))
