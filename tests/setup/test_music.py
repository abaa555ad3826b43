# SPDX-License-Identifier: GPL-2.0-or-later
"""The music: the same bytes everywhere, and incompressible."""

import hashlib
import zlib
from pathlib import Path

import pytest

from setup import music


def test_tracks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = music.build(5 << 20)
    tracks = sorted(folder.iterdir())
    assert [track.name for track in tracks] == ["track-01.ogg", "track-02.ogg"]
    assert [track.stat().st_size for track in tracks] == [4 << 20, 1 << 20]
    data = tracks[1].read_bytes()
    assert len(zlib.compress(data)) > 0.999 * len(data)
    assert hashlib.sha256(data).hexdigest()[:16] == "1beab14851632cbf"
    assert music.build(5 << 20) == folder
