# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: a campaign of two workloads. Nothing here was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from tests.support.verdicts import stalling_run
from tests.support.workloads import workload_campaign

DESKTOP = {"a": (50.0, 51.0, 52.0, 53.0, 54.0), "b": (30.0, 31.0, 32.0, 33.0, 34.0)}
GROUP = {
    "c": (40.0, 41.0, 42.0, 43.0, 44.0),
    "d": (60.0, 61.0, 62.0, 63.0, 64.0),
    "e": (30.0, 55.0, 41.5, 35.0, 50.0),
}


def mixed_campaign(
    folder: Path,
    desktop: Mapping[str, Sequence[float]] = DESKTOP,
    group: Mapping[str, Sequence[float]] = GROUP,
    baseline: str = "",
    more: Sequence[str] = (),
) -> Path:
    """The desktop's runs by stalled seconds, memcg-dirty's by seconds inside; the plan has all.

    more: variants of memcg-dirty that are planned and have no run.
    """
    for label, runs in desktop.items():
        for number, stalled in enumerate(runs, 1):
            stalling_run(folder / label / str(number), stalled)
    workload_campaign(folder, group)
    own: dict[str, Any] = {"workload": "memcg-dirty", "load": "size=256M", "memory": 1 << 29}
    variants: list[dict[str, Any]] = [
        {"label": label, "kernel": f"debian:{label}"} for label in desktop
    ]
    variants += [{"label": one, "kernel": f"debian:{one}", **own} for one in (*group, *more)]
    most = max(map(len, (*desktop.values(), *group.values())))
    plan: dict[str, Any] = {"format": 1, "runs": most, "command": "./run_test.sh --plan asked.toml"}
    plan |= {"baseline": baseline or next(iter(desktop)), "variant": variants}
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    return folder
