# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor: each answer belongs to its own request."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from vm.qmp import Monitor, MonitorLost


class Qemu:
    """The other end of a monitor."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lines = sock.makefile("r")

    def say(self, **message: Any) -> None:
        self._sock.sendall(json.dumps(message).encode() + b"\r\n")

    def asked(self) -> Any:
        return json.loads(self._lines.readline())

    def close(self) -> None:
        self._lines.close()
        self._sock.close()


@pytest.fixture
def ends() -> Iterator[tuple[Monitor, Qemu]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(10.0)
    monitor, qemu = Monitor(ours), Qemu(theirs)
    yield monitor, qemu
    monitor.close()
    qemu.close()


def test_it_keeps_events_and_returns_answers(ends: tuple[Monitor, Qemu]) -> None:
    monitor, qemu = ends
    qemu.say(QMP={})
    qemu.say(**{"return": {}, "id": 1})
    monitor.negotiate()
    qemu.say(event="RESET", data={})
    qemu.say(**{"return": "halted\r\n", "id": 2})
    assert monitor.human("info registers") == "halted\r\n"
    assert [event["event"] for event in monitor.events] == ["RESET"]


def test_a_late_answer_is_not_the_next_ones(ends: tuple[Monitor, Qemu]) -> None:
    monitor, qemu = ends
    with pytest.raises(TimeoutError):
        monitor.execute("human-monitor-command", timeout=0.01)
    late = qemu.asked()["id"]
    qemu.say(**{"return": "registers", "id": late})
    qemu.say(event="STOP")
    qemu.say(**{"return": {"running": False}, "id": late + 1})
    assert monitor.execute("query-status") == {"running": False}
    assert qemu.asked()["id"] == late + 1
    assert monitor.events == [{"event": "STOP"}]


def test_a_late_error_is_not_the_next_ones(ends: tuple[Monitor, Qemu]) -> None:
    monitor, qemu = ends
    with pytest.raises(TimeoutError):
        monitor.execute("inject-nmi", timeout=0.01)
    late = qemu.asked()["id"]
    qemu.say(error={"desc": "no CPU"}, id=late)
    qemu.say(error={"desc": "not now"}, id=late + 1)
    with pytest.raises(RuntimeError, match="QMP quit: not now"):
        monitor.execute("quit")


def test_a_monitor_that_takes_nothing_is_lost(ends: tuple[Monitor, Qemu]) -> None:
    monitor, _ = ends
    with pytest.raises(MonitorLost):
        monitor.execute("x" * (4 << 20), timeout=0.1)


def test_a_closed_monitor_is_lost(ends: tuple[Monitor, Qemu]) -> None:
    monitor, qemu = ends
    qemu.close()
    with pytest.raises(MonitorLost):
        monitor.execute("query-status")
