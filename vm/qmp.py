# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor over a socket pair that QEMU inherits, so that no port or socket file listens."""

import json
import socket
import time
from typing import Any

GREETING_S = 20.0


class MonitorLost(Exception):
    """QEMU closed its monitor: it has ended or is ending."""


class Monitor:
    """A synchronous QMP client."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = b""
        self._last_id = 0
        self.events: list[dict[str, Any]] = []

    def negotiate(self) -> None:
        """Wait for QEMU's greeting and leave capability negotiation."""
        self._message(time.monotonic() + GREETING_S)
        self.execute("qmp_capabilities", timeout=GREETING_S)

    def execute(self, command: str, *, timeout: float = 10.0, **arguments: Any) -> Any:
        """Run a QMP command and return its value; events that come meanwhile are added to `events`.

        TimeoutError if no answer comes within timeout seconds; a late answer is ignored.
        """
        self._last_id += 1
        request = {"execute": command, "arguments": arguments, "id": self._last_id}
        deadline = time.monotonic() + timeout
        self._sock.settimeout(timeout)
        try:
            self._sock.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            # QEMU may have half a request: it would understand no further one.
            raise MonitorLost(str(error)) from error
        while True:
            message = self._message(deadline)
            if "event" in message:
                self.events.append(message)
            elif message.get("id") != self._last_id:
                continue  # a late answer to an earlier command
            elif "error" in message:
                raise RuntimeError(f"QMP {command}: {message['error'].get('desc')}")
            else:
                return message["return"]

    def human(self, line: str) -> str:
        """Run a command of the human monitor and return what it printed."""
        arguments: dict[str, Any] = {"command-line": line}
        return str(self.execute("human-monitor-command", **arguments))

    def close(self) -> None:
        """Close our end."""
        self._sock.close()

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("QEMU's monitor does not answer")
            self._sock.settimeout(left)
            try:
                data = self._sock.recv(65536)
            except TimeoutError:
                continue
            except OSError as error:
                raise MonitorLost(str(error)) from error
            if not data:
                raise MonitorLost("QEMU closed its monitor")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message
