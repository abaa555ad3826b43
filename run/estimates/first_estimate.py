# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates how long runs take here: from earlier runs, else from instructions and speed.

A guest with its own clock takes no host time while it waits: a run's time is the number of
instructions that it executes, divided by the emulator's speed (vm.speed).
"""

from collections.abc import Sequence

from contract.options import Options
from contract.workload import DESKTOP
from run.estimates import durations
from vm import speed
from vm.qemu import GUEST

# A run of `desktop` on the machine `laptop`, in instructions as vm.speed counts them. Measured with
# 6.12, both beside another run: `quick` (4 times 40,000 commits) took 123 s at 347 million
# instructions per second, `standard` (4 times 165,000) 2.4 times as long. Other sizes lie on the
# line through both.
FIXED = 24e9
A_COMMIT = 117e3
# The range of a run's time as multiples of that; 7.2 takes 1.6, beside another run up to 2.0.
LOW, HIGH = 0.8, 2.0
REFERENCE = 350e6  # instructions per second of the machine where that was measured
FIRST = "first estimate, measured once a run has finished"
UNKNOWN = "no time estimate until a run has finished"

Span = tuple[float, float]


def instructions(options: Options) -> float | None:
    """The number of instructions of a typical run; None if no such run was ever measured."""
    if options.workload != DESKTOP or not options.commits:
        return None
    return FIXED + A_COMMIT * options.gitk * options.commits * options.passes


def seconds(options: Options, accel: str, jobs: int, clock: str, rate: float | None) -> Span | None:
    """The least and the most seconds of a variant's run; equal if such a run was done here.

    rate: instructions per second that this machine emulates; None if unknown.
    """
    known = durations.estimate(durations.kind_of(options, jobs), accel)
    if known is not None:
        return known, known
    work = instructions(options)
    if clock != GUEST or work is None or rate is None:
        return None
    return LOW * work / rate, HIGH * work / rate


def spans(
    run_options: Sequence[Options], accel: str, jobs: int, clock: str, qemu: str
) -> list[Span]:
    """Least and most seconds of each run; [] if any has no estimate."""
    rate = speed.known(qemu)
    estimates = [seconds(options, accel, jobs, clock, rate) for options in run_options]
    return [span for span in estimates if span] if all(estimates) else []


def in_all(estimates: Sequence[Span], jobs: int) -> Span:
    """Least and most seconds for all runs together, `jobs` at a time."""
    rounds = -(-len(estimates) // jobs)
    low, high = (rounds * sum(side) / len(estimates) for side in zip(*estimates, strict=True))
    return low, high


def a_run(estimates: Sequence[Span]) -> Span:
    """Least and most seconds of one run, on average."""
    return in_all(estimates, len(estimates))


def is_first(estimates: Sequence[Span]) -> bool:
    """Whether any estimate is for a run of a kind that was never done here."""
    return any(low < high for low, high in estimates)


def words(span: Span) -> str:
    """A range of seconds as text: 'about 2 to 4 min', 'about 12 min'."""
    low, high = (durations.words(limit) for limit in span)
    if low == high:
        return f"about {low}"
    number, _, unit = low.rpartition(" ")
    same = " " not in number and high.split(" ")[1:] == [unit]
    return f"about {number if same else low} to {high}"


def sentence(run_options: Sequence[Options], accel: str, jobs: int, clock: str, qemu: str) -> str:
    """The sentence of --dry-run about the time of these runs."""
    estimates = spans(run_options, accel, jobs, clock, qemu)
    if estimates:
        whole = words(in_all(estimates, jobs))
        if not is_first(estimates):
            return whole
        a_single = f"{words(a_run(estimates))} a run, " if len(estimates) > 1 else ""
        return f"{a_single}{whole}{' in all' if a_single else ''} ({FIRST})"
    there = [seconds(options, accel, jobs, clock, REFERENCE) for options in run_options]
    usual = [span for span in there if span]
    if len(usual) < len(run_options):
        return UNKNOWN
    return (
        f"{words(a_run(usual))} a run where {REFERENCE / 1e6:.0f} million instructions a second "
        "are emulated (this machine's speed is measured before its first run)"
    )
