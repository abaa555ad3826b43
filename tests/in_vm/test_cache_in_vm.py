# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache that is damaged, in a folder with an odd name: no kernel is blamed for it."""

import json
import shutil
from pathlib import Path

import pytest

from setup import cache
from tests.support.vms import OWN_CLOCK, command, guest, nothing_left

TINY = [*OWN_CLOCK, "--commits", "3000", "--gitk", "1"]
DAMAGED = ("disk-model", "histories", "suites")
FLIPPED = 3000
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]


def damaged_copy(place: Path) -> None:
    """A cache in which each file of those kinds has flipped bytes; the rest is the machine's."""
    (place / "locks").mkdir(parents=True)
    for kind in cache.root().iterdir():
        if kind.name in (*DAMAGED, cache.DIGESTS):
            shutil.copytree(kind, place / kind.name, symlinks=True)
        elif kind.name != "locks" and not kind.name.startswith(("vm-", "probe-")):
            (place / kind.name).symlink_to(kind)
    for name in DAMAGED:
        for path in (place / name).rglob("*"):
            if path.is_file() and path.stat().st_size:
                data = bytearray(path.read_bytes())
                middle = len(data) // 2
                for at in range(middle, min(len(data), middle + FLIPPED)):
                    data[at] ^= 255
                path.write_bytes(data)


def test_what_is_damaged_is_made_again_before_a_guest_boots(tmp_path: Path) -> None:
    guest(*TINY)
    place, out = tmp_path / "a b,c:d" / cache.NAME, tmp_path / "out"
    damaged_copy(place)
    env = {"XDG_CACHE_HOME": str(place.parent)}
    argv = [*TINY, "--label", "one", "--out", str(out)]
    with nothing_left(), command(*argv, **env) as runner:
        printed, errors = runner.communicate(timeout=600)
    assert runner.returncode == 0, printed + errors
    for kind in DAMAGED:
        assert errors.count(f"{place}/{kind}/") == 1, errors
    assert errors.count(": damaged in the cache; it is made again\n") == len(DAMAGED)
    assert "on the guest's clock" in printed
    assert json.loads((out / "one/1/status.json").read_text())["state"] == "completed"
