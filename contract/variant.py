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
    """

    kernel: str = ""
    label: str = ""
    append: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    swap: Swap = ON_DISK
    workload: str = ""
    load: str = ""
    memory: int = 0

    def same_machine(self, other: "Variant") -> bool:
        """Whether both ask for the same, but for the label, which must not contradict."""
        labels = {self.label, other.label} - {""}
        mine, its = (replace(one, label="", knobs=()) for one in (self, other))
        return mine == its and sorted(self.knobs) == sorted(other.knobs) and len(labels) < 2

    def name(self, kernel: str, among: Iterable["Variant"]) -> str:
        """Its label, or its kernel's name, with the swap if that is not the disk of all of them.

        And with its workload, if that is not the campaign's.
        """
        all_on_disk = {one.swap for one in (self, *among)} == {ON_DISK}
        parts = [kernel, "" if all_on_disk else self.swap.label, self.workload]
        return self.label or "-".join(filter(None, parts))


def exactly(kernel: str, version: str) -> str:
    """For a `debian:WANTED[/FLAVOUR]` the name of just this version of Debian's, as flavoured."""
    _, slash, flavour = kernel.partition("/")
    return f"debian:{version}{slash}{flavour}"
