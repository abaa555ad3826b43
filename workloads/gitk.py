# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop with the real gitk's: Tcl/Tk in windows of an X server without a screen (Xvfb).

It takes six to eleven times the memory a commit that fake_gitk takes, which the default workload
uses (docs/developer/fake-gitk.md). The lines have the same form.
"""

from dataclasses import replace

from contract.option_rows import REAL_GITKS
from contract.options import Options
from contract.values import up_to
from contract.workload import Description
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import desktop, x_server
from workloads.workload import Parameter, WorkloadEnvironment, defaults

NAME = "gitk"
# The X server takes 23 MiB, and each window 9 MiB before it reads a commit.
MORE_MEMORY = 64 << 20


def check(options: Options) -> None:
    """UserError (2) if the history is shorter than what is read."""
    if options.commits and read(options) > options.commits:
        raise UserError(
            f"--load commits={read(options)}: the history has {options.commits} (--commits)",
            status=Exit.USAGE,
        )


def read(options: Options) -> int:
    """How many commits each gitk reads."""
    return WORKLOAD.values(options)["commits"]


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The gitk's."""
    clone = environment.scratch / desktop.CLONE
    command = x_server.gitk(clone, read(options), options.every)
    env = x_server.environment_of(environment)
    return [Stream(name, command, env, waits=True) for name in desktop.streams(options)]


def describe(options: Options) -> Description:
    """The desktop's description, of the real gitk's."""
    return replace(
        desktop.describe(options), name=NAME, summary="music and real gitk's that read a history"
    )


WORKLOAD = replace(
    desktop.WORKLOAD,
    name=NAME,
    describe=describe,
    programs=programs,
    gitks=REAL_GITKS,
    reads=read,
    more_memory=MORE_MEMORY,
    check=check,
    parameters=(
        Parameter(
            "commits",
            "number of the newest commits that each gitk reads",
            up_to(1_000_000),
            defaults("4000", "16000", "16000"),
        ),
    ),
    packages={"gitk": "gitk", "xvfb": "Xvfb"},
    in_windows=True,
)
