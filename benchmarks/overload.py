# SPDX-License-Identifier: GPL-2.0-or-later
"""Where does the freeze begin? `python3 -m benchmarks.overload PICTURE DIR…`

Input: campaigns on machines with different disks that differ in the number of programs, or else in
memory. Output: for each machine and load the share of the time in gaps of 1 s and more and the
worst gap, as text and as a picture (PNG). A run that failed or was cut at its limit is a cross: its
figures are those up to its end.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, groupby
from pathlib import Path
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from analysis.figures.counters import KIB_PER_MIB
from analysis.figures.metrics import counted, frozen_share, whole
from analysis.figures.stalls import worst
from analysis.reading.load import Run, load_campaign
from errors import UserError, run_command
from graphs.pictures import png
from graphs.pictures.style import OKABE_ITO, WIDTH_PX

DPI = 100
MARKS = ("o", "s", "^", "D")


@dataclass(frozen=True)
class Point:
    """A run: its machine, the guest's MemTotal in MiB, its programs, % of their time in gaps of at
    least 1 s, the worst gap in s.
    """

    machine: str
    memory: int
    programs: int
    frozen: float
    worst: float
    completed: bool


def point_of(run: Run) -> Point | None:
    """The figures of a run, up to its end; None if its share is not known."""
    frozen = frozen_share(run)
    if frozen is None:
        return None
    return Point(
        str(run.fact("machine", "name")),
        round(run.fact("mem_total_kib") / KIB_PER_MIB),  # 4 KiB apart on emmc and ssd
        len(run.workload.subjects),
        frozen,
        max(map(worst, run.subjects)),
        whole(run),
    )


def points(runs: Iterable[Run]) -> list[Point]:
    """All runs with a result, by machine and growing load; UserError if there is none."""
    made = [point for run in runs if counted(run) and (point := point_of(run))]
    if not made:
        raise UserError("none of these runs has a result")
    if _by_programs(made) and len({point.memory for point in made}) > 1:
        raise UserError("memory and programs both differ", hint="give campaigns that vary one")
    return sorted(made, key=lambda point: (point.machine, -point.memory, point.programs))


def by_load(made: Iterable[Point]) -> Mapping[tuple[str, int, int], list[Point]]:
    """The points of each machine, memory size and number of programs, in their order."""
    groups = groupby(made, lambda point: (point.machine, point.memory, point.programs))
    return {place: list(group) for place, group in groups}


def text(made: Sequence[Point]) -> list[str]:
    """A line for each machine and load."""
    lines = ["machine  MemTotal  programs  runs  completed  frozen  worst gap"]
    for (machine, memory, programs), group in by_load(made).items():
        frozen = mean(point.frozen for point in group)
        longest = max(point.worst for point in group)
        completed = sum(point.completed for point in group)
        lines.append(
            f"{machine:8} {memory:4} MiB {programs:9} {len(group):5} {completed:10} "
            f"{frozen:5.0f} % "
            f"{longest:8.1f} s"
        )
    return lines


def _figure(made: Sequence[Point]) -> Figure:
    """The picture: the load grows to the right."""
    figure = Figure(figsize=(WIDTH_PX / DPI, 4.2), dpi=DPI, layout="constrained")
    shares, longest = figure.subplots(1, 2)
    _panel(shares, made, lambda point: point.frozen, "Share of the time in gaps of 1 s and more, %")
    shares.set_ylim(-3, 103)
    _panel(longest, made, lambda point: point.worst, "Worst gap, s")
    longest.set_yscale("log")
    longest.yaxis.set_major_formatter("{x:g}")
    longest.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    longest.yaxis.set_minor_formatter(NullFormatter())
    lines, names = shares.get_legend_handles_labels()
    figure.legend(lines, names, frameon=False, loc="outside lower center", ncols=len(names))
    load = "More programs, the same memory" if _by_programs(made) else "Less memory, the same load"
    figure.suptitle(f"{load}. Cross: not done at its limit, or failed")
    return figure


def _by_programs(made: Sequence[Point]) -> bool:
    return len({point.programs for point in made}) > 1


def _panel(axes: Axes, made: Sequence[Point], value: Callable[[Point], float], title: str) -> None:
    by_programs = _by_programs(made)
    machines = list(dict.fromkeys(point.machine for point in made))
    for machine, colour, mark in zip(machines, cycle(OKABE_ITO), cycle(MARKS), strict=False):
        of_machine = [point for point in made if point.machine == machine]
        means = [
            (programs if by_programs else memory, mean(map(value, group)))
            for (_, memory, programs), group in by_load(of_machine).items()
        ]
        axes.plot(*zip(*means, strict=True), color=colour, linewidth=1)
        for point in of_machine:
            axes.plot(
                [point.programs if by_programs else point.memory],
                [value(point)],
                color=colour,
                marker=mark if point.completed else "x",
                linestyle="none",
            )
        axes.plot([], [], color=colour, marker=mark, label=machine)
    axes.set_title(title)
    axes.set_xlabel("programs" if by_programs else "the guest's MemTotal, MiB")
    axes.xaxis.set_inverted(not by_programs)
    axes.grid(alpha=0.3)


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.overload", description=__doc__)
    parser.add_argument("picture", type=Path, metavar="PICTURE")
    parser.add_argument("campaigns", nargs="+", type=Path, metavar="DIR")
    options = parser.parse_args(argv)
    made = points(run for path in options.campaigns for run in load_campaign(path).runs)
    png.write(lambda: _figure(made), options.picture)
    print("\n".join(text(made)))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.overload", lambda: main(sys.argv[1:])))
