# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of device-mapper, LVM and cryptsetup, run so that nothing else of the user's is touched.

LVM is given a private LVM_SYSTEM_DIR and a filter that admits our physical volume only: the user's
lvm.conf, devices file, backups, hints and other disks play no part.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup import device_check

RUN = Path("/run/desktop-freeze")
SBIN = device_check.SBIN
KEY_BYTES = 64
PACKAGES = {
    "cryptsetup": "cryptsetup-bin",
    "dmsetup": "dmsetup",
    "lvm": "lvm2",
    "mke2fs": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
}


def run(*command: str, stdin: bytes = b"", timeout: float = 300) -> str:
    """Run a command and return its stdout; a failure is a UserError with the command's last line.

    In a session of its own: a Ctrl-C meant for us must not kill an umount half-way.
    """
    shown = " ".join(command[:4])
    try:
        done = subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            env=environment(),
            timeout=timeout,
            start_new_session=True,
        )
    except FileNotFoundError:
        package = PACKAGES.get(command[0], "")
        hint = f"apt-get install {package}" if package else ""
        raise UserError(f"{command[0]} is missing", hint=hint) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{shown}: no answer within {timeout:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
        last = lines[-1].strip() if lines else f"status {done.returncode}"
        raise UserError(f"{shown}: {last}")
    return done.stdout.decode(errors="replace")


def environment() -> dict[str, str]:
    """PATH, C locale, the private LVM folder; DM_DISABLE_UDEV only where no udevd runs."""
    found = {"PATH": SBIN, "LC_ALL": "C", "LVM_SYSTEM_DIR": str(RUN / "lvm")}
    # LVM warns about every descriptor that it did not open itself, the runner's included.
    found["LVM_SUPPRESS_FD_WARNINGS"] = "1"
    if not udev_runs():
        found["DM_DISABLE_UDEV"] = "1"
    return found


def udev_runs() -> bool:
    """True if a udevd listens: its control socket is there."""
    return Path("/run/udev/control").exists()


def lvm(physical: str, *command: str) -> str:
    """Run an LVM command that can see the physical volume only."""
    (RUN / "lvm").mkdir(parents=True, exist_ok=True)
    Path("/run/lock/lvm").mkdir(parents=True, exist_ok=True)
    accept = f'"a|^{physical}$|", "r|.*|"'
    udev = int(udev_runs())
    config = (
        f"devices {{ filter=[{accept}] global_filter=[{accept}] use_devicesfile=0"
        ' hints="none" obtain_device_list_from_udev=0 external_device_info_source="none" }'
        f" activation {{ udev_sync={udev} udev_rules={udev} monitoring=0 }}"
        " backup { backup=0 archive=0 } global { use_lvmlockd=0 use_lvmpolld=0 event_activation=0 }"
    )
    return run("lvm", *command, "--config", config)


def open_crypt(device: str, name: str) -> None:
    """Open a plain dm-crypt mapping over device with a key that exists nowhere but in memory."""
    key = os.urandom(KEY_BYTES)
    run(
        *("cryptsetup", "open", device, name, "--type", "plain", "--batch-mode"),
        *("--cipher", "aes-xts-plain64", "--key-size", str(KEY_BYTES * 8), "--key-file", "-"),
        *("--keyfile-size", str(KEY_BYTES)),
        stdin=key,
    )


def require_kernel(crypt: bool) -> None:
    """Raise a UserError naming the CONFIG_ option if device-mapper or dm-crypt is lacking."""
    modules = ["dm-mod", "loop"] + (["dm-crypt", "xts", "aes"] if crypt else [])
    for module in modules:
        # Built in, loaded already, or absent: only what works afterwards tells.
        with contextlib.suppress(UserError):
            run("modprobe", "-q", module, timeout=30)
    for tool in ("dmsetup", "lvm", *(["cryptsetup"] if crypt else [])):
        if shutil.which(tool, path=SBIN) is None:
            raise UserError(f"{tool} is missing", hint=f"apt-get install {PACKAGES[tool]}")
    try:
        targets = run("dmsetup", "targets")
    except UserError as error:
        raise UserError(
            "this kernel has no device-mapper", hint="CONFIG_BLK_DEV_DM, CONFIG_MD"
        ) from error
    if crypt and not any(line.startswith("crypt ") for line in targets.splitlines()):
        raise UserError("this kernel has no dm-crypt", hint="CONFIG_DM_CRYPT")


def mapped() -> dict[str, str]:
    """Name -> kernel name (dm-0) of each device-mapper device, from /sys/block/dm-*/dm/name."""
    found = {}
    for path in Path("/sys/block").glob("dm-*/dm/name"):
        with contextlib.suppress(OSError):
            found[path.read_text().strip()] = path.parent.parent.name
    return found


def mangled(volume: str, logical: str) -> str:
    """The device-mapper name of a logical volume: dashes doubled, joined by a dash."""
    return f"{volume.replace('-', '--')}-{logical.replace('-', '--')}"


def volume_groups() -> set[str]:
    """Names of the machine's volume groups by the user's own LVM; read only, empty if it fails."""
    env = {"PATH": SBIN, "LC_ALL": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"}
    try:
        done = subprocess.run(
            ["lvm", "vgs", "--readonly", "--noheadings", "-o", "vg_name"],
            capture_output=True,
            env=env,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(done.stdout.decode(errors="replace").split())


def remove(name: str) -> None:
    """Remove a device-mapper device if it is there."""
    if name in mapped():
        run("dmsetup", "remove", "--retry", name, timeout=60)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back SIGINT, SIGTERM and SIGHUP until an undo is through."""
    held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
