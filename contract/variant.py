# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared: a kernel, how it is booted, and where it swaps to."""

from collections.abc import Iterable
from dataclasses import dataclass

from contract.swap import ON_DISK, Swap

RUNNING = "the running one"  # the kernel of a test of this machine, which no VM can boot


@dataclass(frozen=True)
class Variant:
    """A kernel + extra command line + knobs (path, value) + swap; label "": it has to be named."""

    kernel: str = ""
    label: str = ""
    append: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    swap: Swap = ON_DISK

    def same_machine(self, other: "Variant") -> bool:
        """Whether both ask for the same, but for the label, which must not contradict."""
        labels = {self.label, other.label} - {""}
        mine, its = ((one.kernel, one.append, sorted(one.knobs), one.swap) for one in (self, other))
        return mine == its and len(labels) < 2

    def name(self, kernel: str, among: Iterable["Variant"]) -> str:
        """Its label, or its kernel's name, with the swap if that is not the disk of all of them."""
        all_on_disk = {one.swap for one in (self, *among)} == {ON_DISK}
        return self.label or (kernel if all_on_disk else f"{kernel}-{self.swap.label}")
