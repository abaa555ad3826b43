# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells systemd-oomd which control groups to watch, as systemd does on a desktop.

systemd-oomd connects to systemd's socket and subscribes once, by varlink: texts in JSON, each with
a NUL at its end (systemd 252: src/oom/oomd-manager.c, src/core/core-varlink.c). The guest has no
systemd, so the measuring program answers. The workload's group takes the place of user@.service.
"""

import contextlib
import json
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from errors import UserError

SOCKET = Path("/run/systemd/io.system.ManagedOOM")
METHOD = "io.systemd.ManagedOOM.SubscribeManagedOOMCGroups"
DAEMONS = "oom"  # the folder of the daemon's own socket, which its systemd-oomd.socket would make
SWAP = "ManagedOOMSwap"  # a property of the root slice
PATIENCE_S = 20.0
ALL = (1 << 32) - 1  # a limit of 100 %


@contextlib.contextmanager
def answered(
    properties: Sequence[tuple[str, str]], group: str
) -> Iterator[Callable[[], list[dict[str, Any]]] | None]:
    """Listen where systemd would; yields a function that answers the daemon once it has started.

    properties: (ManagedOOMSwap or ManagedOOMMemoryPressure, value), None is yielded if there are
    none. group: the workload's group, below the root. The function returns what it has told.
    UserError if systemd runs here, or if no daemon subscribes within PATIENCE_S.
    """
    if not properties:
        yield None
        return
    if SOCKET.exists():
        raise UserError(
            f"{SOCKET} exists: systemd tells systemd-oomd what to watch on this machine"
        )
    with contextlib.ExitStack() as stack:
        for folder in (SOCKET.parent, SOCKET.parent / DAEMONS):
            if not folder.exists():
                folder.mkdir()
                stack.callback(shutil.rmtree, folder)
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(SOCKET))
        stack.callback(SOCKET.unlink)
        listening.settimeout(PATIENCE_S)
        listening.listen(1)

        def answer() -> list[dict[str, Any]]:
            try:
                connection = stack.enter_context(listening.accept()[0])
                connection.settimeout(PATIENCE_S)
                request = _text(connection)
            except TimeoutError:
                raise UserError("no systemd-oomd has subscribed") from None
            if request.get("method") != METHOD:
                raise UserError(f"systemd-oomd wants {request.get('method')!r}, not {METHOD}")
            groups = [_watched(name, value, group) for name, value in properties]
            reply = {"parameters": {"cgroups": groups}, "continues": True}
            connection.sendall(json.dumps(reply).encode() + b"\0")
            return groups

        yield answer


def _text(connection: socket.socket) -> Mapping[str, Any]:
    received = b""
    while not received.endswith(b"\0"):
        more = connection.recv(4096)
        if not more:
            raise UserError("systemd-oomd has closed its connection")
        received += more
    text: Mapping[str, Any] = json.loads(received[:-1])
    return text


def _watched(name: str, value: str, group: str) -> dict[str, Any]:
    if name == SWAP:
        return {"mode": value, "path": "/", "property": name}
    limit = ALL * int(value.removesuffix("%")) // 100
    return {"mode": "kill", "path": f"/{group}", "property": name, "limit": limit}
