# SPDX-License-Identifier: GPL-2.0-or-later
"""What direct reclaim and the waits in it came to, as figures of a workload between two moments.

They are columns of trace.tsv; the five of reference/000 and the six of 003 have their names.
"""

from contract.workload import FigureTable, Recorded, TableRow

# What the page allocator and kswapd wait in: up to 5.15 for congestion, since 5.16 (8cd7c588decf)
# in a throttle for a reason of its own. As analysis.reclaim_tables has them.
WAITED = ("congestion_wait_n", "wait_iff_congested_n", "throttled_*_n")
KSWAPD_WAITED = tuple(f"kswapd_{name}" for name in WAITED)
COLUMNS = ("pg-Stall", "pg-Wait ms", "pg-Rclm", "ksd-stall", "ksd-wait ms")


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


def stalls(where: str, since: str = "", until: str = "") -> tuple[Recorded, ...]:
    """The five figures of the mail, between two moments; where: in their keys."""
    found = waits(where, since, until)
    freed = Recorded(f"pg-rclm-{where}", ("direct_reclaim_pages",), since, until)
    return (*found[:2], freed, *found[2:])


def stalls_table(title: str, where: str) -> FigureTable:
    """They in a row, for a row a kernel."""
    keys = tuple(one.key for one in stalls(where))
    return FigureTable(title, COLUMNS, (TableRow("", keys),))


def reclaims(where: str, since: str, until: str) -> tuple[Recorded, ...]:
    """Waits in all, those of the allocator's slow path, and what direct reclaims came to."""
    slow, every = ("slow_path_waits_n",), (*WAITED, *KSWAPD_WAITED)
    span = (since, until)
    return (
        Recorded(f"waits-{where}", every, *span),
        Recorded(f"slow-{where}", slow, *span),
        Recorded(f"slow-share-{where}", slow, *span, share_of=every),
        Recorded(f"reclaims-{where}", ("direct_reclaims",), *span),
        Recorded(f"failed-{where}", ("reclaims_without_page",), *span),
        Recorded(f"progress-{where}", ("reclaims_progress_without_page",), *span),
    )
