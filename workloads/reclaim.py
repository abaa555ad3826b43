# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures about direct reclaim and the waits in it, between two moments of a workload.

They are sums of columns of trace.tsv. The five of reference/000 and the six of 003 keep the names
that they have there.
"""

from contract.workload import FigureTable, Recorded, TableRow

# The waits of the page allocator and kswapd: for congestion up to 5.15, since 5.16 (8cd7c588decf)
# in throttles, one for each reason. analysis.reclaim_tables has the same list.
WAITED = ("congestion_wait_n", "wait_iff_congested_n", "throttled_*_n")
KSWAPD_WAITED = tuple(f"kswapd_{name}" for name in WAITED)
COLUMNS = ("pg-Stall", "pg-Wait ms", "pg-Rclm", "ksd-stall", "ksd-wait ms")


def waits(where: str, since: str = "", until: str = "") -> tuple[Recorded, ...]:
    """The count and ms of tasks' waits, then of kswapd's, between two moments.

    where: part of the keys.
    """

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
    """The five figures of the mail (counts, ms, pages), between two moments.

    where: part of the keys.
    """
    waited = waits(where, since, until)
    freed = Recorded(f"pg-rclm-{where}", ("direct_reclaim_pages",), since, until)
    return (*waited[:2], freed, *waited[2:])


def stalls_table(title: str, where: str) -> FigureTable:
    """A table with these five figures in one row."""
    keys = tuple(one.key for one in stalls(where))
    return FigureTable(title, COLUMNS, (TableRow("", keys),))


def reclaims(where: str, since: str, until: str) -> tuple[Recorded, ...]:
    """The counts of all waits, of slow-path waits, and of direct reclaims by result."""
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
