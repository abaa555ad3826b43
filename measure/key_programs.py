# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs at which keys are pressed: what a desktop has behind its terminals.

Each reads keys in raw mode and echoes them by itself: a key is answered when its code and data are
in memory again. They are text of their own, so that one does not keep the others' in memory.
"""

import os
import shutil

from monitors.streams import TerminalProgram
from setup.observers import busybox
from workloads import companions


def here() -> list[TerminalProgram]:
    """A shell, an editor and a pager: those that this machine has."""
    bash, more = shutil.which("bash"), shutil.which("more")
    programs = [TerminalProgram("editor", [str(busybox()), "vi"], _environment(), before="i")]
    if bash:
        argv = [bash, "--norc", "--noprofile", "-i"]
        programs.insert(0, TerminalProgram("shell", argv, _environment()))
    if more:  # which echoes what it is to search for
        programs.append(TerminalProgram("pager", [more, os.__file__], _environment(), before="/"))
    return programs


def _environment() -> dict[str, str]:
    return {**companions.environment(), "TERM": "dumb", "HISTFILE": ""}
