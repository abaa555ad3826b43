# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run's end is blamed on: not on a kernel whose guest was made of damaged files."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from contract.run_record import Events
from setup import cache
from vm import session
from vm.guest import Guest, GuestFiles, GuestJob, Hardware, Timing
from vm.qemu import GUEST


class FakeGuest:
    timing = Timing(GUEST, "")
    files = GuestFiles(Path("initrd"), Path("root"), Path("suite"))
    hardware = Hardware(memory=1 << 28, cpus=1)


def _make(image: Path) -> None:
    image.write_bytes(b"root")


def _nothing() -> Any:
    return None


@pytest.mark.parametrize(
    ("ended", "state"),
    [(("hung", "silent"), "hung"), (None, "lost"), (("aborted", "x"), "aborted")],
)
@pytest.mark.parametrize("spoils", [False, True])
def test_a_guest_whose_image_was_damaged_is_no_fault_of_the_kernels(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ended: tuple[str, str] | None,
    state: str,
    spoils: bool,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "_checked", {})
    image = cache.built("images", "root", _make)
    if spoils:
        image.write_bytes(b"r00t")
    monkeypatch.setattr(session, "outside_facts", lambda *_: {"disk": {}})
    monkeypatch.setattr(session, "_supervise", lambda *_: (ended, None, None))
    guest, guest_job = cast(Guest, FakeGuest()), GuestJob("true", [], 1, 1)
    found, why = session.run(guest, guest_job, tmp_path, tick=_nothing, stopped=_nothing, facts={})
    blamed = spoils and state != "aborted"
    assert found == ("aborted" if blamed else state)
    assert why.startswith(f"damaged while it was used: {image} (the run: {state}: ") == blamed
    assert json.loads((tmp_path / "status.json").read_text())["state"] == found


class NoRoom(Exception):
    pass


def test_room_is_given_back_before_the_last_results_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = []

    @contextlib.contextmanager
    def noted(name: str) -> Iterator[None]:
        steps.append(f"{name} begins")
        try:
            yield
        finally:
            steps.append(f"{name} ends")

    def copied_disk(*_: object) -> None:
        raise NoRoom

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(session, "outside_facts", lambda *_: {"disk": {}})
    monkeypatch.setattr(session, "appending", lambda *_: noted("taking results"))
    monkeypatch.setattr(session, "reserved", lambda *_: noted("holding room"))
    monkeypatch.setattr(session, "copied_disk", copied_disk)
    guest, guest_job = cast(Guest, FakeGuest()), GuestJob("true", [], 1, 1)
    with pytest.raises(NoRoom):
        session.run(guest, guest_job, tmp_path, tick=_nothing, stopped=_nothing, facts={})
    assert steps == [
        *("taking results begins", "holding room begins"),
        *("holding room ends", "taking results ends"),
    ]


@pytest.mark.parametrize(("last", "state"), [("1195.000 0.200", "unfinished"), ("5.0 5.0", "hung")])
def test_a_run_that_went_on_to_its_limit_is_unfinished_and_says_how_far_it_got(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, state: str
) -> None:
    late = "the gitk's were not done within 1200 s"

    def supervise(*_: Any) -> tuple[None, None, None]:
        events = Events(tmp_path / "events.jsonl")
        events.write("start", t0=1.0)
        events.write("end", elapsed=1200.1)
        events.write("status", state="unfinished", why=late)
        events.close()
        (tmp_path / "latency-gitk-1.log").write_text(f"{last} pass 1 commits 100\n")
        return None, None, None

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(session, "outside_facts", lambda *_: {"disk": {}})
    monkeypatch.setattr(session, "_supervise", supervise)
    guest_job = GuestJob("true", [], 1200, 60, progress=("gitk-1",))
    found, why = session.run(
        cast(Guest, FakeGuest()),
        guest_job,
        tmp_path,
        tick=_nothing,
        stopped=_nothing,
        facts={},
        so_far=lambda: "half of it",
    )
    assert found == json.loads((tmp_path / "status.json").read_text())["state"] == state
    silent = f"{late}, and no line came in the last 1195 s (gitk-1)"
    assert why == (f"{late}: half of it" if state == "unfinished" else silent)
