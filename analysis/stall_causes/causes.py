# SPDX-License-Identifier: GPL-2.0-or-later
"""The causes of stalls, and the types for a stall's card and a run's sums.

docs/explain/causes.md describes how the evidence shows a cause. All times are in seconds.
"""

from dataclasses import dataclass, field

from analysis.figures.stalls import Stall
from contract.swap import DISK, ZRAM, ZSWAP


@dataclass(frozen=True)
class Cause:
    """A cause: its key in files, its text in a card, its short name in tables and pictures."""

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
    Cause("unexplained", "unexplained", "unexplained"),
)
BY_KEY = {cause.key: cause for cause in CAUSES}
# The source of a swap-in: zram reads no disk, zswap sometimes does.
SWAP_IN_FROM = {ZRAM: "waiting for swap-in from zram", ZSWAP: "waiting for swap-in, disk or zswap"}
UNEXPLAINED = "unexplained"


def words(key: str, swap: str) -> str:
    """A cause's text; swap: what the run swapped to (contract.swap)."""
    if key == "swap_in" and swap in SWAP_IN_FROM:
        return SWAP_IN_FROM[swap]
    return BY_KEY[key].words


@dataclass(frozen=True)
class Card:
    """The causes of a stall: cause -> `seconds`, which add up to the stall's length.

    `who`: cause -> (task and what it was doing, s), longest first ("python3: amid swap-in", 2.5).
    `stacks`: (folded stack, innermost function first; number of samples), most frequent first.
    `machine`: a clause for each thing that disk and kswapd did meanwhile ("disk idle 64 %").
    `samples`: number of samples of the stream's stacks; 0 if only clocks are known. `swap`: the
    kind of the run's swap (contract.swap).
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
        """The key of the cause with the most seconds."""
        return max(self.seconds, key=lambda key: self.seconds[key])


@dataclass(frozen=True)
class RunCauses:
    """The cards of all stalls of a run's subjects, the longest first; cause -> their `seconds`.

    `notes`: a sentence for each lack of evidence. `apart`: dm-crypt was measured apart from the
    disk under it; if not, its time is part of the waits for the disk. `others`: cards of player and
    heartbeat, in no sum. `swap`: the kind of the run's swap. `stored`: read from a bundle's
    causes.json, which lacks the cards of the `without_card` shortest stalls.
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
        """The sum of the stalled seconds."""
        return sum(self.seconds.values())

    @property
    def unexplained(self) -> float:
        """Share (0 to 1) of the stalled time that no evidence explains."""
        return self.seconds.get(UNEXPLAINED, 0.0) / self.total if self.total > 0 else 0.0
