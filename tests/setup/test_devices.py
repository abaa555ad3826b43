# SPDX-License-Identifier: GPL-2.0-or-later
"""A device is what was looked at, whatever its name leads to later; and who uses it is found."""

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from errors import UserError
from setup.crypt_lvm import creation, mapper, ownership
from setup.crypt_lvm.stack import load_state, save_state, state_lock
from setup.devices import loop_devices
from setup.devices.check import check_device
from setup.devices.device import MIB, opened
from tests.setup.test_crypt_lvm import SIZE, looped, loops_on, record, refused, tool

ROOT = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
PRECIOUS = b"precious"


class Stopped(Exception):
    """The building of a stack ends here, as by a signal."""


def file_of(path: Path, data: bytes = b"") -> Path:
    """A file that is large enough, with data at its begin."""
    with open(path, "wb") as handle:
        handle.truncate(SIZE)
        handle.write(data)
    return path


@contextlib.contextmanager
def partition(loop: str, path: Path) -> Iterator[str]:
    """A partition of 1,100 MiB on a loop device on a file or device, or skip."""
    subprocess.run([tool("losetup"), "--partscan", loop, str(path)], check=True)
    try:
        begin, sectors = "2048", str(1074 * MIB // 512)
        done = subprocess.run([tool("addpart"), loop, "1", begin, sectors], capture_output=True)
        node = f"{loop}p1"
        if done.returncode or not Path(node).exists():
            pytest.skip("no partitions of loop devices here")
        yield node
    finally:
        subprocess.run([tool("losetup"), "--detach", loop], check=True)


def free_loop() -> str:
    """The next loop device."""
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    done = subprocess.run([tool("losetup"), "--find"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no loop devices here: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def mounted(device: str, place: Path) -> Iterator[None]:
    """A new ext4 on the device, mounted at place."""
    subprocess.run([tool("mkfs.ext4"), "-q", device], check=True)
    place.mkdir()
    subprocess.run([tool("mount"), device, str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run([tool("umount"), str(place)], check=True)


@contextlib.contextmanager
def opener(path: str, how: str) -> Iterator[int]:
    """Another process that has it open: its pid."""
    code = f"import sys; file = open({path!r}, {how!r}); print('open', flush=True)"
    code += "; sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stdout.readline() == b"open\n"
        yield process.pid
        process.communicate(b"\n")


@pytest.fixture
def building(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], list[str]]:
    """Sets what happens between the look at a device and its use; gives what was built on."""
    built_on: list[str] = []

    def stop(device: str, name: str) -> None:
        built_on.append(device)
        raise Stopped

    def set_meanwhile(meanwhile: Callable[[], None]) -> list[str]:
        def free_prefix() -> str:
            meanwhile()
            return ""

        monkeypatch.setattr(creation, "free_prefix", free_prefix)
        return built_on

    monkeypatch.setattr(mapper, "require_kernel", lambda crypt: None)
    monkeypatch.setattr(mapper, "open_crypt", stop)
    return set_meanwhile


@needs_root
@pytest.mark.parametrize("destroy", [False, True])
def test_a_link_that_leads_elsewhere_meanwhile(
    tmp_path: Path, building: Callable[[Callable[[], None]], list[str]], destroy: bool
) -> None:
    link = tmp_path / "link"
    other_file = file_of(tmp_path / "other.img", PRECIOUS)
    with looped(str(file_of(tmp_path / "own.img"))) as own, looped(str(other_file)) as other:
        link.symlink_to(own)

        def repoint() -> None:
            link.unlink()
            link.symlink_to(other)

        built_on = building(repoint)
        with pytest.raises(Stopped):
            creation.create(str(link), destroy_data=str(link) if destroy else None)
        assert built_on == [own] and link.resolve() == Path(other)
        assert load_state(own) is None and load_state(other) is None
        check_device(own, destroy_data=None)
    assert other_file.read_bytes()[: len(PRECIOUS)] == PRECIOUS


@needs_root
def test_a_file_that_another_takes_the_name_of(
    tmp_path: Path, building: Callable[[Callable[[], None]], list[str]]
) -> None:
    named, kept = file_of(tmp_path / "disk.img"), tmp_path / "kept.img"

    def replace() -> None:
        named.rename(kept)
        file_of(named, PRECIOUS)

    built_on = building(replace)
    with pytest.raises(Stopped):
        creation.create(str(named), destroy_data=str(named))
    assert len(built_on) == 1
    assert named.read_bytes()[: len(PRECIOUS)] == PRECIOUS
    assert kept.stat().st_blocks * 512 >= SIZE  # it was that which was built on
    assert loops_on(str(named)) == [] and loops_on(str(kept)) == []
    assert load_state(str(named)) is None and load_state(str(kept)) is None


@needs_root
def test_nobody_gets_the_device_between_the_look_and_the_use(
    tmp_path: Path, building: Callable[[Callable[[], None]], list[str]]
) -> None:
    with looped(str(file_of(tmp_path / "own.img"))) as own:
        claims: list[int] = []

        def claim() -> None:
            with contextlib.suppress(OSError):
                claims.append(os.open(own, os.O_RDWR | os.O_EXCL))

        building(claim)
        with pytest.raises(Stopped):
            creation.create(own)
        assert claims == []


@needs_root
def test_two_files_of_like_names_are_two_stacks(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    one, other = file_of(tmp_path / "c/d.img"), file_of(tmp_path / "c-d.img")
    with state_lock():
        save_state(record(str(one)))
    assert load_state(str(one)) and load_state(str(other)) is None
    link, twin = tmp_path / "link", tmp_path / "twin"
    link.symlink_to(one)
    twin.hardlink_to(one)
    assert load_state(str(link)) == load_state(str(twin)) == load_state(str(one))
    # What is there now is another file, but of the name there is a stack, and it can be undone.
    one.rename(tmp_path / "moved")
    file_of(one)
    assert load_state(str(one)) == load_state(str(twin))
    ownership.clear_dead(str(one))
    assert load_state(str(one)) is None and load_state(str(twin)) is None


@needs_root
def test_mappings_on_another_disk_are_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with looped(str(file_of(tmp_path / "own.img"))) as own:
        state = record(own)
        volume, swap = "crypt--volume-crypt--logical", "crypt--volume-crypt--swap"
        names = {"crypt-partition": "dm-0", volume: "dm-1", swap: "dm-2"}
        below = {"dm-0": {"loop99"}, "dm-1": {"dm-0", "loop99"}, "dm-2": {"dm-0", "loop99"}}
        ran: list[tuple[str, ...]] = []
        state["stack"] |= {"swapped_to": "/dev/dm-2", "mount": "/somewhere", "vg_uuid": "a-b"}
        monkeypatch.setattr(mapper, "mapped", lambda: names)
        uuids = {"dm-0": "CRYPT-PLAIN-crypt-partition", "dm-1": "LVM-ab1", "dm-2": "LVM-ab2"}
        monkeypatch.setattr(mapper, "_below", lambda name: below[name])
        monkeypatch.setattr(mapper, "_uuid", lambda name: uuids[name])
        monkeypatch.setattr(creation, "_zero", lambda *words: ran.append(("zero", *words[2])))
        for module in ("mapper", "activation", "swaps"):
            monkeypatch.setattr(
                f"setup.crypt_lvm.{module}.run", lambda *words, **_: ran.append(words)
            )
        monkeypatch.setattr("setup.crypt_lvm.swaps.is_on", lambda path: True)
        with state_lock():
            save_state(state)
        ownership.clear_dead(own)
        assert ran == [] and load_state(own) is None
        # On the same disk, but made by somebody else: a LUKS volume, another volume group.
        below |= {name: {Path(own).name} for name in below}
        others = {"dm-0": "CRYPT-LUKS2-1-crypt-partition", "dm-1": "LVM-b1", "dm-2": "LVM-b2"}
        ours, uuids = uuids, others
        with state_lock():
            save_state(state)
        ownership.clear_dead(own)
        assert ran == [] and load_state(own) is None
        uuids = ours
        with state_lock():
            save_state(state)
        monkeypatch.setattr("setup.crypt_lvm.activation._unmount", lambda *_: None)
        ownership.clear_dead(own)
        remove = ("dmsetup", "remove", "--retry")
        assert ran == [
            ("swapoff", "/dev/dm-2"),
            *((*remove, volume), (*remove, swap)),
            ("zero", "crypt-partition"),
            (*remove, "crypt-partition"),
        ]


@needs_root
def test_a_partition_is_mounted_by_a_loop_device_on_its_disk(tmp_path: Path) -> None:
    with partition(free_loop(), file_of(tmp_path / "own.img")) as own:
        disk = own.removesuffix("p1")
        check_device(own, destroy_data=None)
        with partition(free_loop(), Path(disk)) as upper:
            with mounted(upper, tmp_path / "place"):
                refused(own, "disk", "in use by", destroy_data=own)
                refused(disk, "in use by", destroy_data=disk)
            refused(own, "disk", "in use by", destroy_data=own)


@needs_root
def test_what_a_loop_device_stands_on_is_in_use(tmp_path: Path) -> None:
    with looped(str(file_of(tmp_path / "own.img"))) as lower, looped(lower) as upper:
        check_device(upper, destroy_data=None)
        with mounted(lower, tmp_path / "place"):
            refused(upper, lower, f"is mounted on {tmp_path / 'place'}", destroy_data=upper)
    with looped(str(tmp_path / "own.img")) as one, looped(str(tmp_path / "own.img")) as two:
        refused(one, f"in use by {two}", destroy_data=one)
        refused(two, f"in use by {one}", destroy_data=two)


@needs_root
def test_a_loop_device_is_found_by_any_name_of_its_file(tmp_path: Path) -> None:
    first, second = file_of(tmp_path / "first.img"), tmp_path / "second.img"
    second.hardlink_to(first)
    with looped(str(first)) as loop:
        first.unlink()
        refused(str(second), f"in use by {loop}", destroy_data=str(second))
    check_device(str(second), destroy_data=None)


@pytest.mark.parametrize("how", ["r+b", "rb"])
def test_a_file_that_a_process_has_open_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr("setup.devices.use.PATIENCE_S", 0)
    path = str(file_of(tmp_path / "disk.img"))
    with opener(path, how) as pid:
        refused(path, "is open in python", f"(pid {pid})", destroy_data=path)
        # A process of another container is not in our /proc; the kernel knows it.
        monkeypatch.setattr("setup.devices.use._openers", lambda _: iter(()))
        refused(path, "another program has it open", destroy_data=path)
    check_device(path, destroy_data=None)


@needs_root
def test_a_device_that_a_process_has_open_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setup.devices.use.PATIENCE_S", 0)
    path = str(file_of(tmp_path / "disk.img"))
    with looped(path) as loop:
        # Neither has a claim: QEMU opens its disks so.
        for name in (loop, path):
            with opener(name, "r+b") as pid:
                refused(loop, f"(pid {pid})", destroy_data=loop)
        check_device(loop, destroy_data=None)


def test_who_looks_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    path = str(file_of(tmp_path / "disk.img"))
    with opener(path, "rb") as pid:
        os.kill(pid, signal.SIGKILL)
        check_device(path, destroy_data=None)


@needs_root
def test_a_node_without_a_driver_is_refused_in_one_line(tmp_path: Path) -> None:
    node = tmp_path / "node"
    os.mknod(node, stat.S_IFBLK | 0o600, os.makedev(240, 77))
    refused(str(node), "No such device or address")


def test_names_without_links(tmp_path: Path) -> None:
    real, link = file_of(tmp_path / "disk.img"), tmp_path / "link"
    link.symlink_to(real)
    with opened(str(link)) as device:
        assert (device.name, device.path) == (str(link), str(real))
        link.unlink()
        link.symlink_to("/dev/null")
        assert device.path == str(real)
    refused(str(link), "neither a block device nor a plain file")
    link.unlink()
    link.symlink_to(link)
    refused(str(link), "Too many levels of symbolic links")


@needs_root
def test_a_loop_device_that_is_free_is_no_backing(tmp_path: Path) -> None:
    path = file_of(tmp_path / "disk.img")
    announced: list[str] = []
    with open(path, "r+b") as file:
        node = loop_devices.attach(file.fileno(), announced.append)
        assert announced[-1] == node and loops_on(str(path)) == [node]
        loop_devices.detach(node)
    assert loops_on(str(path)) == []
    loop_devices.detach(node)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C as in a terminal, also where these tests are run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_waits_for_the_command(tmp_path: Path) -> None:
    mark = tmp_path / "done"
    # The command itself is among those who get it, and that twice.
    kill = "for pid in 2 * [os.getppid(), os.getpid()]: os.kill(pid, 2)"
    code = f"import os, pathlib, time\n{kill}\ntime.sleep(0.3)\npathlib.Path({str(mark)!r}).touch()"
    with pytest.raises(KeyboardInterrupt):
        mapper.run(sys.executable, "-c", code)
    assert mark.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & set(mapper.SIGNALS)


@pytest.mark.usefixtures("interruptible")
def test_a_signal_to_another_thread_waits_too(tmp_path: Path) -> None:
    mark, over = tmp_path / "done", threading.Event()
    with ThreadPoolExecutor(1) as other:
        other.submit(over.wait)
        try:
            with pytest.raises(KeyboardInterrupt):
                mapper.run("sh", "-c", f"kill -INT {os.getpid()}; sleep 0.3; touch {mark}")
        finally:
            over.set()
    assert mark.exists()


@needs_root
def test_the_lock_is_held_until_a_killed_ones_command_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setup.crypt_lvm.stack.RUN", tmp_path)
    begun, done = tmp_path / "begun", tmp_path / "done"
    os.mkfifo(begun)
    command = f"echo > {begun}; sleep 0.5; touch {done}"
    code = (
        "from pathlib import Path; from setup.crypt_lvm import mapper, stack\n"
        f"stack.RUN = Path({str(tmp_path)!r})\n"
        f"with stack.state_lock():\n    mapper.run('sh', '-c', {command!r})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as process:
        begun.read_text()
        process.kill()
    with state_lock():
        assert done.exists()


@needs_root
def test_the_lock_is_held_although_lvm_closes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, done = tmp_path / "begun", tmp_path / "done"
    os.mkfifo(begun)
    code = f"os.closerange(3, 99); open({str(begun)!r}, 'w').close(); time.sleep(0.5)"
    program = f"#!{sys.executable}\nimport os, time\n{code}\nopen({str(done)!r}, 'w').close()\n"
    (tmp_path / "lvm").write_text(program)
    (tmp_path / "lvm").chmod(0o755)
    monkeypatch.setattr("setup.crypt_lvm.stack.RUN", tmp_path)
    code = (
        "from pathlib import Path; from setup.crypt_lvm import mapper, stack\n"
        f"stack.RUN = Path({str(tmp_path)!r})\nmapper.SBIN = f'{tmp_path}:{{mapper.SBIN}}'\n"
        "with stack.state_lock():\n    mapper.run('lvm', 'pvcreate')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as process:
        begun.read_text()
        process.kill()
    with state_lock():
        assert done.exists()


def test_lvm_that_does_not_answer_ends_with_its_keeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lvm").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "lvm").chmod(0o755)
    monkeypatch.setattr(mapper, "SBIN", f"{tmp_path}:{mapper.SBIN}")
    with pytest.raises(UserError, match="no answer within"):
        mapper.run("lvm", "vgs", timeout=1)


@pytest.mark.parametrize("path", ["/dev/mapper/a+b", "/dev/mapper/a.b", "/dev/x(1)", "/dev/loop3"])
def test_an_lvm_filter_admits_one_path(path: str) -> None:
    pattern = mapper._literal(path)
    others = ["/dev/mapper/aab", "/dev/mapper/ab", "/dev/mapper/axb", "/dev/x1", "/dev/loop33"]
    assert re.fullmatch(pattern, path)
    assert not any(re.fullmatch(pattern, other) for other in others)
