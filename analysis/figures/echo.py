# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads how many echoes of the atomic load were lost: the last line of stream `echo`.

docs/findings/atomic-allocations.md describes the load.
"""

import re
from dataclasses import dataclass

from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from contract.run_files import ECHO

ENOUGH = 0.5  # atomic allocations per echo; with fewer the load is not what it claims to be
LINE = re.compile(r"echo (\d{1,12}) lost (\d{1,12}) missed (\d{1,12})")


@dataclass(frozen=True)
class Echoes:
    """Counts of requests up to the last line.

    `rate`: requests per second. `per_echo`: measured allocations of `order` per echo. `checked`:
    why they were not measured; None if they were.
    """

    sent: int
    lost: int  # replies that did not come within 1 s
    missed: int  # not sent: too late, or no memory for the request
    order: int | None = None
    rate: int | None = None
    checked: str | None = None
    per_echo: float | None = None

    def words(self) -> str:
        """The clauses for the summary."""
        parts = ["1 echo" if self.sent == 1 else f"{self.sent:,} echoes"]
        parts.append(f"{self.lost:,} replies lost" if self.lost != 1 else "1 reply lost")
        if self.missed:
            parts.append(f"{self.missed:,} not sent in time")
        text = ", ".join(parts)
        if self.per_echo is not None and self.per_echo < ENOUGH:
            return (
                f"{text}; NOT the load that was asked for: {self.per_echo:g} order-{self.order} "
                "atomic allocations for each"
            )
        if self.per_echo is not None:
            return text + f"; {self.per_echo:g} order-{self.order} atomic allocations for each"
        if self.checked:
            return text + f"; their order was not checked ({safe_line(self.checked, 100)})"
        return text


def echoes(run: Run) -> Echoes | None:
    """The counts in the last line of the stream; None if there was no such load or line."""
    stream = run.streams.get(ECHO)
    if stream is None:
        return None
    counts = next(
        (match for line in reversed(stream.lines) if (match := LINE.fullmatch(line))), None
    )
    if counts is None:
        return None
    order, rate = (number(run.fact("atomic", key)) for key in ("order", "rate"))
    checked = run.fact("atomic", "checked")
    return Echoes(
        int(counts[1]),
        int(counts[2]),
        int(counts[3]),
        order=None if order is None else int(order),
        rate=None if rate is None else int(rate),
        checked=checked if isinstance(checked, str) and checked != "yes" else None,
        per_echo=number(run.fact("atomic", "per_echo")),
    )
