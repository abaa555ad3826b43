# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures of reclaim's waits and pages that several workloads' tables have, of trace.tsv."""

from contract.workload import Recorded

# What the page allocator and kswapd wait in: up to 5.15 for congestion, since 5.16 (8cd7c588decf)
# in a throttle for a reason of its own. As analysis.reclaim_tables has them.
WAITS = ("congestion_wait", "wait_iff_congested", "throttled_*")
WAITED = tuple(f"{wait}_n" for wait in WAITS)
KSWAPD_WAITED = tuple(f"kswapd_{name}" for name in WAITED)


def waits(where: str, since: str = "", until: str = "") -> tuple[Recorded, ...]:
    """How often tasks waited and how many ms, then kswapd, between two moments; where: in keys."""

    def us(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{name[:-1]}us" for name in names)

    span = (since, until)
    return (
        Recorded(f"pg-stall-{where}", WAITED, *span),
        Recorded(f"pg-wait-{where}", us(WAITED), *span, divisor=1000),
        Recorded(f"ksd-stall-{where}", KSWAPD_WAITED, *span),
        Recorded(f"ksd-wait-{where}", us(KSWAPD_WAITED), *span, divisor=1000),
    )
