# SPDX-License-Identifier: GPL-2.0-or-later
"""Absolute deadlines t0 + k/hz, and how well they were kept. Seconds of CLOCK_MONOTONIC."""

from __future__ import annotations

import time

NEVER = float("inf")


class Ticker:
    """`number`: k of the next deadline, -1 before start()."""

    def __init__(self, hz: float) -> None:
        self.hz = hz
        self.t0 = 0.0
        self.number = -1
        self.samples = self.missed = 0
        self.worst_late = self._sum_late = 0.0

    def start(self, t0: float) -> None:
        """The first deadline is t0, which may lie ahead."""
        self.t0, self.number = t0, 0

    @property
    def deadline(self) -> float:
        """When the next sample is due."""
        return self.t0 + self.number / self.hz if self.number >= 0 else NEVER

    def late(self, now: float) -> float:
        """Begin the sample that is due: how late it is."""
        late = now - self.deadline
        self.worst_late = max(self.worst_late, late)
        self._sum_late += late
        self.samples += 1
        return late

    def taken(self) -> None:
        """The sample is taken: the next deadline lies ahead, those that passed are missed."""
        passed = int((time.monotonic() - self.t0) * self.hz)
        self.missed += max(0, passed - self.number)
        self.number = max(passed, self.number) + 1

    def facts(self) -> dict[str, object]:
        """For the `observer` event."""
        return {
            "samples": self.samples,
            "missed": self.missed,
            "mean_late_s": round(self._sum_late / max(self.samples, 1), 5),
        }
