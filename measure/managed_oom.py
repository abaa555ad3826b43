# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells systemd-oomd which control groups to watch, as systemd does on a desktop.

systemd-oomd connects to systemd's socket and subscribes by varlink: messages in JSON, each with a
NUL at its end (systemd 252: src/oom/oomd-manager.c, src/core/core-varlink.c). The guest has no
systemd, so the measuring program sends the groups. The workload's group is the user@.service.
"""

import contextlib
import json
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from errors import UserError

SOCKET = Path("/run/systemd/io.system.ManagedOOM")
DAEMON_FOLDER = "oom"  # for the daemon's own socket; systemd-oomd.socket would make it
METHOD = "io.systemd.ManagedOOM.SubscribeManagedOOMCGroups"
SWAP, LIMIT = "ManagedOOMSwap", "ManagedOOMMemoryPressureLimit"
TIMEOUT_S = 20.0
LIMIT_100_PERCENT = (1 << 32) - 1


@contextlib.contextmanager
def subscription(
    properties: Mapping[str, str], group: str
) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Listen where systemd would; yields a function that sends the groups to the daemon.

    properties: names and values as in systemd.resource-control(5). group: the workload's group,
    below the root. The function returns what it has sent; UserError if no daemon subscribes within
    TIMEOUT_S.
    """
    with contextlib.ExitStack() as stack:
        for folder in (SOCKET.parent, SOCKET.parent / DAEMON_FOLDER):
            if not folder.exists():
                folder.mkdir()
                stack.callback(shutil.rmtree, folder)
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(SOCKET))
        stack.callback(SOCKET.unlink)
        listening.settimeout(TIMEOUT_S)
        listening.listen(1)

        def send_groups() -> list[dict[str, Any]]:
            groups = _groups(properties, group)
            reply = {"parameters": {"cgroups": groups}, "continues": True}
            try:
                connection = stack.enter_context(listening.accept()[0])
                connection.settimeout(TIMEOUT_S)
                method = _receive(connection).get("method")
                connection.sendall(json.dumps(reply).encode() + b"\0")
            except (OSError, ValueError) as error:
                raise UserError(f"systemd-oomd did not ask for its groups: {error}") from None
            if method != METHOD:
                raise UserError(f"an unexpected request from systemd-oomd: {method!r:.100}")
            return groups

        yield send_groups


def _receive(connection: socket.socket) -> Mapping[str, Any]:
    received = b""
    while not received.endswith(b"\0"):
        more = connection.recv(4096)
        if not more:
            raise ValueError("it closed the connection")
        received += more
    message: Mapping[str, Any] = json.loads(received[:-1])
    return message


def _groups(properties: Mapping[str, str], group: str) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = [
        {"mode": value, "path": "/" if name == SWAP else f"/{group}", "property": name}
        for name, value in properties.items()
        if name != LIMIT
    ]
    if LIMIT in properties:
        percent = int(properties[LIMIT].removesuffix("%"))
        # UINT32_SCALE_FROM_PERCENT, src/basic/percent-util.h
        groups[-1]["limit"] = (LIMIT_100_PERCENT * percent + 50) // 100
    return groups
