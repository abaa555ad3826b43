# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache's scratch folders: gone with their owner, or swept after it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from setup import cache

SUITE = Path(__file__).resolve().parents[2]
HOLDS = "from setup import cache\nwith cache.scratch('vm') as f:\n print(f, flush=True); input()"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_a_living_process_holds_stays_and_what_a_dead_one_left_goes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=SUITE,
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert folder.parent == cache.root()
        (folder / "file").write_text("here")
        with cache.scratch("vm") as ours:
            cache.sweep("vm")
            assert cache.abandoned("vm") == [] and folder.is_dir() and ours.is_dir()
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            assert cache.abandoned("vm") == [folder]
            cache.sweep("probe")
            assert folder.is_dir()
            cache.sweep("vm")
            assert not folder.exists() and ours.is_dir()
    assert not ours.exists()


def test_what_an_older_version_left_goes_too() -> None:
    old = cache.root() / "vm-x1y2"
    (old / "run").mkdir(parents=True)
    cache.sweep("vm")
    assert not old.exists() and [path.name for path in cache.root().iterdir()] == ["locks"]
