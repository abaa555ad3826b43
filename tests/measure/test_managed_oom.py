# SPDX-License-Identifier: GPL-2.0-or-later
"""The groups that systemd-oomd gets: a subscriber sends the request that systemd-oomd sends."""

import json
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from errors import UserError
from measure import managed_oom

DEBIANS = {
    "ManagedOOMSwap": "kill",
    "ManagedOOMMemoryPressure": "kill",
    "ManagedOOMMemoryPressureLimit": "50%",
}


@pytest.fixture(autouse=True)
def _place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a socket's path is at most 107 bytes
        monkeypatch.setattr(managed_oom, "SOCKET", Path(folder, "systemd", "io.system.ManagedOOM"))
        monkeypatch.setattr(managed_oom, "TIMEOUT_S", 0.2)
        yield


def subscriber(method: str = managed_oom.METHOD) -> socket.socket:
    """A connection on which the request has been sent, in two parts."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(managed_oom.SOCKET))
    request = json.dumps({"method": method, "more": True}).encode() + b"\0"
    connection.sendall(request[:9])
    connection.sendall(request[9:])
    return connection


def test_a_subscriber_gets_both_groups_and_stays_connected() -> None:
    with (
        managed_oom.subscription(DEBIANS, "desktop-freeze-slice") as send_groups,
        subscriber() as connection,
    ):
        sent = send_groups()
        text = connection.recv(4096)
        connection.setblocking(False)
        with pytest.raises(BlockingIOError):  # at an end it would connect again, or exit
            connection.recv(1)
    assert text.endswith(b"\0")
    reply: dict[str, Any] = json.loads(text[:-1])
    assert reply == {"continues": True, "parameters": {"cgroups": sent}}
    swap, pressure = sent
    assert swap == {"mode": "kill", "path": "/", "property": "ManagedOOMSwap"}
    assert pressure == {
        "mode": "kill",
        "path": "/desktop-freeze-slice",
        "property": "ManagedOOMMemoryPressure",
        "limit": 2147483648,
    }
    assert not managed_oom.SOCKET.parent.exists()


def test_a_daemon_that_does_not_subscribe_is_an_error() -> None:
    with managed_oom.subscription(DEBIANS, "g") as send_groups:
        with pytest.raises(UserError, match="did not ask for its groups: timed out"):
            send_groups()
        with subscriber("io.systemd.Ping"), pytest.raises(UserError, match="Ping"):
            send_groups()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(managed_oom.SOCKET))
        with pytest.raises(UserError, match="it closed the connection"):
            send_groups()
