# SPDX-License-Identifier: GPL-2.0-or-later
"""Errors of one kernel's build, after which the other kernels go on."""

from pathlib import Path

from errors import UserError


class NotBuilt(UserError):
    """A kernel cannot be built: the message is one line with the reason, `log` has all output.

    `label` is the kernel's name, "" if it is not known yet.
    """

    def __init__(self, message: str, *, log: str, label: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.log = log
        self.label = label

    def keep_log(self, path: Path) -> None:
        """Write the log to a file, with this error's line on top."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{self}\n\n{self.log}", encoding="utf-8", errors="replace")


class PatchDoesNotApply(NotBuilt):
    """A patch does not apply to this source."""


class RevertConflicts(NotBuilt):
    """A commit cannot be reverted on this source: later changes are in the way."""


class DoesNotCompile(NotBuilt):
    """The compiler, or another step of the build, failed."""


class OptionLost(NotBuilt):
    """The configuration asks for options that this source does not have, or refuses."""

    def __init__(
        self, message: str, *, options: tuple[str, ...], log: str, label: str = ""
    ) -> None:
        super().__init__(message, log=log, label=label)
        self.options = options
