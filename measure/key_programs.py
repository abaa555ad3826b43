# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs at which keys are pressed: what a desktop has behind its terminals and in windows.

Each reads keys in raw mode and echoes them by itself: a key is answered when its code and data are
in memory again. They are text of their own, so that one does not keep the others' in memory.
"""

import os
import shutil

from contract.options import Options
from monitors.streams import KeyProgram
from setup.observers import busybox
from workloads import companions, desktop, x_server
from workloads.registry import find
from workloads.workload import WorkloadEnvironment

GITK_COMMITS = 2_000  # in the window of the gitk that waits


def typed_at(options: Options, environment: WorkloadEnvironment) -> list[KeyProgram]:
    """All of a run."""
    return [*in_terminals(), *(in_windows(options, environment) if options.screen else ())]


def in_terminals() -> list[KeyProgram]:
    """A shell, an editor and a pager: those that this machine has."""
    bash, more = shutil.which("bash"), shutil.which("more")
    programs = [KeyProgram("editor", [str(busybox()), "vi"], _environment(), before="i")]
    if bash:
        argv = [bash, "--norc", "--noprofile", "-i"]
        programs.insert(0, KeyProgram("shell", argv, _environment()))
    if more:  # which echoes what it is to search for
        programs.append(KeyProgram("pager", [more, os.__file__], _environment(), before="/"))
    return programs


def in_windows(options: Options, environment: WorkloadEnvironment) -> list[KeyProgram]:
    """An editor in an xterm, and a gitk if the workload has a history.

    They are below the windows of the workload: whatever is covered draws nothing.
    """
    env = x_server.environment_of(environment)
    place = f"80x24+0+{x_server.HEIGHT}"
    xterm = ["xterm", "-geometry", place, "-e", str(busybox()), "vi"]
    programs = [KeyProgram("xterm", xterm, env, before="i", window=True)]
    if find(options.workload).gitks:
        commits = min(GITK_COMMITS, options.commits or GITK_COMMITS)
        command = x_server.gitk(environment.scratch / desktop.CLONE, commits)
        # With a letter in its field a button stays enabled, which is drawn elsewhere.
        programs.append(KeyProgram("gitk", command, env, before="q", window=True))
    return programs


def _environment() -> dict[str, str]:
    return {**companions.environment(), "TERM": "dumb", "HISTFILE": ""}
