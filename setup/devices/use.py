# SPDX-License-Identifier: GPL-2.0-or-later
"""Who uses a device or file: mounts, swap, holders, loop devices, and processes that have it open.

An O_EXCL open meets only those who claim a block device. A loop device does not claim what it
stands on, nor does QEMU its disk; so these are looked for one by one.
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

# udev and blkid look at a device for a moment whenever somebody has written to it.
PATIENCE_S = 3.0


def refuse_use(device: Device) -> None:
    """UserError that names a user of the device or file."""
    give_up = time.monotonic() + PATIENCE_S
    for user in _users(device):
        raise UserError(user)
    while opener := next(_openers(device), ""):
        if time.monotonic() > give_up:
            raise UserError(opener)
        time.sleep(0.25)


def refuse_open(device: Device) -> None:
    """UserError if anybody but us has the plain file open, in whatever way: the kernel is asked.

    It gives a lease for writing (fcntl(2), F_SETLEASE) only to a file's sole opener.
    """
    try:
        fcntl.fcntl(device.descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        if error.errno == errno.EAGAIN:
            raise UserError(f"{device.name} is in use: somebody has it open") from None
        return  # a file system without leases, or somebody else's file
    fcntl.fcntl(device.descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def swaps() -> list[tuple[str, int]]:
    """Path and priority of each swap that is on, in the order of /proc/swaps."""
    found = []
    for line in Path("/proc/swaps").read_text().splitlines()[1:]:
        fields = line.split()
        found.append((unescape(fields[0]), int(fields[4])))
    return found


def mounts() -> list[tuple[str, str, str]]:
    """(major:minor, mount point, source) of each mount of /proc/self/mountinfo."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        fields, source = before.split(), after.split()[1:2]
        found.append((fields[2], unescape(fields[4]), unescape(source[0]) if source else ""))
    return found


def unescape(text: str) -> str:
    """A path of /proc/mounts or /proc/swaps, where blank, tab and backslash are octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def same(one: str, other: str) -> bool:
    """True if both paths lead to the same device or file."""
    try:
        return _place(Path(one).stat()) == _place(Path(other).stat())
    except OSError:
        return False


def _place(found: os.stat_result) -> loop_devices.Backing:
    return loop_devices.backing_of(found)


def _users(device: Device) -> Iterator[str]:
    if device.is_block:
        yield from _block_users(device.number, device.name)
    else:
        yield from _file_users(_place(device.found), device.name)


def _file_users(file: loop_devices.Backing, what: str, except_for: str = "") -> Iterator[str]:
    for loop in loop_devices.on(file):
        if loop != except_for:
            yield f"{what} is in use by {loop}"
    for path, _priority in swaps():
        with contextlib.suppress(OSError):
            if _place(Path(path).stat()) == file:
                yield f"{what} is in use as swap"


def _block_users(number: str, name: str, except_for: str = "") -> Iterator[str]:
    """Users of the device, its partitions, its disk, and of what it stands on as a loop device."""
    for part, what in _parts(number, name):
        yield from _part_users(part, what, except_for)
    for below, what, loop in _below(number, name):
        if below.block:
            yield from _block_users(_number(below), what, loop)
        else:
            yield from _file_users(below, what, loop)


def _parts(number: str, name: str) -> Iterator[tuple[str, str]]:
    """(number, words) of the device, each of its partitions, and the disk that it is one of."""
    folder = sys_folder(number)
    yield number, name
    for child in sorted(folder.iterdir()):
        if (child / "partition").is_file():
            yield (child / "dev").read_text().strip(), f"{name}'s partition {child.name}"
    if (folder / "partition").is_file():
        yield (folder.parent / "dev").read_text().strip(), f"{name}'s disk {folder.parent.name}"


def _below(number: str, name: str) -> Iterator[tuple[loop_devices.Backing, str, str]]:
    """What a loop device, or a partition's, stands on; words for it; the loop device."""
    folder = sys_folder(number)
    disk = folder.parent if (folder / "partition").is_file() else folder
    if below := loop_devices.backings().get(disk.name):
        file = (disk / "loop/backing_file").read_text().strip()
        yield below, f"{file}, on which {name} stands,", f"/dev/{disk.name}"


def _part_users(number: str, what: str, except_for: str) -> Iterator[str]:
    for device, place, source in mounts():
        # Some file systems have a number of their own in place of the device's.
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
        found = Path(path).stat()
    except OSError:
        return False
    return stat.S_ISBLK(found.st_mode) and number_of(found) == number


def _number(below: loop_devices.Backing) -> str:
    return f"{os.major(below.place[0])}:{os.minor(below.place[0])}"


def _openers(device: Device) -> Iterator[str]:
    """Other processes that have the device or file open; of its whole disk only who may write."""
    sought = {place: rest for place, *rest in _opened_parts(device)}
    inodes = {place.place[1] for place in sought if not place.block}
    # Who has started us may hold what we are to use.
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
    """(what, words, whether reading it is to use it) of all that is opened for the device."""
    if not device.is_block:
        yield _place(device.found), device.name, True
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
    """Whether a descriptor may be one that is sought; a file on a server that is gone blocks."""
    if target.startswith("/dev/"):
        return True
    inode = _fact(facts, "ino")  # since 5.14
    return target.startswith("/") and bool(inodes) and (not inode or int(inode) in inodes)


def _fact(facts: str, name: str) -> str:
    found = re.search(rf"^{name}:\s*(\d+)$", facts, re.MULTILINE)
    return found[1] if found else ""


def _block(number: str) -> loop_devices.Backing:
    major, minor = map(int, number.split(":"))
    return loop_devices.Backing(True, (os.makedev(major, minor),))
