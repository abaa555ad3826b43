# SPDX-License-Identifier: GPL-2.0-or-later
"""Which clock a guest gets, and what is said where it cannot be the one that was asked for."""

import os
from pathlib import Path

import pytest

from errors import Exit, UserError
from run import clock
from run.arguments import parse
from run.dry_run import lines
from run.preparation import chosen_accelerator
from vm import disk_model, probe
from vm.disk_spec import DiskModel
from vm.emulator import Emulator
from vm.qemu import GUEST, HOST

NOT_KVM = "for a guest's clock; --accel kvm asks for KVM"


@pytest.mark.parametrize(
    ("argv", "accel", "said"),
    [
        ([], "kvm", "only an emulated guest"),
        (["--machine", "host"], "tcg", "how fast its CPU is"),
        (["--cpus", "2"], "tcg", "needs one CPU, not 2"),
        (
            ["--machine", "host", "--cpus", "1", "--cpu-mips", "500", "--disk-iops", "9"],
            "tcg",
            "model",
        ),
        (["--music", "rsync://else.example/songs"], "tcg", "another machine"),
    ],
)
def test_where_a_guest_cannot_have_its_own(argv: list[str], accel: str, said: str) -> None:
    found = clock.timing(parse(argv), accel)
    assert found.clock == HOST and said in found.why
    # The disk is the same one there.
    assert (found.disk is None) == ("host" in argv) == (found.library is None)
    with pytest.raises(UserError, match=said):
        clock.timing(parse([*argv, "--clock", "guest"]), accel)


def test_an_emulated_laptop_has_its_own() -> None:
    found = clock.timing(parse([]), "tcg")
    assert found.clock == GUEST and found.library is not None
    assert found.disk == DiskModel(True, 57, 58_000_000, 1, 32, 1)
    asked = clock.timing(parse(["--clock", "host"]), "tcg")
    assert (asked.clock, asked.why) == (HOST, "asked for")
    assert (asked.disk, asked.library) == (found.disk, found.library)


def test_a_limit_without_a_machine_is_no_model() -> None:
    assert clock.modelled(parse(["--machine", "host", "--disk-iops", "150"])) is None


def _without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def library(qemu: Emulator) -> Path:
        raise disk_model.Unusable("no io_uring")

    monkeypatch.setattr(disk_model, "library", library)


def test_a_qemu_that_does_not_run_is_said() -> None:
    with pytest.raises(UserError, match="/nonesuch/qemu does not run: No such file"):
        clock.timing(parse(["--qemu", "/nonesuch/qemu"]), "tcg")


def test_without_the_library_the_clock_is_the_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_library(monkeypatch)
    found = clock.timing(parse([]), "tcg")
    assert (found.clock, found.disk, found.library) == (HOST, None, None)
    assert found.why == "no io_uring"
    with pytest.raises(UserError, match="--clock guest: no io_uring"):
        clock.timing(parse(["--clock", "guest"]), "tcg")


def test_what_cannot_be_is_said_before_anything_is_made() -> None:
    assert (
        clock.expected_clock(parse([])) == GUEST
        and clock.expected_clock(parse(["--clock", "host"])) == HOST
    )
    assert clock.expected_clock(parse(["--accel", "kvm"])) == HOST
    with pytest.raises(UserError, match="--clock guest: only an emulated") as error:
        clock.expected_clock(parse(["--clock", "guest", "--accel", "kvm"]))
    assert error.value.status == Exit.USAGE


@pytest.mark.parametrize(
    ("argv", "asked"),
    [
        ([], None),
        (["--machine", "ssd", "--clock", "guest"], None),
        (["--accel", "tcg", "--machine", "host"], None),
        (["--machine", "host"], "auto"),
        (["--cpus", "2"], "auto"),
        (["--clock", "host"], "auto"),
        (["--accel", "kvm"], "kvm"),
    ],
)
def test_kvm_is_tried_only_where_it_would_be_used(
    argv: list[str], asked: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def choose(qemu: Emulator, asked: str, kernel: Path, initrd: Path) -> tuple[str, str]:
        tried.append(asked)
        return "kvm", "it works"

    monkeypatch.setattr(probe, "choose", choose)
    accel, why = chosen_accelerator(parse(argv), Path("/none"), Path("/none"))
    assert tried == ([asked] if asked else [])
    assert accel == ("kvm" if asked else "tcg")
    assert why == ("it works" if asked else "asked for" if "tcg" in argv else NOT_KVM)


def test_a_disk_that_cannot_be_modelled_leaves_kvm(monkeypatch: pytest.MonkeyPatch) -> None:
    _without_library(monkeypatch)
    assert clock.accelerator(parse([])) == ("auto", "")
    with pytest.raises(UserError, match="--clock guest: no io_uring"):
        clock.accelerator(parse(["--clock", "guest"]))


def test_no_more_at_once_than_there_is_memory_for() -> None:
    cores = len(os.sched_getaffinity(0))
    assert 1 <= clock.at_once(parse([]), GUEST) <= cores
    assert clock.at_once(parse(["--memory", "100000G"]), GUEST) == 1
    assert clock.at_once(parse(["--jobs", "9"]), GUEST) == 9
    assert clock.at_once(parse(["--jobs", "9"]), HOST) == 1


def test_a_dry_run_says_what_the_clock_depends_on() -> None:
    def vm(*argv: str) -> str:
        said = [line for line in lines(parse(list(argv))) if line.startswith("VM: ")]
        return said[0].rpartition("; on ")[2]

    takes = "QEMU takes the disk model"
    assert vm() == vm("--accel", "tcg") == f"the guest's clock if {takes}, else on the host's"
    assert "accelerator: tcg, for the guest's clock (--accel kvm asks for KVM)" in lines(parse([]))
    kvm = "accelerator: auto (KVM if a kernel boots under it here, else TCG)"
    assert kvm in lines(parse(["--machine", "host"]))
    assert vm("--clock", "guest") == f"the guest's clock; refused unless {takes}"
    assert vm("--machine", "host") == "the host's clock"
    throttled = f"the disk by QEMU's throttle unless {takes}"
    assert "\n".join(lines(parse(["--clock", "host"]))).count(f"clock; {throttled}\n") == 1


def test_a_dry_run_counts() -> None:
    said = "\n".join(lines(parse(["--jobs", "2"])))
    assert ", 1 CPU of 500 MIPS" in said and "(1 variant, up to 1 each)" in said
    assert ", 2 at a time (1 on the host's clock), " in said
    more = "\n".join(lines(parse(["--machine", "host", "--swap", "none", "--swap", "disk"])))
    assert ", 2 CPUs, " in more and "(2 variants, " in more and ", 1 at a time, " in more
