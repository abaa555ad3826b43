# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may measure beside whom on a machine."""

import threading
from pathlib import Path

import pytest

from errors import UserError
from run import machine_lock


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_lock, "path", lambda: tmp_path / "lock")


def test_one_at_a_time() -> None:
    with machine_lock.held() as first:
        assert first.alone
        for beside in (False, True):
            with (
                pytest.raises(UserError, match="another run is measuring on this machine: pid"),
                machine_lock.held(beside_others=beside),
            ):
                pass
    with machine_lock.held() as second:
        assert second.alone


def test_those_with_clocks_of_their_own_are_beside_each_other() -> None:
    with machine_lock.held(beside_others=True) as first:
        first.share()
        with machine_lock.held(beside_others=True) as second:
            assert not second.alone
            second.share()
            with pytest.raises(UserError, match="another run"):
                second.keep()
            with pytest.raises(UserError, match="another run"), machine_lock.held():
                pass
        with machine_lock.held(beside_others=True) as third:
            assert not third.alone
    with machine_lock.held(beside_others=True) as alone:
        alone.keep()
        assert alone.alone


def test_who_makes_ready_is_waited_for() -> None:
    entered = threading.Event()

    def second() -> None:
        with machine_lock.held(beside_others=True) as machine:
            assert not machine.alone
            entered.set()

    waiting = threading.Thread(target=second)
    with machine_lock.held(beside_others=True) as first:
        waiting.start()
        assert not entered.wait(3 * machine_lock.POLL_S)
        first.share()
        assert entered.wait(60)
        waiting.join()


def test_a_campaign_is_one_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with machine_lock.campaign(tmp_path / "c"):
        with (
            pytest.raises(UserError, match=f"at work in {tmp_path / 'c'}"),
            machine_lock.campaign(tmp_path / "c"),
        ):
            pass
        with machine_lock.campaign(tmp_path / "other"):
            pass
    with machine_lock.campaign(tmp_path / "c"):
        assert not (tmp_path / "c").exists()
