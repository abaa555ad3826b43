# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may measure beside whom on a machine."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from errors import UserError
from run import machine_lock

SUITE = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path)


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


ENTERS = """
import sys
from collections.abc import Callable
from pathlib import Path
from run import machine_lock
machine_lock.folder = lambda: Path(sys.argv[1])
with machine_lock.held(True, lambda why: print(why, flush=True)) as machine:
    print("in, alone" if machine.alone else "in", flush=True)
"""


@pytest.mark.parametrize(("first_does", "then"), [("share", "in"), ("keep", "refused")])
def test_who_makes_ready_is_waited_for(tmp_path: Path, first_does: str, then: str) -> None:
    with (
        machine_lock.held(beside_others=True) as first,
        subprocess.Popen(
            [sys.executable, "-c", ENTERS, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=SUITE,
        ) as second,
    ):
        assert second.stdout and second.stderr
        said = second.stdout.readline().strip()
        assert said == f"waiting for another run's preparation: pid {os.getpid()}"
        with pytest.raises(UserError, match="another run"), machine_lock.held():
            pass
        getattr(first, first_does)()
        rest, errors = second.communicate(timeout=60)
    if then == "in":
        assert rest == "in\n"
    else:
        assert rest == "" and f"on this machine: pid {os.getpid()}" in errors


def test_who_ends_while_making_ready_is_followed(tmp_path: Path) -> None:
    with machine_lock.held(beside_others=True):
        pass
    with machine_lock.held(beside_others=True) as second:
        assert second.alone


def test_a_link_in_the_place_of_the_lock_makes_no_file(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    lock = tmp_path / machine_lock.NAME
    lock.symlink_to(elsewhere)
    for beside in (False, True):
        with (
            pytest.raises(UserError, match=r"a symbolic link \(remove it"),
            machine_lock.held(beside_others=beside),
        ):
            pass
    assert not elsewhere.exists()
    elsewhere.write_text("kept")
    elsewhere.chmod(0o600)
    with pytest.raises(UserError, match="a symbolic link"), machine_lock.held():
        pass
    assert elsewhere.stat().st_mode & 0o777 == 0o600 and elsewhere.read_text() == "kept"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_plain_file_is_no_lock(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / machine_lock.NAME)
    with pytest.raises(UserError, match="is not a plain file"), machine_lock.held():
        pass


def test_only_the_maker_may_write_the_lock_and_all_may_take_it(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with machine_lock.held():
            assert (tmp_path / machine_lock.NAME).stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)
    (tmp_path / machine_lock.NAME).chmod(0o444)
    with machine_lock.held() as again:
        assert again.alone


def test_a_missing_folder_of_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_lock, "folder", lambda: tmp_path / "none")
    with pytest.raises(UserError, match="No such file or directory"), machine_lock.held():
        pass


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
    assert not (tmp_path / "c").exists()
    (tmp_path / "link").symlink_to("c")
    with machine_lock.campaign(tmp_path / "c"):
        (tmp_path / "c/plan.toml").touch()
        # Another user's cache is elsewhere.
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "others"))
        with (
            pytest.raises(UserError, match=r"another run_test\.sh is at work in"),
            machine_lock.campaign(tmp_path / "link"),
        ):
            pass
    assert (tmp_path / "c/plan.toml").exists()


def test_a_folder_that_went_while_it_was_waited_for_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, flock = tmp_path / "c", fcntl.flock
    gone = iter([place.rmdir])

    def flock_when_it_is_gone(fd: int, how: int) -> None:
        next(gone, lambda: None)()
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", flock_when_it_is_gone)
    with machine_lock.campaign(place):
        held = place.stat().st_ino
        with pytest.raises(UserError), machine_lock.campaign(place):
            pass
        assert place.stat().st_ino == held
