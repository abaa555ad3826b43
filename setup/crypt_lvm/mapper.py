# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of device-mapper, LVM and cryptsetup, run so that nothing else of the user's is touched.

LVM is given a private LVM_SYSTEM_DIR and a filter that admits our physical volume only: the user's
lvm.conf, devices file, locks, backups, hints and other disks play no part.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup.devices import check

RUN = Path("/run/desktop-freeze")
SBIN = check.SBIN
KEY_BYTES = 64
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_for_commands: set[int] = set()
# lvm closes what it inherits, the lock too: somebody has to keep that until lvm has ended. Killed
# because lvm does not answer, the keeper takes it along.
KEEPER = ("setsid", "--fork", "--wait", "setpriv", "--pdeathsig", "KILL")
PACKAGES = {
    "cryptsetup": "cryptsetup-bin",
    "dmsetup": "dmsetup",
    "lvm": "lvm2",
    "mke2fs": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
}


def run(*command: str, stdin: bytes = b"", timeout: float = 300) -> str:
    """Run a command and return its stdout; a failure is a UserError with the command's last line.

    In a session of its own, and waited for whatever signal comes: a Ctrl-C meant for us must not
    kill an umount half-way. It takes effect when the command is through.
    """
    shown = " ".join(command[:4])
    keeper = KEEPER if command[0] == "lvm" else ()
    try:
        with uninterrupted():
            done = subprocess.run(
                (*keeper, *command),
                input=stdin,
                capture_output=True,
                env=environment(),
                timeout=timeout,
                start_new_session=True,
                pass_fds=tuple(_for_commands),
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


@contextlib.contextmanager
def inherited(descriptor: int) -> Iterator[None]:
    """Within, commands have this lock, too: it is held until they have ended, if we are killed."""
    _for_commands.add(descriptor)
    try:
        yield
    finally:
        _for_commands.remove(descriptor)


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
    locks = RUN / "lvm/lock"
    locks.mkdir(parents=True, exist_ok=True)
    accept = f'"a|^{_literal(physical)}$|", "r|.*|"'
    udev = int(udev_runs())
    config = (
        f"devices {{ filter=[{accept}] global_filter=[{accept}] use_devicesfile=0"
        ' hints="none" obtain_device_list_from_udev=0 external_device_info_source="none" }'
        f" activation {{ udev_sync={udev} udev_rules={udev} monitoring=0 }}"
        " backup { backup=0 archive=0 } global { use_lvmlockd=0 use_lvmpolld=0 event_activation=0"
        f' locking_dir="{locks}" }}'
    )
    return run("lvm", *command, "--config", config)


def _literal(path: str) -> str:
    """LVM's regular expression for this path alone; in quotes a backslash would be one of those."""
    return re.sub(r"[^\w/:-]", lambda found: f"[{found[0]}]", path)


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


def node(name: str) -> str:
    """The kernel's own node of a mapping that is there."""
    return f"/dev/{mapped()[name]}"


def stands_on(name: str, disk: str, uuid: str) -> bool:
    """Whether a mapping is there and stands, by however many others, on the block device `disk`.

    By the kernel's names: that of a disk that was pulled out is not given away while it is in use.
    uuid: how the mapping's begins, which says who made it.
    """
    kernel_name = mapped().get(name)
    if kernel_name is None or disk not in _below(kernel_name):
        return False
    return _uuid(kernel_name).startswith(uuid)


def _uuid(kernel_name: str) -> str:
    try:
        return Path("/sys/block", kernel_name, "dm/uuid").read_text()
    except OSError:
        return ""


def _below(kernel_name: str) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for below in Path("/sys/block", kernel_name, "slaves").iterdir():
            found |= {below.name, *_below(below.name)}
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
    """Hold back SIGINT, SIGTERM and SIGHUP until a command, or an undo, is through.

    The mask alone would not do: another thread may be chosen, and Python's handler runs in this
    one. Commands inherit it, and are let be by who signals all processes of a service.
    """
    came: list[int] = []

    def let_through() -> None:
        for number in dict.fromkeys(came):
            signal.raise_signal(number)

    with contextlib.ExitStack() as stack:
        stack.callback(let_through)
        # Python's handlers run in the main thread alone.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.signal(number, lambda which, frame: came.append(which))
                stack.callback(signal.signal, number, before)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        yield
