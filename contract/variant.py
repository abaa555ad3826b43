# SPDX-License-Identifier: GPL-2.0-or-later
"""What is compared: a kernel, and how it is booted."""

from dataclasses import dataclass

RUNNING = "the running one"  # the kernel of a test of this machine, which no VM can boot


@dataclass(frozen=True)
class Variant:
    """A kernel + extra command line + knobs (path, value); label "": the kernel's own name."""

    kernel: str = ""
    label: str = ""
    append: str = ""
    knobs: tuple[tuple[str, str], ...] = ()

    def same_machine(self, other: "Variant") -> bool:
        """Whether both ask for the same, but for the label, which must not contradict."""
        labels = {self.label, other.label} - {""}
        mine = (self.kernel, self.append, sorted(self.knobs))
        return mine == (other.kernel, other.append, sorted(other.knobs)) and len(labels) < 2
