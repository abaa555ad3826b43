# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides whether a device may be used: refuses what is mounted, in use or not empty, in one line.

It asks setup.devices.use, an O_EXCL open and `blkid -p`, and reads the first and last MiB
(headerless dm-crypt has no signature).
"""

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from errors import Exit, UserError
from setup.devices.device import MIB, Device, cannot_open, opened, sys_folder
from setup.devices.use import refuse_open, refuse_use

FS_MINIMUM = 512 * MIB
SWAP_MINIMUM = 512 * MIB
# For LVM's label and metadata, and rounding to its extents of 4 MiB.
OVERHEAD = 16 * MIB
MINIMUM = FS_MINIMUM + SWAP_MINIMUM + OVERHEAD
SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


def check_device(dev: str, *, destroy_data: str | None) -> None:
    """Return if dev (a block device or a plain file) may be used; else raise a UserError."""
    with opened(dev) as device, checked(device, destroy_data=destroy_data):
        pass


@contextlib.contextmanager
def checked(device: Device, *, destroy_data: str | None) -> Iterator[None]:
    """Claim the device if it may be used; else raise a UserError.

    destroy_data, if equal to its name, permits a signature, a partition table or other data, but
    never a device that is mounted or in use.
    """
    refuse_other_name(device.name, destroy_data)
    # Claimed first, so that nobody can take it after its users have been looked for.
    failure = None
    try:
        device.claim()
    except OSError as error:
        failure = error
    try:
        refuse_use(device)
        _refuse_read_only(device, failure)
        if device.size < MINIMUM:
            raise UserError(
                f"{device.name} is too small: {device.size // MIB} MiB, "
                f"at least {MINIMUM // MIB} needed"
            )
        if failure is not None:
            raise _unclaimed(device, failure)
        if not device.is_block:
            refuse_open(device)
        if destroy_data is None:
            _refuse_data(device)
        yield
    finally:
        device.release()


def refuse_other_name(dev: str, destroy_data: str | None) -> None:
    """UserError (2) if destroy_data is given and is not equal to dev."""
    if destroy_data is not None and Path(destroy_data) != Path(dev):
        raise UserError(
            f"--destroy-data names {destroy_data}, but the device is {dev}",
            hint="spell the same device twice",
            status=Exit.USAGE,
        )


def _refuse_read_only(device: Device, failure: OSError | None) -> None:
    if device.is_block:
        read_only = (sys_folder(device.number) / "ro").read_text().strip() == "1"
    else:
        read_only = failure is not None and failure.errno == errno.EROFS
    if read_only:
        raise UserError(f"{device.name} is read-only")


def _unclaimed(device: Device, error: OSError) -> UserError:
    if error.errno == errno.EBUSY:
        return UserError(f"{device.name} is in use: a program holds it open exclusively")
    return cannot_open(device.name, error)


def _refuse_data(device: Device) -> None:
    hint = f"if nothing on it is needed: --destroy-data {device.name}"
    content = signature(device)
    if content:
        raise UserError(f"{device.name} holds {content}", hint=hint)
    for offset, where in ((0, "first"), (device.size - MIB, "last")):
        if os.pread(device.descriptor, MIB, offset).strip(b"\0"):
            raise UserError(
                f"{device.name} is not empty: its {where} MiB holds data of an unknown kind",
                hint=hint,
            )


def signature(device: Device) -> str:
    """The content that blkid finds, in words (`an ext4 file system labelled X`); "" if none."""
    try:
        done = subprocess.run(
            ["blkid", "-p", "-o", "export", f"/proc/self/fd/{device.descriptor}"],
            capture_output=True,
            pass_fds=[device.descriptor],
            env={"PATH": SBIN, "LC_ALL": "C"},
            timeout=60,
        )
    except FileNotFoundError:
        raise UserError("blkid is missing", hint="apt-get install util-linux") from None
    if done.returncode == 8:
        return "several signatures at once (see wipefs -n)"
    if done.returncode not in (0, 2):
        raise UserError(f"blkid -p {device.name} failed with status {done.returncode}")
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
