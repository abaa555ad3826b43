# SPDX-License-Identifier: GPL-2.0-or-later
"""A variant, the unit of comparison: a kernel, its boot and swap settings, and its workload."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from contract.swap import ON_DISK, Swap

RUNNING = "the running one"  # the kernel of a test of this machine, which no VM can boot


@dataclass(frozen=True)
class Variant:
    """A kernel + extra command line + knobs (path, value) + swap; label "": not named yet.

    `workload`: "" means the campaign's. `load`, `memory` (bytes): of a workload of its own; "", 0:
    not given. `remedy`: the name under which swap, knobs, `daemon` (a command line) and `slice`
    (files of the workload's control group) were chosen (contract.remedy); "": none.
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
        """Whether both are the same except for the label; two different labels are not the same."""
        labels = {self.label, other.label} - {""}
        mine, its = (replace(variant, label="", knobs=()) for variant in (self, other))
        return mine == its and sorted(self.knobs) == sorted(other.knobs) and len(labels) < 2

    def name(self, kernel: str, among: Iterable["Variant"]) -> str:
        """Its label, or the kernel's name with its swap, unless all variants swap to the disk.

        The workload, if it is not the campaign's, and the remedy are appended. A remedy whose name
        begins with the kind of swap replaces the swap, unless a swap without remedy has that name.
        """
        plain = {variant.swap for variant in (self, *among) if not variant.remedy}
        own = self.remedy.startswith(self.swap.kind)
        taken = self.remedy in {swap.label for swap in plain}
        unnamed = plain <= {ON_DISK} or (own and not taken)
        parts = [kernel, "" if unnamed else self.swap.label, self.workload, self.remedy]
        return self.label or "-".join(filter(None, parts))


def exactly(kernel: str, version: str) -> str:
    """`debian:VERSION[/FLAVOUR]`: this exact version of Debian's, in the flavour of `kernel`."""
    _, slash, flavour = kernel.partition("/")
    return f"debian:{version}{slash}{flavour}"
