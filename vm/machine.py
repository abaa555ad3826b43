# SPDX-License-Identifier: GPL-2.0-or-later
"""A running QEMU: its start, its monitor, its serial console's input, and its end."""

import contextlib
import dataclasses
import itertools
import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from vm.qemu import Spec, command_line
from vm.qmp import Monitor, MonitorLost


class DidNotStart(UserError):
    """QEMU ended before its monitor answered."""


class Machine:
    """One virtual machine; `running()` makes one and always ends it."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", console: socket.socket, monitor: Monitor
    ):
        self.process = process
        self.monitor = monitor
        self._console = console
        threading.Thread(target=self._drain_console, daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether QEMU still runs."""
        return self.process.poll() is None

    def paused(self) -> bool:
        """Whether QEMU has stopped the guest by itself (an error of the host's disk)."""
        try:
            status = self.monitor.execute("query-status")
        except (MonitorLost, TimeoutError, RuntimeError):
            return False
        return not status.get("running", True)

    def sysrq(self, letter: str) -> None:
        """Send a serial BREAK and a sysrq letter to the guest's kernel."""
        self.monitor.execute("chardev-send-break", id="console")
        self._console.sendall(letter.encode())

    def end(self) -> None:
        """End QEMU now, politely first, and reap it."""
        if self.alive:
            with contextlib.suppress(MonitorLost, TimeoutError, RuntimeError):
                self.monitor.execute("quit", timeout=2.0)
            try:
                self.process.wait(timeout=5.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.monitor.close()
        self._console.close()

    def _drain_console(self) -> None:
        # QEMU logs the console to its file; an unread socket would in time hold the guest up.
        with contextlib.suppress(OSError):
            while self._console.recv(65536):
                pass


@contextlib.contextmanager
def running(spec: Spec, scratch: Path) -> Iterator[Machine]:
    """Start a QEMU for spec (its console_fd and monitor_fd are filled in here); end it on leaving.

    scratch holds QEMU's throw-away overlays. Raises DidNotStart with QEMU's own words if so.
    """
    console, console_far = socket.socketpair()
    monitor, monitor_far = socket.socketpair()
    spec = dataclasses.replace(
        spec, console_fd=console_far.fileno(), monitor_fd=monitor_far.fileno()
    )
    errors = scratch / "qemu-stderr.txt"
    with open(errors, "wb") as stderr:
        process = subprocess.Popen(
            command_line(spec),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            pass_fds=[
                console_far.fileno(),
                monitor_far.fileno(),
                *itertools.chain(*spec.fdsets.values()),
            ],
            env={**os.environ, "TMPDIR": str(scratch), **spec.environment},
            start_new_session=True,
        )
    console_far.close()
    monitor_far.close()
    machine = Machine(process, console, Monitor(monitor))
    try:
        try:
            machine.monitor.negotiate()
        except (MonitorLost, TimeoutError) as error:
            machine.end()
            lines = errors.read_text(errors="replace").strip().splitlines()
            raise DidNotStart(
                f"QEMU did not start: {lines[-1] if lines else error}",
                hint="see its other options with --help, or choose --accel tcg",
            ) from error
        yield machine
    finally:
        machine.end()
