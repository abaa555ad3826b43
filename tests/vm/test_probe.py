# SPDX-License-Identifier: GPL-2.0-or-later
"""How long a verdict on KVM holds."""

import os
import time
from pathlib import Path

import pytest

from errors import UserError
from setup import cache
from vm import probe
from vm.emulator import Emulator

NONE = Path("/none")


class Host:
    """A machine with a /dev/kvm that opens; `kvm` says whether kernels boot under it."""

    def __init__(self) -> None:
        self.kvm = False
        self.boots: list[str] = []
        self.deadlines: set[float] = set()

    def try_to_boot(
        self, qemu: Emulator, accel: str, kernel: Path, initrd: Path, within_s: float
    ) -> bool:
        self.boots.append(accel)
        self.deadlines.add(within_s)
        return accel == "tcg" or self.kvm

    def choose(self, asked: str) -> str:
        return probe.choose(Emulator("qemu", "7.2"), asked, NONE, NONE)[0]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(probe, "boots", made.try_to_boot)
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    return made


def age(hours: float) -> None:
    (verdict,) = (cache.place() / "probe").glob("*.json")
    then = time.time() - 3600 * hours
    os.utime(verdict, (then, then))


def test_a_no_holds_for_a_day(host: Host) -> None:
    assert host.choose("auto") == "tcg"
    age(hours=23)
    assert host.choose("auto") == "tcg"
    assert host.boots == ["kvm", "tcg"]
    age(hours=25)
    host.kvm = True
    assert host.choose("auto") == "kvm"
    assert host.boots == ["kvm", "tcg", "kvm"]


def test_a_no_of_the_future_does_not_hold(host: Host) -> None:
    """The clock was set back since: it would hold until then."""
    assert host.choose("auto") == "tcg"
    age(hours=-1)
    host.kvm = True
    assert host.choose("auto") == "kvm"


def test_a_verdict_that_is_damaged_is_found_out_again(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.kvm = True
    assert host.choose("auto") == "kvm"
    (verdict,) = (cache.place() / "probe").glob("*.json")
    verdict.write_text("{")
    monkeypatch.setattr(cache, "_checked", {})
    assert host.choose("auto") == "kvm" and host.boots == ["kvm", "kvm"]


def test_who_asks_for_kvm_has_it_tried_again(host: Host) -> None:
    for _ in range(2):
        with pytest.raises(UserError, match="no kernel reached user space"):
            host.choose("kvm")
    assert host.boots == ["kvm", "tcg"] * 2
    # A slow host may take its time then.
    assert host.deadlines == {probe.PATIENT_S} and probe.PATIENT_S > probe.DEADLINE_S
    host.kvm = True
    assert host.choose("auto") == "tcg"
    assert host.choose("kvm") == "kvm"


def test_a_yes_stays(host: Host) -> None:
    host.kvm = True
    assert host.choose("auto") == "kvm"
    age(hours=1000)
    assert host.choose("kvm") == host.choose("auto") == "kvm"
    assert host.boots == ["kvm"]
