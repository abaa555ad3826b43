# SPDX-License-Identifier: GPL-2.0-or-later
"""The view of a run in progress, from the files that the run is writing."""

import bisect
import contextlib
import math
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from contract.run_files import EVENTS, GITK, commits_read, latency_log
from contract.run_record import read_event
from errors import printable
from run.estimates import durations

if TYPE_CHECKING:  # rich is in the .venv, which hosts that only do runs lack
    from rich.table import Table

FROZE_S = 2.0
PLAIN_EVERY_S = 10.0
RATE_WINDOW_S = 10.0
EARLIEST_S = 30.0  # into the workload: its first seconds do not predict the rest


class Display(Protocol):
    """Where a view is shown: a terminal (run.screen), or the log of a job on another host."""

    @property
    def live(self) -> bool:
        """Whether tables are shown."""

    def add(self, shown: "View") -> None:
        """Show the table of a view from now on."""

    def remove(self, shown: "View") -> None:
        """Stop showing the table of a view."""

    def update(self) -> None:
        """Draw all tables as they are now."""

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""


class Tail:
    """Reads the new complete lines of a growing file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def lines(self) -> list[str]:
        """The lines that came since the last call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        self._offset += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in whole]


class Follower:
    """Follows one stream of a run."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.tail = Tail(path)
        self.heard: float | None = None
        self.ended = False
        self.froze = False
        self.counts: list[tuple[float, int]] = []
        self.lines = 0
        self.progress: list[tuple[float, int, int]] = []  # elapsed s, pass, commits of that pass

    def take(self, now: float, began: float | None = None) -> float:
        """Read new lines; returns the longest gap among them (seconds of the run's own clock).

        began: the start of the workload, if `now` is by that clock, too; both in seconds.
        """
        longest = 0.0
        for line in self.tail.lines():
            elapsed, _, rest = line.partition(" ")
            gap, _, text = rest.partition(" ")
            try:
                longest = max(longest, float(gap))
                self.heard = now if began is None else began + float(elapsed)
            except ValueError:
                continue
            if text == "[end]":
                self.ended = True
                continue
            self.lines += 1
            if (read := commits_read(text)) is not None:
                self.progress.append((float(elapsed), *read))
        self.counts.append((now, self.lines))
        while self.counts[0][0] < now - RATE_WINDOW_S:
            self.counts.pop(0)
        return longest

    def read_by(self, moment: float) -> tuple[int, int]:
        """The pass, and the commits that it had read, at this second of the workload."""
        past = bisect.bisect_right(self.progress, moment, key=lambda step: step[0])
        return self.progress[past - 1][1:] if past else (1, 0)

    def rate(self) -> float:
        """Lines per second over the last ten seconds."""
        (then, before), (now, lines) = self.counts[0], self.counts[-1]
        return (lines - before) / (now - then) if now > then else 0.0


class View:
    """Shows the progress of a run: a table on a terminal, plain lines elsewhere.

    own_clock: whether the guest has its own clock, by which silence is then measured; printed lines
    have both clocks' times. limit_s: seconds after which the run will be ended. named: its lines
    begin with its name, as other runs share the screen. expected: a run's duration as text, shown
    until commits are read.
    """

    def __init__(
        self,
        title: str,
        screen: Display,
        run_dir: Path,
        streams: Sequence[str],
        commits: int,
        passes: int,
        *,
        limit_s: float = math.inf,
        own_clock: bool = False,
        named: bool = False,
        expected: str = "",
    ) -> None:
        self._title = title
        self._screen = screen
        self._name = f"{title}: " if named else ""
        self._events = Tail(run_dir / EVENTS)
        self._meminfo = Tail(run_dir / "meminfo.tsv")
        self._columns: list[str] = []
        self._swap = ""
        self._phase = "booting"
        self._began = time.monotonic()
        self._workload: float | None = None
        self._own_clock = own_clock
        self._expected = expected
        self._elapsed = 0.0  # seconds of the workload by the run's clock, from its last line
        gitks = [name for name in streams if name.startswith(GITK)]
        self._total = len(gitks) * commits * passes
        self._commits = commits
        self._limit_s = limit_s
        self._warned = False
        self._said = self._began
        self._followers = [Follower(name, run_dir / latency_log(name)) for name in streams]

    def __enter__(self) -> "View":
        self._screen.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._screen.remove(self)

    def say(self, text: str) -> None:
        """Print a line with the time; it stays on the screen."""
        stamp = f"{time.monotonic() - self._began:6.1f} s"
        if self._own_clock and self._workload is not None:
            stamp += f", guest {self._elapsed:.1f} s"
        self._screen.say(f"[{stamp}] {self._name}{text}")

    def tick(self) -> None:
        """Read new lines and show the progress; to be called a few times per second."""
        now = time.monotonic()
        for line in self._events.lines():
            self._event(line, now)
        for line in self._meminfo.lines():
            self._memory(line.split("\t"))
        if self._workload is not None and self._phase == "workload":
            for follower in self._followers:
                self._follow(follower, self._guests(now))
            self._warn()
        if self._screen.live:
            self._screen.update()
        elif now - self._said >= PLAIN_EVERY_S and self._workload is not None:
            self._said = now
            self.say(self._headline(now))

    def _event(self, line: str, now: float) -> None:
        event = read_event(line) or {}
        if event.get("event") == "phase" and isinstance(event.get("name"), str):
            self._phase = event["name"]
            self.say({"workload": "the workload starts"}.get(self._phase, self._phase))
        elif event.get("event") == "start":
            self._workload = now

    def _memory(self, row: list[str]) -> None:
        if not self._columns:
            self._columns = row
            return
        values = dict(zip(self._columns, row, strict=False))
        try:
            used = int(values["SwapTotal"]) - int(values["SwapFree"])
        except (KeyError, ValueError):
            return
        self._swap = f"{used >> 10} MiB"
        with contextlib.suppress(KeyError, ValueError):
            self._elapsed = max(self._elapsed, float(values["elapsed_s"]))

    def _guests(self, now: float) -> float:
        """The moment `now`, in seconds of the clock by which silence is measured."""
        if not self._own_clock or self._workload is None:
            return now
        return self._workload + self._elapsed

    def _follow(self, follower: Follower, now: float) -> None:
        before = follower.heard
        longest = follower.take(now, self._workload if self._own_clock else None)
        if self._own_clock and self._workload is not None and follower.heard is not None:
            self._elapsed = max(self._elapsed, follower.heard - self._workload)
        since = follower.heard or self._workload or now
        if follower.froze and follower.heard != before:
            follower.froze = False
            self.say(f"{follower.name} was silent for {longest:.1f} s, and goes on")
        elif not follower.froze and not follower.ended and now - since >= FROZE_S:
            follower.froze = True
            self.say(f"{follower.name} froze: silent for {now - since:.1f} s")
        elif longest >= FROZE_S:
            self.say(f"{follower.name} was silent for {longest:.1f} s, and goes on")

    def so_far(self) -> str:
        """The share of the history that is read, and the time for the rest; '' if unknown."""
        if not (share := self._share()):
            return ""
        rest = self._rest() if share < 1 else ""
        return f"{share:.0%} of the commits were read{rest}"

    def _rest(self) -> str:
        """The time for the rest, judged by the last third of the run: a freeze comes late."""
        elapsed = min(self._elapsed, self._limit_s)  # samples go on while programs are ended
        late_s = elapsed / 3
        done, before = self._read_by(math.inf), self._read_by(elapsed - late_s)
        if done > before:
            left = (self._total - done) / (done - before) * late_s
            late = durations.words(late_s)
            return f"; the rest takes {durations.words(left)} at the pace of the last {late}"
        last = max(f.progress[-1][0] for f in self._followers if f.progress)
        return f", none in the last {durations.words(elapsed - last)}"

    def _warn(self) -> None:
        """Warn once that the run will not be done in time, as soon as that is likely."""
        if self._warned or self._elapsed < EARLIEST_S:
            return
        if self._left() > self._limit_s - self._elapsed:
            self._warned = True
            self.say(f"will not be done in time: {self._late()}; raise --timeout S")

    def _late(self) -> str:
        of = " of the guest's" if self._own_clock else ""
        until = durations.words(max(0.0, self._limit_s - self._elapsed))
        return f"about {durations.words(self._left())}{of} left, and its limit in {until}"

    def _share(self) -> float:
        """The share of commits that were read, 0 to 1."""
        return min(1.0, self._read_by(math.inf) / self._total) if self._total else 0.0

    def _read_by(self, moment: float) -> int:
        """The commits that were read until this second of the workload."""
        read = [f.read_by(moment) for f in self._followers if f.name.startswith(GITK)]
        return sum((passes - 1) * self._commits + commits for passes, commits in read)

    def _left(self) -> float:
        """Seconds of the run's clock until it is done, at the pace so far; 0 if unknown."""
        share = self._share()
        return self._elapsed * (1 - share) / share if share else 0.0

    def _headline(self, now: float) -> str:
        elapsed = now - (self._workload or now)
        text, hosts = f"{self._phase}, {elapsed:.0f} s", ""
        if self._own_clock and self._workload is not None:
            hosts = " of the host's"
            text = f"{self._phase}, {self._elapsed:.0f} s of the guest's in {elapsed:.0f} s{hosts}"
        if share := self._share():
            left = elapsed * (1 - share) / share
            text += f", {share:.0%} of the commits, about {left:.0f} s{hosts} left"
        elif self._expected:
            text += f", {self._expected}"
        if self._warned and self._left() > self._limit_s - self._elapsed:
            text += f"; {self._late()}"
        if self._swap:
            text += f", {self._swap} in swap"
        frozen = [f.name for f in self._followers if f.froze]
        if frozen:
            text += f", frozen: {' '.join(frozen)}"
        return text

    def table(self) -> "Table":
        """The table of the streams at this moment."""
        from rich.table import Table
        from rich.text import Text

        now = time.monotonic()
        heading = printable(f"{self._title}: {self._headline(now)}")
        title = Text(heading, style="table.title")
        table = Table(title=title, title_justify="left")
        table.add_column("stream")
        for column in ("lines", "lines/s", "commits", "silent for"):
            table.add_column(column, justify="right", min_width=9)
        for follower in self._followers:
            silent = max(0.0, self._guests(now) - (follower.heard or self._guests(now)))
            table.add_row(
                follower.name,
                str(follower.lines),
                f"{follower.rate():.1f}" if follower.counts else "",
                str(commits) if (commits := follower.read_by(math.inf)[1]) else "",
                "ended" if follower.ended else f"{silent:.1f} s",
                style="bold reverse" if follower.froze else None,
            )
        return table
