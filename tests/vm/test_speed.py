# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast guests are emulated: what a guest's console says of it, and what is kept."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setup import cache
from vm import speed
from vm.emulator import Emulator
from vm.machine import DidNotStart

NONE = Path("/none")
QEMU = Emulator("qemu", "7.2")
ECHOED = b'Kernel command line: rdinit=/bin/sh -- -c "' + speed.LOAD.encode() + b'"\n'


def test_a_guests_busy_time_is_its_up_time_without_the_idle() -> None:
    assert speed.busy_seconds(ECHOED) is None
    assert speed.busy_seconds(ECHOED + b"DESKTOP-FREEZE-SPEED 3.53 0.25 en") is None
    said = ECHOED + b"DESKTOP-FREEZE-SPEED 3.53 0.25 end\r\n[    3.53] reboot\n"
    assert speed.busy_seconds(said) == pytest.approx(3.28)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_console_can_be_looked_at(before: bytes, after: bytes) -> None:
    for said in (before + after, before + speed.DONE + after):
        found = speed.busy_seconds(said)
        assert found is None or b"end" in after


def test_it_is_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    boots = []

    def boot(emulator: Emulator, kernel: Path, initrd: Path) -> float:
        boots.append(kernel)
        return 347e6

    monkeypatch.setattr(speed, "boot", boot)
    assert speed.known("suite") is None and not (tmp_path / cache.NAME).exists()
    assert speed.measured("suite", QEMU, NONE, NONE) == speed.known("suite") == 347e6
    assert speed.measured("suite", QEMU, NONE, NONE) == 347e6 and len(boots) == 1
    assert speed.known("/usr/bin/another-qemu") is None
    (kept,) = (tmp_path / cache.NAME / "probe").glob("speed-*.json")
    kept.write_text("[]")
    assert speed.known("suite") is None


@pytest.mark.parametrize("error", [TimeoutError("hangs"), DidNotStart("no")])
def test_a_kernel_that_hangs_is_no_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def boot(emulator: Emulator, kernel: Path, initrd: Path) -> float:
        raise error

    monkeypatch.setattr(speed, "boot", boot)
    assert speed.measured("suite", QEMU, NONE, NONE) is None
    assert not list((tmp_path / cache.NAME / "probe").glob("speed-*"))
