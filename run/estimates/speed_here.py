# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how fast this machine emulates, if an estimate of a campaign's time needs it."""

from contract.options import Options
from run.estimates import first_estimate
from run.preparation import Ready, ending_children, timed
from vm import speed
from vm.qemu import GUEST


def measure(options: Options, ready: list[Ready], jobs: int) -> None:
    """Boot a kernel for it, unless the speed is known, or how long such runs took here."""
    first = ready[0].guest
    each = [options.of(one.variant) for one in ready]
    sizes = [first_estimate.instructions(one) for one in each]
    if first.clock != GUEST or None in sizes or speed.known(options.qemu) is not None:
        return
    if first_estimate.spans(each, first.accel, jobs, first.clock, options.qemu):
        return
    with ending_children():
        timed(
            "how fast this machine emulates",
            lambda: speed.measured(options.qemu, first.emulator, first.kernel.image, first.initrd),
        )
