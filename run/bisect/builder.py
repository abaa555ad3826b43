# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds kernels while guests run: first the kernel needed now, then those that may be needed."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from run.bisect.state import Step
from run.preparation import PreparedVariant
from setup.trees.failures import NotBuilt
from setup.trees.progress import Progress


@dataclass(frozen=True)
class BuildResult:
    """A made kernel, or why it is untestable; or another error, which ends the bisect."""

    ready: PreparedVariant | None = None
    why_not: str = ""
    error: BaseException | None = None


Maker = Callable[[Step, Callable[[Progress], None]], PreparedVariant]


class Builder:
    """A thread that makes kernels, one at a time. make: makes a kernel, or raises NotBuilt.

    logs: the folder for logs of failed builds.
    """

    def __init__(self, make: Maker, logs: Path) -> None:
        self._make = make
        self._logs = logs
        self._made: dict[str, BuildResult] = {}
        self._wanted: list[Step] = []
        self._now = ""
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def want(self, steps: Sequence[Step]) -> None:
        """Make these kernels next, in this order; drops kernels that were wanted only before."""
        with self._changed:
            self._wanted = [step for step in steps if step.name not in self._made]
            self._changed.notify()

    def made(self, name: str) -> BuildResult | None:
        """The outcome of a kernel; None if it is not made yet."""
        with self._changed:
            return self._made.get(name)

    def put(self, name: str, ready: PreparedVariant) -> None:
        """Add a kernel that exists already."""
        with self._changed:
            self._made[name] = BuildResult(ready)

    @property
    def now(self) -> str:
        """The kernel that is being made, with its progress; "" if none is."""
        with self._changed:
            return self._now

    def _see(self, progress: Progress) -> None:
        with self._changed:
            self._now = progress.words

    def end(self) -> None:
        """Make no further kernels; the caller has to end the processes of the current build."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._ended and not self._wanted:
                    self._changed.wait()
                if self._ended:
                    return
                step = self._wanted.pop(0)
                if step.name in self._made:
                    continue
                self._now = f"making {step.name}"
            made = self._one(step)
            with self._changed:
                self._now = ""
                if not self._ended:
                    self._made[step.name] = made

    def _one(self, step: Step) -> BuildResult:
        try:
            return BuildResult(self._make(step, self._see))
        except NotBuilt as error:
            log = self._logs / f"{step.name}.log"
            error.keep_log(log)
            return BuildResult(why_not=f"does not build: {error} (its log: {log.name})")
        except BaseException as error:  # raised where the kernel is waited for
            return BuildResult(error=error)
