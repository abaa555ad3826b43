# SPDX-License-Identifier: GPL-2.0-or-later
"""The nodes as the driver sees them: what each does and has done, and which are left out."""

from collections.abc import Callable, Iterable

from run.hosts.hosts_table import HostRow
from run.slurm.tasks import SlurmTask

MOST_CUT = 3  # runs in a row that were cut short on a node, which is left out then


class Nodes:
    """All nodes that did runs. say: is given the line about a node that is left out."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.excluded: set[str] = set()
        self._say = say
        self._rows: dict[str, HostRow] = {}

    def finished(self, node: str) -> None:
        """It has done a run."""
        row = self._row(node)
        row.done, row.cut_in_a_row = row.done + 1, 0

    def cut(self, node: str, why: str) -> None:
        """A run was cut short there, for a reason that may be the node's."""
        row = self._row(node)
        row.cut_in_a_row += 1
        if row.cut_in_a_row >= MOST_CUT:
            self.leave_out(node, f"{MOST_CUT} runs in a row were cut short there: {why}")

    def leave_out(self, node: str, why: str) -> None:
        """It gets no more runs."""
        if node not in self.excluded:
            self.excluded.add(node)
            self._row(node).note = f"left out: {why}"
            self._say(f"{node} is left out: {why}")

    def rows(self, tasks: Iterable[SlurmTask], pending: int, away: str) -> list[HostRow]:
        """A row for each, and the last one of what waits in the queue, and why.

        pending: how many runs are not submitted yet. away: why the controller does not answer.
        """
        for row in self._rows.values():
            row.runs = []
        reasons = {away} if away else set()
        for task in tasks:
            if task.node:
                self._row(task.node).runs.append((task.job.title, task.progress.words))
            else:
                pending += 1
                reasons |= {task.queued.reason} if task.queued else set()
        queue = HostRow("(queue)", note=", ".join(sorted(reasons - {"None"})), waiting=pending)
        return [*(self._rows[name] for name in sorted(self._rows)), queue]

    def _row(self, node: str) -> HostRow:
        return self._rows.setdefault(node, HostRow(node))
