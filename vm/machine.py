# SPDX-License-Identifier: GPL-2.0-or-later
"""A running QEMU: its start, its monitor, the input of its serial console, and its end."""

import contextlib
import dataclasses
import itertools
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from vm.disk_spec import complaints
from vm.qemu import Spec, command_line
from vm.qmp import Monitor, MonitorLost

DRAIN_S = 0.5  # longest time from QEMU's end to the end of the thread that reads its console


class DidNotStart(UserError):
    """QEMU ended before its monitor answered."""


class Console:
    """The host's ends of the serial console's two FIFOs."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self._over = False
        ends = [base.with_name(base.name + end) for end in (".in", ".out")]
        for end in ends:
            end.unlink(missing_ok=True)
            os.mkfifo(end, 0o600)
        self._in = os.open(ends[0], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._out = os.open(ends[1], os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def drain(self) -> None:
        """Read and drop what QEMU writes, until it is gone: a full pipe would block it."""
        came = select.poll()
        came.register(self._out, select.POLLIN)
        # QEMU may die before it opens its end of the pipe.
        while not self._over:
            if came.poll(1000 * DRAIN_S) and not os.read(self._out, 65536):
                return

    def type(self, letters: str) -> None:
        """Send these characters to the guest."""
        os.write(self._in, letters.encode())

    def close(self, drain: threading.Thread | None = None) -> None:
        """Close our ends after the draining thread has ended; does nothing the second time."""
        if self._over:
            return
        self._over = True
        if drain is not None:
            drain.join()
        os.close(self._in)
        os.close(self._out)


class Machine:
    """One virtual machine; `running()` starts it and always ends it."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        console: Console,
        monitor: Monitor,
        errors: Path,
    ) -> None:
        self.process = process
        self.monitor = monitor
        self._errors = errors
        self._console = console
        self._drain = threading.Thread(target=console.drain, daemon=True)
        self._drain.start()

    @property
    def alive(self) -> bool:
        """Whether QEMU still runs."""
        return self.process.poll() is None

    @property
    def died_of(self) -> str | None:
        """The signal that ended QEMU, with QEMU's last message; None if no signal did."""
        status = self.process.poll()
        if status is None or status >= 0:
            return None
        lines = complaints(self.last_words)
        names = (number.name for number in signal.Signals if number == -status)
        return next(names, f"signal {-status}") + (f": {lines[-1]}" if lines else "")

    @property
    def last_words(self) -> str:
        """All that QEMU and its library wrote to stderr."""
        return self._errors.read_text(errors="replace")

    def paused(self) -> bool:
        """Whether QEMU has stopped the guest by itself (because of an error of the host's disk)."""
        try:
            status = self.monitor.execute("query-status")
        except (MonitorLost, TimeoutError, RuntimeError):
            return False
        return not status.get("running", True)

    def sysrq(self, letter: str) -> None:
        """Send a serial BREAK and a sysrq letter to the guest's kernel."""
        self.monitor.execute("chardev-send-break", id="console")
        self._console.type(letter)

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
        self._console.close(self._drain)


@contextlib.contextmanager
def running(spec: Spec, scratch: Path) -> Iterator[Machine]:
    """Start QEMU for spec, whose console and monitor_fd are filled in here; end it on leaving.

    scratch: a folder for its FIFOs and its stderr. DidNotStart with QEMU's own message if it fails.
    """
    console = Console(scratch / "console")
    monitor, monitor_far = socket.socketpair()
    spec = dataclasses.replace(spec, console=console.base, monitor_fd=monitor_far.fileno())
    errors = scratch / "qemu-stderr.txt"
    try:
        with open(errors, "wb") as stderr:
            process = subprocess.Popen(
                command_line(spec),
                stdin=subprocess.DEVNULL,
                stdout=stderr,
                stderr=stderr,
                pass_fds=[monitor_far.fileno(), *itertools.chain(*spec.fdsets.values())],
                env=spec.environment,
                start_new_session=True,
            )
    except BaseException:
        console.close()
        monitor.close()
        raise
    finally:
        monitor_far.close()
    machine = Machine(process, console, Monitor(monitor), errors)
    try:
        try:
            machine.monitor.negotiate()
        except (MonitorLost, TimeoutError) as error:
            machine.end()
            lines = complaints(errors.read_text(errors="replace"))
            raise DidNotStart(
                f"QEMU did not start: {lines[-1] if lines else error}",
                hint="choose --accel tcg" if spec.accel == "kvm" else "",
            ) from error
        yield machine
    finally:
        machine.end()
