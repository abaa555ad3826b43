# SPDX-License-Identifier: GPL-2.0-or-later
"""Joins standard input (a socket) to another machine's rsync port: `relay.py HOST[:PORT]`."""

import contextlib
import os
import select
import shlex
import socket
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

CONNECT_S = 20.0
DRAIN_S = 5.0  # how long the other direction may go on after QEMU's direction has ended


def command(host: str) -> str:
    """The command that relays to HOST[:PORT], quoted for a shell and for guestfwd."""
    return shlex.join([sys.executable, str(Path(__file__).resolve()), host])


def copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until source ends, then end sink's input."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def main() -> None:
    """Relay until QEMU closes its end; this process must not outlive QEMU."""
    parts = urlsplit(f"//{sys.argv[1]}")
    try:
        far = socket.create_connection((parts.hostname, parts.port or 873), timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise SystemExit(f"relay: {sys.argv[1]}: {error}") from None
    far.settimeout(None)
    guest = socket.socket(fileno=0)
    pairs = ((guest, far), (far, guest))
    threads = [threading.Thread(target=copy, args=pair, daemon=True) for pair in pairs]
    for thread in threads:
        thread.start()
    # Not noticed by the copying threads, which may be waiting for the other machine.
    ended = select.poll()
    ended.register(guest, select.POLLRDHUP)
    ended.poll()
    threads[1].join(DRAIN_S)
    os._exit(0)


if __name__ == "__main__":
    main()
