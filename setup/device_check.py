# SPDX-License-Identifier: GPL-2.0-or-later
"""May this device be used? Whatever is mounted, in use, or not empty is refused in one line.

Sources: /sys/dev/block (size, ro, holders, partitions), /proc/self/mountinfo, /proc/swaps, an
O_EXCL open, `blkid -p`, the first and last MiB (a headerless dm-crypt volume has no signature).
"""

import errno
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

from errors import Exit, UserError

MIB = 1 << 20
FS_MINIMUM = 512 * MIB
SWAP_MINIMUM = 512 * MIB
# LVM's label and metadata, and rounding to its extents of 4 MiB.
OVERHEAD = 16 * MIB
MINIMUM = FS_MINIMUM + SWAP_MINIMUM + OVERHEAD
SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def check_device(dev: str, *, destroy_data: str | None) -> None:
    """Return if dev (a block device or a plain file) may be used; else raise a UserError.

    destroy_data, equal to dev, lets a signature, a partition table or other data pass; never
    something that is mounted or in use. A destroy_data that names another device is a usage error.
    """
    if destroy_data is not None and Path(destroy_data) != Path(dev):
        raise UserError(
            f"--destroy-data names {destroy_data}, but the device is {dev}",
            hint="spell the same device twice",
            status=Exit.USAGE,
        )
    kind = _kind(dev)
    if kind == "block":
        _refuse_block_in_use(dev)
    else:
        _refuse_file_in_use(dev)
    size = device_size(dev)
    if size < MINIMUM:
        raise UserError(f"{dev} is too small: {size // MIB} MiB, at least {MINIMUM // MIB} needed")
    descriptor = _open_exclusively(dev)
    try:
        if destroy_data is None:
            _refuse_data(dev, descriptor, size)
    finally:
        os.close(descriptor)


def is_block(dev: str) -> bool:
    """True if dev is a block device."""
    return stat.S_ISBLK(Path(dev).stat().st_mode)


def sys_folder(dev: str) -> Path:
    """The folder in /sys of the block device dev."""
    number = Path(dev).stat().st_rdev
    return Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()


def device_size(dev: str) -> int:
    """Bytes of a block device (/sys/…/size counts 512-byte sectors) or plain file."""
    if is_block(dev):
        return int((sys_folder(dev) / "size").read_text()) * 512
    return Path(dev).stat().st_size


def identity(dev: str) -> dict[str, Any]:
    """What tells this device from a later one of its name: size, number, diskseq (since 5.15)."""
    facts: dict[str, Any] = {"size": device_size(dev)}
    if is_block(dev):
        facts["rdev"] = Path(dev).stat().st_rdev
        folder = sys_folder(dev)
        for path in (folder / "diskseq", folder.parent / "diskseq"):
            if path.is_file():
                facts["diskseq"] = path.read_text().strip()
                break
    else:
        facts["inode"] = [Path(dev).stat().st_dev, Path(dev).stat().st_ino]
    return facts


def loops_of(file: str) -> list[str]:
    """The loop devices on a file or block device, from /sys/block/loop*/loop/backing_file."""
    found = []
    real = os.path.realpath(file)
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        try:
            path = backing.read_text().rstrip("\n")
        except OSError:
            continue
        if path == real or same(path, real):
            found.append(f"/dev/{backing.parent.parent.name}")
    return found


def zero_ends(dev: str) -> None:
    """Overwrite the first and the last MiB of dev with zeroes, and sync."""
    flags = os.O_WRONLY | os.O_CLOEXEC | (os.O_EXCL if is_block(dev) else 0)
    descriptor = os.open(dev, flags)
    try:
        size = device_size(dev)
        length = min(MIB, size)
        for offset in (0, size - length):
            data = memoryview(bytes(length))
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        a, b = Path(one).stat(), Path(other).stat()
    except OSError:
        return False
    if stat.S_ISBLK(a.st_mode) and stat.S_ISBLK(b.st_mode):
        return a.st_rdev == b.st_rdev
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)


def _kind(dev: str) -> str:
    try:
        mode = Path(dev).stat().st_mode
    except OSError as error:
        raise UserError(f"{dev}: {error.strerror}", hint="a partition, a disk or a file") from None
    if stat.S_ISBLK(mode):
        return "block"
    if stat.S_ISREG(mode):
        return "file"
    raise UserError(f"{dev} is neither a block device nor a plain file", status=Exit.USAGE)


def _refuse_block_in_use(dev: str) -> None:
    folder = sys_folder(dev)
    _refuse_use(dev, folder, dev)
    for child in sorted(folder.iterdir()):
        if (child / "partition").is_file():
            _refuse_use(dev, child, f"{dev}'s partition {child.name}")
    if (folder / "ro").read_text().strip() == "1":
        raise UserError(f"{dev} is read-only")


def _refuse_use(dev: str, folder: Path, what: str) -> None:
    number = (folder / "dev").read_text().strip()
    node = f"/dev/{folder.name}"
    for device, place, source in mounts():
        if device == number or (source.startswith("/") and same(source, node)):
            raise UserError(f"{what} is mounted on {place}")
    for path, _priority in swaps():
        if same(path, node) or (what == dev and same(path, dev)):
            raise UserError(f"{what} is in use as swap")
    # A loop device neither is a holder nor keeps its backing device from being opened.
    for loop in loops_of(node):
        raise UserError(f"{what} is in use by {loop}")
    holders = folder / "holders"
    for holder in sorted(holders.iterdir()) if holders.is_dir() else []:
        name = holder / "dm" / "name"
        shown = f"{holder.name} ({name.read_text().strip()})" if name.is_file() else holder.name
        raise UserError(f"{what} is held by {shown}")


def _refuse_file_in_use(dev: str) -> None:
    for loop in loops_of(dev):
        raise UserError(f"{dev} is in use by {loop}")
    for path, _priority in swaps():
        if same(path, dev):
            raise UserError(f"{dev} is in use as swap")
    if not os.access(dev, os.W_OK):
        raise UserError(f"{dev} is read-only")


def _open_exclusively(dev: str) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if is_block(dev) else 0)
    try:
        return os.open(dev, flags)
    except OSError as error:
        if error.errno == errno.EBUSY:
            raise UserError(f"{dev} is in use: somebody holds it open exclusively") from None
        hint = "are you root?" if error.errno in (errno.EACCES, errno.EPERM) else ""
        raise UserError(f"{dev} cannot be opened: {error.strerror}", hint=hint) from None


def _refuse_data(dev: str, descriptor: int, size: int) -> None:
    hint = f"if nothing on it is needed: --destroy-data {dev}"
    found = signature(dev)
    if found:
        raise UserError(f"{dev} holds {found}", hint=hint)
    for offset, where in ((0, "first"), (size - MIB, "last")):
        if os.pread(descriptor, MIB, offset).strip(b"\0"):
            raise UserError(
                f"{dev} is not empty: its {where} MiB holds data of no known kind", hint=hint
            )


def signature(dev: str) -> str:
    """What blkid finds on dev, in words (`an ext4 file system labelled X`); empty if nothing."""
    try:
        done = subprocess.run(
            ["blkid", "-p", "-o", "export", dev],
            capture_output=True,
            env={"PATH": SBIN, "LC_ALL": "C"},
            timeout=60,
        )
    except FileNotFoundError:
        raise UserError("blkid is missing", hint="apt-get install util-linux") from None
    if done.returncode == 8:
        return "several signatures at once (see wipefs -n)"
    if done.returncode not in (0, 2):
        raise UserError(f"blkid -p {dev} failed with status {done.returncode}")
    text = done.stdout.decode(errors="replace")
    facts = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    kind, label = facts.get("TYPE", ""), facts.get("LABEL", "")
    if facts.get("PTTYPE") and not kind:
        return f"a partition table ({facts['PTTYPE']})"
    if not kind:
        return ""
    noun = {"filesystem": "file system", "raid": "volume", "crypto": "encrypted volume"}.get(
        facts.get("USAGE", ""), "signature"
    )
    if kind == "swap":
        noun = "area"
    article = "an" if kind[0].lower() in "aeiou" or kind.startswith("xfs") else "a"
    return f"{article} {kind} {noun}" + (f" labelled {label}" if label else "")
