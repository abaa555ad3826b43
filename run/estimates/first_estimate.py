# SPDX-License-Identifier: GPL-2.0-or-later
"""How long runs will take here: by those that were, else from their instructions and our speed.

A guest with a clock of its own takes no time of the host's while it waits: what a run takes is the
instructions that it executes, over the emulator's speed (vm.speed).
"""

from collections.abc import Sequence

from contract.options import Options
from contract.workload import DESKTOP
from run.estimates import durations
from vm import speed
from vm.qemu import GUEST

# Of a run of `desktop` on the laptop, in instructions as vm.speed counts them. Measured with 6.12:
# `quick` (4 times 40,000 commits) took 123 s at 347 million a second, `standard` (4 times 165,000)
# 2.4 times as long as `quick`, both beside another run. Other sizes lie on the line through both.
FIXED = 24e9
A_COMMIT = 117e3
# A run takes from so many times that; on 7.2 it is 1.6 times, beside another run up to twice.
LOW, HIGH = 0.8, 2.0
REFERENCE = 350e6  # instructions a second, of the machine where that was measured
FIRST = "first estimate, measured once a run has finished"
UNKNOWN = "no time estimate until a run has finished"

Span = tuple[float, float]


def instructions(options: Options) -> float | None:
    """What a run executes, typically; None if no run like it was ever measured."""
    if options.workload != DESKTOP or not options.commits:
        return None
    return FIXED + A_COMMIT * options.gitk * options.commits * options.passes


def seconds(options: Options, accel: str, jobs: int, clock: str, rate: float | None) -> Span | None:
    """From how many to how many seconds a run of one variant takes; both alike if such ran here.

    rate: instructions a second that are emulated here, as far as it is known.
    """
    known = durations.estimate(durations.kind_of(options, jobs), accel)
    if known is not None:
        return known, known
    work = instructions(options)
    if clock != GUEST or work is None or rate is None:
        return None
    return LOW * work / rate, HIGH * work / rate


def spans(each: Sequence[Options], accel: str, jobs: int, clock: str, qemu: str) -> list[Span]:
    """Of runs of these variants, one by one; none if one of them cannot be estimated."""
    rate = speed.known(qemu)
    found = [seconds(one, accel, jobs, clock, rate) for one in each]
    return [one for one in found if one] if all(found) else []


def in_all(each: Sequence[Span], jobs: int) -> Span:
    """How long so many runs take, so many at a time."""
    rounds = -(-len(each) // jobs)
    low, high = (rounds * sum(side) / len(each) for side in zip(*each, strict=True))
    return low, high


def a_run(each: Sequence[Span]) -> Span:
    """How long one of them takes, on the average."""
    return in_all(each, len(each))


def is_first(each: Sequence[Span]) -> bool:
    """Whether it is an estimate of what never ran here."""
    return any(low < high for low, high in each)


def words(span: Span) -> str:
    """'about 2 to 4 min', 'about 12 min'."""
    low, high = (durations.words(one) for one in span)
    if low == high:
        return f"about {low}"
    number, _, unit = low.rpartition(" ")
    same = " " not in number and high.split(" ")[1:] == [unit]
    return f"about {number if same else low} to {high}"


def sentence(each: Sequence[Options], accel: str, jobs: int, clock: str, qemu: str) -> str:
    """What --dry-run says of the time that these runs take; each: a run's options."""
    found = spans(each, accel, jobs, clock, qemu)
    if found:
        whole = words(in_all(found, jobs))
        if not is_first(found):
            return whole
        one = f"{words(a_run(found))} a run, " if len(found) > 1 else ""
        return f"{one}{whole}{' in all' if one else ''} ({FIRST})"
    there = [seconds(one, accel, jobs, clock, REFERENCE) for one in each]
    usual = [one for one in there if one]
    if len(usual) < len(each):
        return UNKNOWN
    return (
        f"{words(a_run(usual))} a run where {REFERENCE / 1e6:.0f} million instructions a second "
        "are emulated (this machine's speed is measured before its first run)"
    )
