# SPDX-License-Identifier: GPL-2.0-or-later
"""What systemd-oomd is told, by a subscriber that does what it does."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from errors import UserError
from measure import managed_oom

DEBIANS = [("ManagedOOMSwap", "kill"), ("ManagedOOMMemoryPressure", "50%")]


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_oom, "SOCKET", tmp_path / "systemd" / "io.system.ManagedOOM")
    monkeypatch.setattr(managed_oom, "PATIENCE_S", 0.2)


def subscriber(method: str = managed_oom.METHOD) -> socket.socket:
    """A connection on which the request has been sent, in two parts."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(managed_oom.SOCKET))
    request = json.dumps({"method": method, "more": True}).encode() + b"\0"
    connection.sendall(request[:9])
    connection.sendall(request[9:])
    return connection


def test_a_subscriber_is_told_both_groups_and_stays_connected() -> None:
    with managed_oom.answered(DEBIANS, "desktop-freeze-slice") as answer:
        assert answer is not None
        with subscriber() as connection:
            told = answer()
            text = connection.recv(4096)
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):  # an end would make systemd-oomd forget all
                connection.recv(1)
    assert text.endswith(b"\0")
    reply: dict[str, Any] = json.loads(text[:-1])
    assert reply == {"continues": True, "parameters": {"cgroups": told}}
    swap, pressure = told
    assert swap == {"mode": "kill", "path": "/", "property": "ManagedOOMSwap"}
    assert pressure["path"] == "/desktop-freeze-slice" and pressure["limit"] == (1 << 31) - 1
    assert not managed_oom.SOCKET.parent.exists()


def test_without_properties_nothing_listens() -> None:
    with managed_oom.answered([], "desktop-freeze-slice") as answer:
        assert answer is None and not managed_oom.SOCKET.exists()


def test_no_subscriber_another_question_and_a_real_systemd_are_refused() -> None:
    with managed_oom.answered(DEBIANS, "g") as answer:
        assert answer is not None
        with pytest.raises(UserError, match="no systemd-oomd has subscribed"):
            answer()
        with subscriber("io.systemd.Ping"), pytest.raises(UserError, match="Ping"):
            answer()
    managed_oom.SOCKET.parent.mkdir()
    managed_oom.SOCKET.touch()
    with (
        pytest.raises(UserError, match="systemd tells systemd-oomd"),
        managed_oom.answered(DEBIANS, "g"),
    ):
        pass
    assert managed_oom.SOCKET.exists()
