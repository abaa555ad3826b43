# SPDX-License-Identifier: GPL-2.0-or-later
"""Follows one guest until its end, or until there is a reason to end it."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from contract.run_files import ABORTED, CONSOLE_LOG, EVENTS, HANG, HUNG
from contract.run_record import read_events
from vm import hang_dump, progress
from vm.guest import GuestJob
from vm.machine import Machine

HOST_RESERVE_BYTES = 16 << 20
BOOT_DEADLINE_S = 90.0
# While the stack is built and the history cloned, the guest is silent; both may take long.
PREPARE_DEADLINE_S = 900.0
POWER_OFF_S = 120.0
POLL_S = 0.25


class Watch:
    """Follows one guest until its end, or until there is a reason to end it."""

    def __init__(
        self,
        guest_job: GuestJob,
        run_dir: Path,
        scratch: Path,
        tick: Callable[[], None],
        slow: int = 1,
    ) -> None:
        self._guest_job = guest_job
        self._slow = slow  # the most seconds of the host for a second of the guest
        self._run = run_dir
        self._scratch = scratch
        self._tick = tick
        self._files = [run_dir / name for name in guest_job.files]
        self._size = -1
        self._console_size = -1
        self._heard = time.monotonic()
        self._console_heard = self._heard
        self._began = self._heard
        self._status_at: float | None = None
        self._started = False
        self._events_size = -1

    @property
    def console_log(self) -> Path:
        """The serial console's log."""
        return self._run / CONSOLE_LOG

    def follow(self, machine: Machine, stopped: Callable[[], bool]) -> tuple[str, str] | None:
        """Wait until QEMU has ended: None; or must be ended: then (state, why)."""
        while machine.alive:
            self._tick()
            reason = self._reason_to_end(stopped)
            if reason is not None and reason[0] == HUNG:
                if machine.paused():
                    return ABORTED, "QEMU stopped the guest: the host's disk is full"
                hang_dump.collect(machine, self.console_log, self._run / HANG)
            if reason is not None:
                return reason
            time.sleep(POLL_S)
        return None

    def _reason_to_end(self, stopped: Callable[[], bool]) -> tuple[str, str] | None:
        now = time.monotonic()
        if stopped():
            return ABORTED, "interrupted by the user"
        for place in (self._run, self._scratch):
            free = shutil.disk_usage(place).free
            if free < HOST_RESERVE_BYTES:
                return ABORTED, f"the host's disk is full: {free >> 20} MiB free at {place}"
        self._look(now)
        slow = self._slow
        if self._status_at is not None:
            if now - self._status_at > POWER_OFF_S * slow:
                return HUNG, f"no power-off within {POWER_OFF_S * slow:.0f} s of the guest's end"
            return None
        silent = now - self._heard
        if self._size == 0:
            # No result yet: the guest is booting. The console counts as a sign of life.
            if now - max(self._heard, self._console_heard) > BOOT_DEADLINE_S * slow:
                return HUNG, f"the guest did not boot: silent for {BOOT_DEADLINE_S * slow:.0f} s"
        elif (
            silent > (self._guest_job.hang_after_s if self._started else PREPARE_DEADLINE_S) * slow
        ):
            return HUNG, f"the guest sent nothing for {silent:.0f} s"
        limit = (self._guest_job.timeout_s + BOOT_DEADLINE_S + PREPARE_DEADLINE_S) * slow
        if now - self._began > limit:
            why = f"the guest did not end within {limit:.0f} s"
            if not self._started:
                return HUNG, why
            guest_job = self._guest_job
            return progress.at_limit(self._run, guest_job.progress, guest_job.hang_after_s, why)
        return None

    def _look(self, now: float) -> None:
        size = sum(file.stat().st_size for file in self._files if file.exists())
        if size != self._size:
            self._size, self._heard = size, now
        console = self.console_log.stat().st_size if self.console_log.exists() else 0
        if console != self._console_size:
            self._console_size, self._console_heard = console, now
        events = self._run / EVENTS
        events_size = events.stat().st_size if events.exists() else 0
        if events_size != self._events_size:
            self._events_size = events_size
            names = {event["event"] for event in read_events(events)}
            self._started = "start" in names
            if self._status_at is None and "status" in names:
                self._status_at = now
