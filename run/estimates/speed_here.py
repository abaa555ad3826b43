# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the emulator's speed on this machine, if an estimate of a campaign's time needs it."""

from contract.options import Options
from run.estimates import first_estimate
from run.preparation import PreparedVariant, ending_children, timed
from vm import speed
from vm.qemu import GUEST


def measure(options: Options, ready: list[PreparedVariant], jobs: int) -> None:
    """Measure the speed by booting a kernel, unless it or the time of such runs is known."""
    first = ready[0].guest
    run_options = [options.of(one.variant) for one in ready]
    sizes = [first_estimate.instructions(one) for one in run_options]
    if first.timing.clock != GUEST or None in sizes or speed.known(options.qemu) is not None:
        return
    if first_estimate.spans(run_options, first.accel, jobs, first.timing.clock, options.qemu):
        return
    initrd = first.files.initrd
    with ending_children():
        timed(
            "how fast this machine emulates",
            lambda: speed.measured(options.qemu, first.emulator, first.kernel.image, initrd),
        )
