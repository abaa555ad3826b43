# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs commands of device-mapper, LVM and cryptsetup without touching anything else of the user.

LVM gets a private LVM_SYSTEM_DIR and a filter that admits only our physical volume: it uses neither
the user's lvm.conf, devices file, locks, backups and hints, nor any other disk.
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
# lvm closes all descriptors that it inherits, including the lock's: this process keeps the lock
# until lvm has ended. If it is killed because lvm does not answer, lvm is killed, too.
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

    timeout: seconds. The command runs in its own session and is awaited whatever signal comes: a
    Ctrl-C must not kill an umount half-way. The signal takes effect after the command's end.
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
    """Let commands inherit this lock: if we are killed, it is held until they have ended."""
    _for_commands.add(descriptor)
    try:
        yield
    finally:
        _for_commands.remove(descriptor)


def environment() -> dict[str, str]:
    """The environment: PATH, C locale, private LVM folder, DM_DISABLE_UDEV without udevd."""
    variables = {"PATH": SBIN, "LC_ALL": "C", "LVM_SYSTEM_DIR": str(RUN / "lvm")}
    # LVM warns about every descriptor that it did not open itself, the runner's included.
    variables["LVM_SUPPRESS_FD_WARNINGS"] = "1"
    if not udev_runs():
        variables["DM_DISABLE_UDEV"] = "1"
    return variables


def udev_runs() -> bool:
    """Whether a udevd listens: its control socket exists."""
    return Path("/run/udev/control").exists()


def lvm(physical: str, *command: str) -> str:
    """Run an LVM command that sees only this physical volume."""
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
    """LVM's regular expression for exactly this path; backslashes do not work inside its quotes."""
    return re.sub(r"[^\w/:-]", lambda match: f"[{match[0]}]", path)


def open_crypt(device: str, name: str) -> None:
    """Open a plain dm-crypt mapping on device with a key that exists only in memory."""
    key = os.urandom(KEY_BYTES)
    run(
        *("cryptsetup", "open", device, name, "--type", "plain", "--batch-mode"),
        *("--cipher", "aes-xts-plain64", "--key-size", str(KEY_BYTES * 8), "--key-file", "-"),
        *("--keyfile-size", str(KEY_BYTES)),
        stdin=key,
    )


def require_kernel(crypt: bool) -> None:
    """UserError that names the CONFIG_ option if the kernel lacks device-mapper or dm-crypt."""
    modules = ["dm-mod", "loop"] + (["dm-crypt", "xts", "aes"] if crypt else [])
    for module in modules:
        # It may be built in, loaded already, or absent: only a later use shows whether it works.
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
    names = {}
    for path in Path("/sys/block").glob("dm-*/dm/name"):
        with contextlib.suppress(OSError):
            names[path.read_text().strip()] = path.parent.parent.name
    return names


def node(name: str) -> str:
    """The kernel's own node of an existing mapping."""
    return f"/dev/{mapped()[name]}"


def stands_on(name: str, disk: str, uuid: str) -> bool:
    """Whether a mapping exists and is based, directly or by others, on the block device `disk`.

    Both have the kernel's names: a removed disk's name is not reused while the disk is in use.
    uuid: the prefix of the mapping's uuid, which shows who made it.
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
    names = set()
    with contextlib.suppress(OSError):
        for below in Path("/sys/block", kernel_name, "slaves").iterdir():
            names |= {below.name, *_below(below.name)}
    return names


def mangled(volume: str, logical: str) -> str:
    """The device-mapper name of a logical volume: dashes are doubled, a dash joins both parts."""
    return f"{volume.replace('-', '--')}-{logical.replace('-', '--')}"


def volume_groups() -> set[str]:
    """The machine's volume groups according to the user's own LVM; empty if that fails.

    Read only.
    """
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
    """Remove a device-mapper device if it exists."""
    if name in mapped():
        run("dmsetup", "remove", "--retry", name, timeout=60)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay SIGINT, SIGTERM and SIGHUP until a command or an undo is complete.

    The signal mask alone is not enough: the kernel may choose another thread, and Python's handler
    runs in this one. Commands inherit the mask, so that a signal to all processes of a service
    does not end them.
    """
    came: list[int] = []

    def let_through() -> None:
        for number in dict.fromkeys(came):
            signal.raise_signal(number)

    with contextlib.ExitStack() as stack:
        stack.callback(let_through)
        # Python's handlers run only in the main thread.
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                before = signal.signal(number, lambda which, frame: came.append(which))
                stack.callback(signal.signal, number, before)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        stack.callback(signal.pthread_sigmask, signal.SIG_SETMASK, mask)
        yield
