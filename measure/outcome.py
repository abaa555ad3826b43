# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ended: its state and why, from what the recorder says and who was killed."""

import signal
from typing import Any

from contract.options import Options
from contract.run_files import ABORTED, COMPLETED, OOM, UNFINISHED
from measure import machine_facts
from workloads.workload import Workload


def judged(
    options: Options, chosen: Workload, recorded: dict[str, Any], killed_before: int | None
) -> tuple[str, str]:
    killed = machine_facts.counter("oom_kill")
    kills = 0 if killed is None or killed_before is None else killed - killed_before
    if recorded["outcome"] == "deadline":
        # Whether they made progress is judged outside, by their lines (vm/progress.py).
        late = f"{chosen.late} were not done within {options.timeout} s"
        if kills > 0:
            return OOM, f"the kernel killed {kills} for lack of memory; {late}"
        return UNFINISHED, late
    ends: dict[str, int | None] = recorded["ends"]
    finite = chosen.finite(options)
    early: dict[str, str] = recorded["early"]
    by_daemon = killed_by_daemon(options, recorded, finite)
    ended_badly = {
        name: status
        for name, status in ends.items()
        # The other programs were ended when these were done.
        if status and (name in finite or name in early)
    }
    failed = {name: status for name, status in ended_badly.items() if name in finite}
    if by_daemon and not kills:
        return OOM, f"the daemon killed {', '.join(by_daemon)}"
    if chosen.kills and not (failed or early):
        return COMPLETED, chosen.done
    if kills > 0:
        return OOM, f"the kernel killed {kills} for lack of memory" + (
            f", among them {', '.join(sorted(ended_badly))}" if ended_badly else ""
        )
    if failed:
        name, status = sorted(failed.items())[0]
        return ABORTED, f"{name} ended with status {status}"
    if early:
        name, last = next(iter(early.items()))
        reason = f": {last}" if last else ""
        return ABORTED, f"{name} ended early with status {ends[name]}{reason}"
    return COMPLETED, chosen.done


def killed_by_daemon(options: Options, recorded: dict[str, Any], finite: set[str]) -> list[str]:
    """The streams that a signal ended before the run's end, if the variant has a daemon that kills.

    Programs that never end by themselves may exit with status 0 after a SIGTERM.
    """
    ends: dict[str, int | None] = recorded["ends"]
    signals = (-signal.SIGTERM, -signal.SIGKILL)
    early = {name for name in recorded["early"] if ends.get(name) in (0, *signals)}
    killed = {name for name in finite if ends.get(name) in signals}
    return sorted(early | killed) if options.variants[0].daemon else []
