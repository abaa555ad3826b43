# SPDX-License-Identifier: GPL-2.0-or-later
"""What a silent program can have waited for, and what a stall's card and a run's sums hold.

docs/explain/causes.md describes how the evidence shows each cause. All figures are in seconds.
"""

from dataclasses import dataclass, field

from analysis.figures.stalls import Stall
from contract.swap import DISK, ZRAM, ZSWAP


@dataclass(frozen=True)
class Cause:
    """A cause: its key in files, its words in a card, its short name in tables and pictures."""

    key: str
    words: str
    short: str


CAUSES = (
    Cause("swap_in", "waiting for swap-in from disk", "swap-in"),
    Cause("file_read", "waiting for file pages from disk", "file read"),
    Cause("file_write", "waiting for a write to a file", "file write"),
    Cause("dm_crypt", "waiting in dm-crypt, the disk idle", "dm-crypt"),
    Cause("reclaim_scan", "in direct reclaim, scanning", "reclaim: scan"),
    Cause("reclaim_swapout", "in direct reclaim, submitting swap-out", "reclaim: swap-out"),
    Cause("reclaim_writeback", "in direct reclaim, throttled on writeback", "reclaim: writeback"),
    Cause("reclaim_noprogress", "in direct reclaim, throttled on no progress", "reclaim: stuck"),
    Cause("reclaim_kswapd", "in direct reclaim, waiting for kswapd", "reclaim: kswapd"),
    Cause("compaction", "in direct compaction", "compaction"),
    Cause("cpu_starved", "runnable without a CPU", "CPU: starved"),
    Cause("cpu_running", "running on a CPU", "CPU: running"),
    Cause("lock", "waiting for a lock that another task held", "lock"),
    Cause("stopped", "stopped by a signal or a debugger", "stopped"),
    Cause("unexplained", "doing what no evidence tells", "unexplained"),
)
BY_KEY = {cause.key: cause for cause in CAUSES}
# Where a swap-in comes from: with zram no disk is read, behind zswap one at times is.
SWAP_IN_FROM = {ZRAM: "waiting for swap-in from zram", ZSWAP: "waiting for swap-in, disk or zswap"}
UNEXPLAINED = "unexplained"


def words(key: str, swap: str) -> str:
    """A cause's words in a run that swapped to this (contract.swap)."""
    if key == "swap_in" and swap in SWAP_IN_FROM:
        return SWAP_IN_FROM[swap]
    return BY_KEY[key].words


@dataclass(frozen=True)
class Card:
    """Why one stall lasted: `seconds` by cause adds up to the stall's length.

    `who`: cause -> who was in it and amid what, the longest first ("python3: amid swap-in", s).
    `stacks`: folded stack, innermost first, and the samples that showed it, most frequent first.
    `machine`: what disk and kswapd did meanwhile, a clause each ("disk idle 64 %").
    `samples`: looks at the stream's stacks; 0 if the clocks alone tell. `swap`: the run's kind.
    """

    stall: Stall
    seconds: dict[str, float]
    who: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    stacks: list[tuple[str, int]] = field(default_factory=list)
    machine: list[str] = field(default_factory=list)
    samples: int = 0
    swap: str = DISK

    @property
    def main(self) -> str:
        """The cause with the largest share."""
        return max(self.seconds, key=lambda key: self.seconds[key])


@dataclass(frozen=True)
class RunCauses:
    """A run's stalls of all its subjects, the longest first, and their seconds by cause.

    `notes`: what this kernel or this run lacks as evidence, a sentence each.
    `apart`: dm-crypt was told apart from the disk under it; if not, `dm_crypt` is part of the waits
    for the disk. `others`: stalls of player and heartbeat, in no sum. `swap`: the run's kind.
    `stored`: read from a bundle's causes.json, which has no card of `without_card` shorter stalls.
    """

    cards: list[Card]
    seconds: dict[str, float]
    notes: list[str] = field(default_factory=list)
    apart: bool = True
    others: list[Card] = field(default_factory=list)
    swap: str = DISK
    without_card: int = 0
    stored: bool = False

    @property
    def total(self) -> float:
        """All stalled seconds."""
        return sum(self.seconds.values())

    @property
    def unexplained(self) -> float:
        """Share (0 to 1) of the stalled time that no evidence explains."""
        return self.seconds.get(UNEXPLAINED, 0.0) / self.total if self.total > 0 else 0.0
