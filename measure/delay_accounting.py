# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's per-task delay accounting, on for the time of a run.

kernel.task_delayacct (5.14 on: kernel commit 0cd7c741f01d) decides about tasks that begin later;
the guest's command line has `delayacct` for all of them. Older kernels count always.
"""

import contextlib
from collections.abc import Iterator

from contract.run_record import Events
from errors import UserError
from measure import knobs

KNOB = "/proc/sys/kernel/task_delayacct"


@contextlib.contextmanager
def switched_on(events: Events) -> Iterator[None]:
    """Within: on, where it can be; then as before. The event lets others put it back, too."""
    with contextlib.ExitStack() as stack:
        if (knobs.ROOT / KNOB[1:]).exists():
            try:
                applied = stack.enter_context(knobs.applied([(KNOB, "1")], {}))
                events.write("delay-accounting", knobs=applied)
            except UserError as error:
                events.write("delay-accounting", knobs=[], problem=str(error))
        yield
