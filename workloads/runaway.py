# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that eats memory without end beside a desktop: what people reproduce a freeze with.

`tail /dev/zero` is the usual one. The desktop is some windows, each an idle program that uses its
memory once a second, and the figure is the time until all of them answer again.
"""

from contract.options import Options
from contract.run_files import HEARTBEAT
from contract.values import Refused, up_to, whole_mib
from contract.workload import Description, Figure, FigureTable, Late, TableRow
from monitors.streams import Stream
from workloads.beside import heartbeat, program
from workloads.telling import begin_of
from workloads.workload import Ground, Parameter, Workload, defaults

NAME = LOAD = "runaway"
MIB = 1 << 20
ANSWER, EATEN, LIVED, GAVE_UP = "answer", "eaten-mib", "lived", "gave-up"


def percent(text: str) -> int:
    """A whole number from 0 to 100."""
    return 0 if text == "0" else up_to(100)(text)


def patience(text: str) -> int:
    """Seconds: more than the load needs to begin."""
    found = up_to(3600)(text)
    if found < 10:
        raise Refused(f"at least 10: {text!r}")
    return found


def windows(options: Options) -> list[str]:
    """The streams of the desktop's windows."""
    count = WORKLOAD.values(options)["windows"]
    return [f"{HEARTBEAT}-{n}" for n in range(1, count + 1)]


def streams(options: Options) -> list[str]:
    """The windows, and who starts the runaway program."""
    return [*windows(options), LOAD]


def programs(options: Options, ground: Ground) -> list[Stream]:
    """The same as programs."""
    said = WORKLOAD.values(options)
    size = f"{said['size'] // MIB}M"
    load = ["workloads.runaway_load", "--random", str(said["random"])]
    load += ["--patience", str(said["patience"]), "--figures", str(ground.figures)]
    each = [heartbeat(name, working_set=size) for name in windows(options)]
    return [*each, program(LOAD, load)]


def describe(options: Options) -> Description:
    """What the runaway got, and when the windows answered again."""
    said = WORKLOAD.values(options)
    names = windows(options)
    return Description(
        name=NAME,
        summary=f"{len(names)} windows of {said['size'] // MIB} MiB, and a program that eats "
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
        Parameter("windows", "of the desktop", up_to(8), defaults("3", "4", "4")),
        Parameter("size", "of each window's memory", whole_mib(1), defaults("16M", "32M", "32M")),
        Parameter(
            "random",
            "percent of each page that it eats that does not compress; 0: as tail /dev/zero",
            percent,
            defaults("50", "50", "50"),
        ),
        Parameter(
            "patience",
            "seconds after which it is ended if nobody has killed it",
            patience,
            defaults("120", "300", "600"),
        ),
    ),
)
