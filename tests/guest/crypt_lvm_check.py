# SPDX-License-Identifier: GPL-2.0-or-later
"""Asserts setup.crypt_lvm for real. Run as root inside a guest: `crypt_lvm_check.py BLANK_DISK`.

BLANK_DISK (2 GiB or more) is overwritten. The last line is `ok N checks`; a failure is a traceback.
"""

import contextlib
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from contract.swap import read  # noqa: E402
from errors import Exit, UserError  # noqa: E402
from setup.crypt_lvm import activation, creation, mapper, ownership  # noqa: E402
from setup.crypt_lvm.stack import load, load_state  # noqa: E402
from setup.crypt_lvm.status import status  # noqa: E402
from setup.devices.check import check_device  # noqa: E402
from setup.devices.device import MIB  # noqa: E402
from setup.devices.use import swaps  # noqa: E402

MOUNT = Path("/run/scratch-check")
checks = 0
# Where a process that is to be killed gets stuck: in mkswap of the volume, of the zram device.
MKSWAP = {
    "create": "setup.crypt_lvm.stack_build.run = stuck\n",
    "swap": "setup.crypt_lvm.swaps.run = stuck\n",
}


def check(truth: object, what: str) -> None:
    """Count a check; what it says is shown as it passes."""
    global checks
    assert truth, what
    checks += 1
    print(f"  {checks:3d} {what}", flush=True)


def sh(*command: str) -> str:
    """Run a command that must work."""
    return mapper.run(*command)


def refused(dev: str, *words: str, destroy_data: str | None = None) -> UserError:
    """Check that check_device and create refuse dev in one line that has all the words."""
    caught = []
    for attempt in (
        lambda: check_device(dev, destroy_data=destroy_data),
        lambda: creation.create(dev, destroy_data=destroy_data),
    ):
        try:
            attempt()
        except UserError as error:
            caught.append(error)
    check(len(caught) == 2, f"{dev} is refused, by check_device and by create: {caught}")
    for one in caught:
        text = str(one)
        assert "\n" not in text, text
        assert all(word in text for word in words), (text, words)
    return caught[0]


def nothing_left(*loops: str) -> None:
    """Check that no mapping, loop device, mount, swap, node or record of ours is there."""
    names = [name for name in mapper.mapped() if "crypt" in name]
    check(not names, f"no mapping is left {names}")
    attached = sh("losetup", "--all", "--noheadings", "--output", "NAME").split()
    check(sorted(attached) == sorted(loops), f"no loop device is left {attached}")
    check("crypt" not in Path("/proc/swaps").read_text(), "no swap of ours is left")
    check(str(MOUNT) not in Path("/proc/self/mountinfo").read_text(), "no mount is left")
    check(not mapper.volume_groups(), "no volume group is left")
    check(not MOUNT.exists(), "no mount point is left")
    check(not list(Path("/dev").glob("*crypt-volume")), "no node is left")
    check(not list(mapper.RUN.glob("stack-*")), "no record is left")


def is_empty(dev: str) -> bool:
    """True if check_device finds dev empty."""
    check_device(dev, destroy_data=None)
    return True


def life(dev: str, fs: str, crypt: bool = True) -> None:
    """One whole life of a stack, each step taken twice."""
    print(f"{dev}: {fs}{'' if crypt else ', no crypt'}", flush=True)
    stack = creation.create(dev, fs=fs, crypt=crypt)
    check(creation.create(dev, fs=fs, crypt=crypt) == stack, "create again gives the same stack")
    check(status(dev)["state"] == "created", "status: created")
    check(stack.fs_device == "/dev/crypt-volume/crypt-logical", stack.fs_device)
    check((stack.crypt == "/dev/mapper/crypt-partition") is crypt, f"crypt: {stack.crypt}")
    if crypt:
        table = sh("dmsetup", "table", "crypt-partition")
        check("aes-xts-plain64" in table, "the cipher is aes-xts-plain64")
        key = sh("dmsetup", "table", "--showkeys", "crypt-partition").split()[4]
        check(len(key) == 128 and len(set(key)) > 8, "the key has 512 bits and looks random")
        for path in mapper.RUN.rglob("*"):
            assert not path.is_file() or key not in path.read_text(errors="replace"), path
    activation.activate(stack, MOUNT)
    activation.activate(stack, MOUNT)
    check(status(dev)["state"] == "active", "status: active")
    check(os.path.ismount(MOUNT), "mounted")
    check(f" {fs} " in sh("findmnt", "-no", "SOURCE,FSTYPE,TARGET", str(MOUNT)), f"as {fs}")
    only = [path for path, _priority in swaps()]
    check(len(only) == 1, f"our swap is the only one: {only}")
    (MOUNT / "file").write_bytes(os.urandom(MIB))
    refused_text = str(error_of(lambda: check_device(dev, destroy_data=dev)))
    check(" is held by " in refused_text or " is in use by " in refused_text, refused_text)
    activation.deactivate(stack)
    activation.deactivate(stack)
    check(not os.path.ismount(MOUNT), "unmounted")
    activation.activate(stack, MOUNT)
    check((MOUNT / "file").stat().st_size == MIB, "what was written is there after activate again")
    creation.destroy(stack)
    creation.destroy(stack)
    check(is_empty(dev), "the device is empty again")


def error_of(attempt: object) -> UserError:
    """The UserError that attempt() raises."""
    try:
        attempt()  # type: ignore[operator]
    except UserError as error:
        return error
    raise AssertionError("no UserError")


@contextlib.contextmanager
def other_swap(priority: int | None) -> Iterator[str]:
    """Another swap that is on: a loop file on tmpfs cannot swap, so a loop device on it."""
    path = Path("/tmp/other.swap")
    with open(path, "wb") as handle:
        handle.truncate(32 * MIB)
    loop = sh("losetup", "--find", "--show", str(path)).strip()
    sh("mkswap", loop)
    sh("swapon", *(["-p", str(priority)] if priority is not None else []), loop)
    try:
        yield loop
    finally:
        with contextlib.suppress(UserError):
            sh("swapoff", loop)
        sh("losetup", "--detach", loop)
        path.unlink()


def refusals(dev: str, small: str, large: str) -> None:
    """Every refused case on the real thing. large: a file for whose blocks there is no room."""
    print("refusals", flush=True)
    error = error_of(lambda: creation.create(large))
    check("No space left" in str(error) and "all of its blocks" in str(error), str(error))
    nothing_left()
    refused("/dev/no-such-disk", "/dev/no-such-disk", "No such file")
    refused("/dev/null", "neither a block device nor a plain file")
    refused(small, "too small", "MiB")
    sh("mke2fs", "-q", "-F", "-t", "ext4", "-L", "precious", dev)
    refused(dev, "an ext4 file system labelled precious", f"--destroy-data {dev}")
    error = refused(dev, "--destroy-data names /dev/vdz", destroy_data="/dev/vdz")
    check(error.status == Exit.USAGE, "a mismatch is a usage error")
    MOUNT.mkdir()
    sh("mount", dev, str(MOUNT))
    refused(dev, f"mounted on {MOUNT}")
    refused(dev, f"mounted on {MOUNT}", destroy_data=dev)
    sh("umount", str(MOUNT))
    MOUNT.rmdir()
    stack = creation.create(dev, destroy_data=dev)
    check(status(dev)["state"] == "created", "--destroy-data spelled again overrides")
    creation.destroy(stack)
    sh("mkswap", dev)
    refused(dev, "a swap area")
    sh("swapon", dev)
    refused(dev, "in use as swap", destroy_data=dev)
    sh("swapoff", dev)
    sh("wipefs", "--all", dev)
    # By hand: the guest has no sfdisk. One Linux partition of 1,200 MiB that begins at 1 MiB.
    entry = struct.pack("<B3sB3sII", 0, bytes(3), 0x83, bytes(3), 2048, 1200 * MIB // 512)
    with open(dev, "r+b") as handle:
        handle.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    sh("blockdev", "--rereadpt", dev)
    refused(dev, "a partition table (dos)")
    partition = f"{dev}1"
    sh("mkswap", partition)
    sh("swapon", partition)
    refused(dev, f"partition {Path(partition).name} is in use as swap", destroy_data=dev)
    sh("swapoff", partition)
    creation.destroy(creation.create(dev, destroy_data=dev))
    check(is_empty(dev), "a partition table goes with --destroy-data")
    with open(dev, "r+b") as handle:
        handle.seek(-5000, os.SEEK_END)
        handle.write(b"x")
    refused(dev, "not empty", "last MiB")
    with open(dev, "r+b") as handle:
        handle.seek(-5000, os.SEEK_END)
        handle.write(b"\0")
    descriptor = os.open(dev, os.O_RDWR | os.O_EXCL)
    refused(dev, "exclusively")
    os.close(descriptor)
    sh("blockdev", "--setro", dev)
    refused(dev, "read-only")
    sh("blockdev", "--setrw", dev)
    check(is_empty(dev), "and in the end the device is found empty")


def other_swaps(dev: str) -> None:
    """Other swap is off in the middle, and back with its priority on every way out."""
    print("other swap", flush=True)
    with other_swap(7):
        before = swaps()
        with ownership.prepared(dev, mount=MOUNT) as stack:
            check(len(swaps()) == 1, "only our swap is on")
            check(stack.mount == str(MOUNT), "prepared says where it is mounted")
        check(swaps() == before, f"restored: {before}")
    with other_swap(None):
        before = swaps()
        try:
            with ownership.prepared(dev, mount=MOUNT):
                raise SystemExit(15)
        except SystemExit:
            check(swaps() == before, "restored after an exception")
        check(is_empty(dev), "empty after an exception")


def failures(dev: str) -> None:
    """A step that fails undoes the steps before it; a killed process is undone by the next."""
    print("failures", flush=True)
    with other_swap(3):
        before = swaps()
        loops = sh("losetup", "--all", "--noheadings", "--output", "NAME").split()
        for tool in ("mkswap", "swapon"):
            with broken(tool):
                error = error_of(lambda: ownership.prepared(dev, mount=MOUNT).__enter__())
            check(f"{tool}" in str(error) and "broken on purpose" in str(error), str(error))
            nothing_left(*loops)
            check(swaps() == before and is_empty(dev), f"all undone after {tool} failed")
        killed(dev, "create")
        check(load_state(dev), "a record outlives SIGKILL in create")
        stack = load(dev)
        assert stack
        creation.destroy(stack)
        nothing_left(*loops)
        check(swaps() == before and is_empty(dev), "destroy undoes a killed create")
        killed(dev, "activate")
        check(load_state(dev), "a record outlives SIGKILL in activate")
        with ownership.prepared(dev, mount=MOUNT):
            check(len(swaps()) == 1, "prepared takes over what a killed run left")
        check(swaps() == before, "and the swap that the killed run turned off is on again")


def killed_anywhere(dev: str) -> None:
    """SIGKILL while any of a stack's commands runs, up or down: what it leaves is undone."""
    print("killed anywhere", flush=True)
    with other_swap(3):
        before = swaps()
        loops = sh("losetup", "--all", "--noheadings", "--output", "NAME").split()
        number = 0
        while command := killed_in(dev, number):
            ownership.clear_dead(dev)
            nothing_left(*loops)
            check(swaps() == before, f"swap is as before SIGKILL in {command}")
            check(is_empty(dev), "and the device is empty")
            number += 1
        check(number > 12, f"{number} commands")


def killed_in(dev: str, number: int) -> str:
    """A child that prepares dev dies while its number-th command runs: which; "" if it has less."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        mapper.require_kernel = lambda crypt: None
        left = iter(range(number, -1, -1))

        class Deadly(subprocess.Popen):  # type: ignore[type-arg]
            def __init__(self, command: list[str], **options: object) -> None:
                super().__init__(command, **options)  # type: ignore[call-overload]
                if next(left, None) == 0:
                    kept = command[0] == mapper.KEEPER[0]
                    words = command[len(mapper.KEEPER) :] if kept else command
                    os.write(into, " ".join(words[:2]).encode())
                    os.kill(os.getpid(), signal.SIGKILL)

        subprocess.Popen = Deadly  # type: ignore[assignment, misc]
        with contextlib.suppress(BaseException), ownership.prepared(dev, fs="xfs", mount=MOUNT):
            pass
        os._exit(0)
    os.close(into)
    with open(out) as said:
        command = said.read()
    os.waitpid(child, 0)
    return command


def users(dev: str) -> None:
    """Who stands on the device is named, by its name or by its signature, whatever is said."""
    print("users", flush=True)
    sectors = int(Path("/sys/class/block", Path(dev).name, "size").read_text())
    mapper.run("dmsetup", "create", "user", stdin=f"0 {sectors} linear {dev} 0\n".encode())
    refused(dev, "is held by", "(user)", destroy_data=dev)
    loop = sh("losetup", "--find", "--show", "/dev/mapper/user").strip()
    refused("/dev/mapper/user", f"in use by {loop}", destroy_data="/dev/mapper/user")
    sh("losetup", "--detach", loop)
    sh("dmsetup", "remove", "user")
    luks = ("--type", "luks2", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
    mapper.run("cryptsetup", "luksFormat", "--batch-mode", *luks, dev, "-", stdin=b"key")
    refused(dev, "a crypto_LUKS encrypted volume")
    mapper.run("cryptsetup", "open", "--key-file", "-", dev, "user", stdin=b"key")
    refused(dev, "is held by", "(user)", destroy_data=dev)
    sh("cryptsetup", "close", "user")
    creation.destroy(creation.create(dev, destroy_data=dev))
    check(is_empty(dev), "a closed LUKS volume goes with --destroy-data")


@contextlib.contextmanager
def broken(tool: str) -> Iterator[None]:
    """In the place of a tool stands a program that fails."""
    folder = Path("/tmp/broken")
    folder.mkdir(exist_ok=True)
    path = folder / tool
    path.write_text("#!/bin/sh\necho some noise >&2\necho broken on purpose >&2\nexit 1\n")
    path.chmod(0o755)
    kept = mapper.SBIN
    mapper.SBIN = f"{folder}:{kept}"
    try:
        yield
    finally:
        mapper.SBIN = kept
        path.unlink()


def killed(dev: str, stage: str, kind: str = "disk") -> None:
    """A process of its own prepares dev and is killed by SIGKILL in the given stage."""
    program = (
        "import sys, time; from pathlib import Path\n"
        "from setup.crypt_lvm import mapper, ownership\n"
        "from contract import swap; import setup.crypt_lvm.stack_build, setup.crypt_lvm.swaps\n"
        "real = mapper.run\n"
        "def stuck(*c, **k):\n    if c[0] == 'mkswap':\n"
        "        print('here', flush=True); time.sleep(600)\n    return real(*c, **k)\n"
        f"{MKSWAP.get(stage, '')}"
        f"mount, asked = Path({str(MOUNT)!r}), swap.read({kind!r})\n"
        f"with ownership.prepared({dev!r}, mount=mount, swap=asked):\n"
        "    print('here', flush=True); time.sleep(600)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline() == b"here\n"
    if stage == "activate":
        error = error_of(lambda: ownership.prepared(dev, mount=MOUNT).__enter__())
        check(f"pid {child.pid}" in str(error), f"a second run is refused: {error}")
    child.send_signal(signal.SIGKILL)
    child.wait()


def zrams() -> list[str]:
    """The zram devices; the module makes one of its own."""
    return sorted(path.name for path in Path("/sys/block").glob("zram*"))


def zswap() -> dict[str, str]:
    """zswap's parameters, if this kernel has it."""
    folder = Path("/sys/module/zswap/parameters")
    return {path.name: path.read_text().strip() for path in folder.glob("*")}


def kinds_of_swap(dev: str) -> None:
    """Other swap than the disk's: only it is on, and on every way out all is as it was."""
    print("kinds of swap", flush=True)
    there, parameters = zrams(), zswap()
    check(there, f"the user has zram devices: {there}")

    def as_before(why: str) -> None:
        check(swaps() == before and zrams() == there and zswap() == parameters, f"undone {why}")

    with other_swap(5):
        before = swaps()
        loops = sh("losetup", "--all", "--noheadings", "--output", "NAME").split()
        for kind, size in (("zram,size=64M", 64), ("zram", 0), ("none", None)):
            with ownership.prepared(dev, mount=MOUNT, swap=read(kind)) as stack:
                only = [path for path, _priority in swaps()]
                check(only == ([] if size is None else [stack.swapped_to]), f"{kind}: {only}")
                check(status(dev)["state"] == "active", "status: active")
                if size is not None:
                    check(Path(stack.swapped_to).name not in there, f"on {stack.swapped_to}")
                    error = error_of(lambda stack=stack: activation.activate(stack, MOUNT))
                    check("deactivate first" in str(error), str(error))
                if size:
                    disk = Path("/sys/block") / Path(only[0]).name / "disksize"
                    check(int(disk.read_text()) == size * MIB, "of the size asked for")
            as_before(kind)
        for stage in ("swap", "activate"):
            killed(dev, stage, "zram,size=64M")
            check(len(zrams()) == len(there) + 1, f"{zrams()} after SIGKILL in {stage}")
            left = load(dev)
            assert left
            creation.destroy(left)
            nothing_left(*loops)
            as_before(f"after SIGKILL in {stage}")
        asked = read("zswap,pool=30")
        if parameters:
            with ownership.prepared(dev, mount=MOUNT, swap=asked) as stack:
                changed = {"enabled": "Y", "max_pool_percent": "30"}
                check(zswap() == parameters | changed, f"zswap: {zswap()}")
                check(swaps()[0][0].startswith("/dev/"), "the volume is swapped to")
            as_before("zswap")
            killed(dev, "activate", str(asked))
            ownership.clear_dead(dev)
            as_before("zswap after SIGKILL")
        else:
            error = error_of(lambda: ownership.prepared(dev, mount=MOUNT, swap=asked).__enter__())
            check("this kernel has no zswap" in str(error), str(error))
        nothing_left(*loops)


def names_taken(dev: str) -> None:
    """A name that is taken by the user: an own prefix for all."""
    print("names taken", flush=True)
    mapper.run("dmsetup", "create", "crypt-partition", stdin=b"0 8 error\n")
    stack = creation.create(dev)
    check(stack.prefix == "desktop-freeze-1-", f"prefix: {stack.prefix}")
    check(stack.vg == "desktop-freeze-1-crypt-volume", stack.vg)
    activation.activate(stack, MOUNT)
    creation.destroy(stack)
    check("crypt-partition" in mapper.mapped(), "the user's own mapping is still there")
    sh("dmsetup", "remove", "crypt-partition")


def commands(dev: str) -> None:
    """The command line."""
    print("commands", flush=True)

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "setup.crypt_lvm", *words]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True)

    for word, state in (
        *(("status", "none"), ("create", "created"), ("activate", "active")),
        *(("deactivate", "created"), ("destroy", "none"), ("destroy", "none")),
    ):
        done = command(word, dev, "--mount", str(MOUNT), "--swap-size", "600M")
        assert done.returncode == 0, done.stderr
        check(json.loads(done.stdout)["state"] == state, f"{word}: {state}")
    done = command("activate", dev)
    check(done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr.strip())
    done = command("create", dev, "--destroy-data", "/dev/other")
    check(done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr.strip())


def lap(began: float) -> None:
    """Say how long it took up to here."""
    print(f"{time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """All checks, on argv[1]."""
    dev, began = sys.argv[1], time.monotonic()
    large = Path("/tmp/large.img")
    small = Path("/tmp/small.img")
    with open(small, "wb") as handle:
        handle.truncate(300 * MIB)
    nothing_left()
    commands(dev)
    lap(began)
    for fs, crypt in (("ext4", True), ("xfs", False), ("ext2", True)):
        life(dev, fs, crypt)
        nothing_left()
    lap(began)
    with open(large, "wb") as handle:
        handle.truncate(1100 * MIB)
    refusals(dev, str(small), str(large))
    large.unlink()
    lap(began)
    users(dev)
    nothing_left()
    lap(began)
    names_taken(dev)
    nothing_left()
    lap(began)
    other_swaps(dev)
    lap(began)
    failures(dev)
    nothing_left()
    lap(began)
    killed_anywhere(dev)
    nothing_left()
    lap(began)
    kinds_of_swap(dev)
    lap(began)
    print(f"ok {checks} checks")


if __name__ == "__main__":
    main()
