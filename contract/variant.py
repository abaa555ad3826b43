# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared: a kernel, how it is booted, where it swaps to, and what loads it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from contract.swap import ON_DISK, Swap

RUNNING = "the running one"  # the kernel of a test of this machine, which no VM can boot


@dataclass(frozen=True)
class Variant:
    """A kernel + extra command line + knobs (path, value) + swap; label "": it has to be named.

    `workload`: "" is the campaign's. `load`, `memory` (bytes): of one of its own; "", 0: not said.
    `remedy`: the name under which swap, knobs, `daemon` (a command line) and `slice` (files of the
    workload's control group) were chosen (contract.remedy); "": none.
    """

    kernel: str = ""
    label: str = ""
    append: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    swap: Swap = ON_DISK
    workload: str = ""
    load: str = ""
    memory: int = 0
    remedy: str = ""
    daemon: str = ""
    slice: tuple[tuple[str, str], ...] = ()

    def same_machine(self, other: "Variant") -> bool:
        """Whether both ask for the same, but for the label, which must not contradict."""
        labels = {self.label, other.label} - {""}
        mine, its = (replace(one, label="", knobs=()) for one in (self, other))
        return mine == its and sorted(self.knobs) == sorted(other.knobs) and len(labels) < 2

    def name(self, kernel: str, among: Iterable["Variant"]) -> str:
        """Its label, or its kernel's name, with the swap if that is not the disk of all of them.

        And with its workload, if that is not the campaign's, and with its remedy. One that chooses
        the swap is called by that.
        """
        on_disk = {one.swap for one in (self, *among) if not one.remedy} <= {ON_DISK}
        unnamed = on_disk or self.remedy.startswith(self.swap.kind)
        parts = [kernel, "" if unnamed else self.swap.label, self.workload, self.remedy]
        return self.label or "-".join(filter(None, parts))


def exactly(kernel: str, version: str) -> str:
    """For a `debian:WANTED[/FLAVOUR]` the name of just this version of Debian's, as flavoured."""
    _, slash, flavour = kernel.partition("/")
    return f"debian:{version}{slash}{flavour}"
