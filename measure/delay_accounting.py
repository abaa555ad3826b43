# SPDX-License-Identifier: GPL-2.0-or-later
"""Switches the kernel's per-task delay accounting on for the time of a run.

kernel.task_delayacct (since 5.14, kernel commit 0cd7c741f01d) affects only tasks that start later;
the guest's command line has `delayacct`, which covers all tasks. Older kernels always count.
"""

import contextlib
from collections.abc import Iterator

from contract.run_record import Events
from errors import UserError
from measure import knobs

KNOB = "/proc/sys/kernel/task_delayacct"


@contextlib.contextmanager
def switched_on(events: Events) -> Iterator[None]:
    """Switch it on if the kernel can, and restore it on leaving.

    The event lets others restore it.
    """
    with contextlib.ExitStack() as stack:
        if (knobs.ROOT / KNOB[1:]).exists():
            try:
                applied = stack.enter_context(knobs.applied([(KNOB, "1")], {}))
                events.write("delay-accounting", knobs=applied)
            except UserError as error:
                events.write("delay-accounting", knobs=[], problem=str(error))
        yield
