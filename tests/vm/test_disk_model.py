# SPDX-License-Identifier: GPL-2.0-or-later
"""The library of the disk model: that it is made and taken, and what is said if it is not.

What the disk then does, by the guest's clock, is in tests/in_vm/test_clock_in_vm.py.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import other_qemu
from tests.support.caches import with_tools
from vm import disk_model
from vm.disk_model import Unusable
from vm.disk_spec import DiskModel, complaints, environment, served
from vm.emulator import Emulator, find

LAPTOP = DiskModel(True, 57, 58_000_000, 1, 32, 1)
WORDS = "1 2 1 1 32 10 5"
SIXTEEN = ";".join([WORDS] * 16)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with_tools(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture(scope="module")
def library() -> Path:
    """The machine's own, made once for all."""
    return disk_model.library(find())


def test_it_is_made_once(cache: Path) -> None:
    made = disk_model.library(find())
    assert made.is_file() and cache in made.parents
    before = made.stat().st_mtime_ns
    assert disk_model.library(find()) == made and made.stat().st_mtime_ns == before


def test_nothing_that_the_user_has_preloaded_is_in_the_suites_qemu(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library of the host's may need what the suite's own libraries do not have."""
    source, users = tmp_path / "users.c", tmp_path / "users.so"
    ends = "#include <unistd.h>\n__attribute__((constructor)) static void end(void) {_exit(3);}\n"
    source.write_text(ends)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", users, source], check=True)
    made = disk_model.library(find())
    monkeypatch.setenv("LD_PRELOAD", str(users))
    assert "LD_PRELOAD" not in find().environment(made)
    assert Emulator("/qemu", "0").environment(made)["LD_PRELOAD"] == f"{made}:{users}"


def test_what_it_is_told(tmp_path: Path) -> None:
    with open(tmp_path / "disk", "wb") as disk:
        words = environment([(LAPTOP, disk.fileno())])["DISK_MODEL"].split()
        found = os.fstat(disk.fileno())
    assert words[:5] == [str(found.st_dev), str(found.st_ino), "1", "1", "32"]
    assert int(words[5]) == pytest.approx(1e9 / 57, rel=1e-6) and words[6] == "58000000"


def test_several_disks_are_told_apart(tmp_path: Path) -> None:
    flash = DiskModel(False, 5500, 250_000_000, 2, 32, 1)
    with open(tmp_path / "a", "wb") as one, open(tmp_path / "b", "wb") as other:
        both = environment([(LAPTOP, one.fileno()), (flash, other.fileno())])["DISK_MODEL"]
        assert both.split(";") == [LAPTOP.words(one.fileno()), flash.words(other.fileno())]
    assert environment([]) == {}


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        (WORDS, True),
        (f"{WORDS};9 9 0 4 8 10 5e6", True),
        (SIXTEEN, True),
        (f"{SIXTEEN};{WORDS}", False),
        (f"{WORDS};", False),
        (f"{WORDS} 7", False),
        ("1 2 0 0 32 10 5", False),
        ("1 2 0 1 0 10 5", False),
        ("", False),
    ],
)
def test_what_the_library_takes(library: Path, told: str, taken: bool) -> None:
    """Without a guest: QEMU ends at once, with or without a word on it."""
    env = {**find().environment(library), "DISK_MODEL": told, "DISK_MODEL_SAY": "1"}
    command = [*find().command(library), "--version"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.returncode == 0) == taken
    said = "disk model: on" if taken else f"disk model: cannot read DISK_MODEL={told}"
    assert said in done.stderr


def test_no_compiler_is_said_in_a_line(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_model, "COMPILE", ("/nonesuch/gcc",))
    said = r"compiling the disk model failed: .*/nonesuch/gcc: No such"
    with pytest.raises(Unusable, match=said) as error:
        disk_model.library(find())
    assert "\n" not in str(error.value)
    assert not list((cache / "desktop-freeze" / "disk-model").iterdir())


def test_source_that_does_not_compile_is_said(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "sources" / "broken.c"
    broken.parent.mkdir()
    broken.write_text("int io_uring_submit(void) { return nothing; }\n")
    monkeypatch.setattr(disk_model, "SOURCES", broken.parent)
    with pytest.raises(Unusable, match=r"compiling the disk model failed: .*error: .*nothing"):
        disk_model.library(find())


def test_a_library_that_is_missing_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_model, "LIBRARIES", ("-lnonesuch", "-lpthread"))
    with pytest.raises(Unusable, match="cannot find -lnonesuch"):
        disk_model.library(find())


def test_a_qemu_without_timers_does_not_take_it(cache: Path, tmp_path: Path) -> None:
    """Another program by that name exports none of what the model needs."""
    other = tmp_path / "qemu-that-is-none"
    shutil.copy("/bin/sleep", other)
    made = disk_model.library(find())
    with open(tmp_path / "disk", "wb") as disk:
        told = environment([(LAPTOP, disk.fileno())]) | {"LD_PRELOAD": str(made)}
    done = subprocess.run([other, "0"], env={**os.environ, **told}, capture_output=True, text=True)
    assert done.returncode == 1 and "this QEMU exports no timers" in done.stderr
    with pytest.raises(Unusable, match="QEMU does not work with the disk model"):
        disk_model.library(Emulator(str(other), "0"))


def test_a_qemu_whose_requests_pass_the_library_by_is_told(cache: Path, tmp_path: Path) -> None:
    """It loads the library and runs the guest, but submits to the kernel in a way of its own."""
    other = other_qemu.write(tmp_path / "qemu-other-way")
    with pytest.raises(Unusable, match=other_qemu.NONE_CAME):
        disk_model.library(Emulator(other, "0"))


@pytest.mark.parametrize("text", ["", "disk model: on\nqemu: terminating on signal 15\n"])
def test_a_qemu_that_was_killed_has_counted_nothing(text: str) -> None:
    assert served(text) is None


def test_the_counts_of_the_end_are_read() -> None:
    line = "disk model: held 12, done in their time 11, taken for their age 3"
    assert served(f"disk model: on\n{line}\n") == (12, 11, 3)
    assert complaints(f"disk model: on\n{line}\n") == []


def test_what_qemu_says_of_its_end_is_not_the_librarys_greeting() -> None:
    text = "disk model: on\nqemu: warning\ndisk model: io_uring: No space left on device\n"
    assert complaints(text) == ["qemu: warning", "disk model: io_uring: No space left on device"]
