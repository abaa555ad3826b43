# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that eats memory without end beside a desktop, as people use to reproduce a freeze.

The usual one is `tail /dev/zero`. The desktop consists of windows, idle programs that use their
memory once a second. The figure is the time until all windows answer again.
"""

from contract.options import Options
from contract.run_files import HEARTBEAT
from contract.values import Refused, up_to, whole_mib
from contract.workload import Description, Figure, FigureTable, Late, TableRow
from monitors.streams import Stream
from workloads.companions import heartbeat, program
from workloads.load_output import begin_of
from workloads.workload import Parameter, Workload, WorkloadEnvironment, defaults

NAME = LOAD = "runaway"
MIB = 1 << 20
ANSWER, EATEN, LIVED, GAVE_UP = "answer", "eaten-mib", "lived", "gave-up"


def percent(text: str) -> int:
    """An integer from 0 to 100, in percent."""
    return 0 if text == "0" else up_to(100)(text)


def patience(text: str) -> int:
    """Seconds, at least 10: more than the load needs to begin."""
    seconds = up_to(3600)(text)
    if seconds < 10:
        raise Refused(f"at least 10: {text!r}")
    return seconds


def windows(options: Options) -> list[str]:
    """The names of the desktop's windows' streams."""
    count = WORKLOAD.values(options)["windows"]
    return [f"{HEARTBEAT}-{n}" for n in range(1, count + 1)]


def streams(options: Options) -> list[str]:
    """The names of the windows and of the program that starts the runaway."""
    return [*windows(options), LOAD]


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The windows, and the program that starts the runaway."""
    values = WORKLOAD.values(options)
    size = f"{values['size'] // MIB}M"
    load = ["workloads.runaway_load", "--random", str(values["random"])]
    load += ["--patience", str(values["patience"]), "--figures", str(environment.figures)]
    desktop = [heartbeat(name, working_set=size) for name in windows(options)]
    return [*desktop, program(LOAD, load)]


def describe(options: Options) -> Description:
    """How much memory the runaway got, and when the windows answered again."""
    values = WORKLOAD.values(options)
    names = windows(options)
    return Description(
        name=NAME,
        summary=f"{len(names)} windows of {values['size'] // MIB} MiB, and a program that eats "
        "memory without end",
        subject=HEARTBEAT,
        subjects=tuple(names),
        primary=ANSWER,
        figures=(Figure(ANSWER, "until the desktop answers again", "s", 1, "lower"),),
        tables=(
            FigureTable(
                "The program that eats memory",
                ("got MiB", "lived s", "not killed by then"),
                (TableRow("", (EATEN, LIVED, GAVE_UP)),),
                of_failed=True,
            ),
        ),
        late=(Late(ANSWER, HEARTBEAT, "again", begin_of("eating")),),
    )


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: {LOAD},
    done="the program that eats memory was ended, and the desktop watched after it",
    late="the program that eats memory",
    kills=True,
    parameters=(
        Parameter("windows", "number of windows of the desktop", up_to(8), defaults("3", "4", "4")),
        Parameter("size", "memory of each window", whole_mib(1), defaults("16M", "32M", "32M")),
        Parameter(
            "random",
            "percent of each eaten page that does not compress; 0: as tail /dev/zero",
            percent,
            defaults("50", "50", "50"),
        ),
        Parameter(
            "patience",
            "seconds after which the suite kills it, if nothing else has",
            patience,
            defaults("120", "300", "600"),
        ),
    ),
)
