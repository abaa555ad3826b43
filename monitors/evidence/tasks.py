# SPDX-License-Identifier: GPL-2.0-or-later
"""The tasks of a stream: its program's threads and those of all its descendants.

From /proc/PID/task and /proc/PID/task/TID/children (3.5 on, CONFIG_PROC_CHILDREN). What is read
again and again stays open: a read of an open /proc/PID/task/TID/stat costs half of one by path.
"""

from __future__ import annotations

import os

from monitors.lines import escape

STAT_BYTES = 1024
MOST_TASKS = 64  # of a stream: what a bomb of forks has beyond that is not looked at


def names_in(folder: str) -> list[str]:
    """The names in a folder of /proc."""
    return os.listdir(folder)  # noqa: PTH208 (pathlib is 1 MiB of locked memory)


def thread_links(process: int) -> int:
    """Changes with the number of its threads: two more than that (proc_task_getattr)."""
    return os.stat(f"/proc/{process}/task").st_nlink  # noqa: PTH116 (as above)


class Stat:
    """What /proc/PID/task/TID/stat (proc(5)) says: comm as it is, state, faults so far."""

    __slots__ = ("comm", "majflt", "minflt", "state")

    def __init__(self, line: bytes) -> None:
        head, _, rest = line.rpartition(b") ")
        fields = rest.split(None, 10)
        self.comm = head.partition(b"(")[2]
        self.state, self.minflt, self.majflt = fields[0], fields[7], fields[9]


class Task:
    """One thread; `cell` is its comm as tables have it."""

    def __init__(self, process: int, pid: int) -> None:
        """OSError if it is gone."""
        self.process, self.pid = process, pid
        self.children = b""
        self._folder = f"/proc/{process}/task/{pid}"
        self._fds: dict[str, int] = {}
        self._comm, self.cell = b"", b""
        self._open("stat")

    def stat(self) -> Stat:
        """OSError if it is gone."""
        try:
            found = Stat(self._read("stat", STAT_BYTES))
        except (IndexError, ValueError) as error:
            raise ProcessLookupError(str(error)) from None
        if found.comm != self._comm:
            self._comm, self.cell = found.comm, escape(found.comm).encode()
        return found

    def stack(self) -> bytes:
        """Where it waits, as /proc/PID/stack prints it; OSError if that may not be read."""
        return self._read("stack", 4096)

    def wchan(self) -> bytes:
        """The function that it waits in, as /proc/PID/wchan names it."""
        return self._read("wchan", 256)

    def new_children(self) -> bool:
        """Whether it has other children than at the last call."""
        try:
            now = self._read("children", 4096)
        except FileNotFoundError:
            return False  # no CONFIG_PROC_CHILDREN
        changed, self.children = now != self.children, now
        return changed

    def close(self) -> None:
        """Close what it holds open."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}

    def _open(self, name: str) -> int:
        fd = self._fds[name] = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        return fd

    def _read(self, name: str, size: int) -> bytes:
        fd = self._fds.get(name, -1)
        return os.pread(fd if fd >= 0 else self._open(name), size, 0)


class StreamTasks:
    """The tasks of the program `pid`, found again when one of them got children or threads."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.tasks: list[Task] = []
        self._threads: dict[int, int] = {}  # process: links of its /proc/PID/task
        self._find()

    def refresh(self) -> None:
        """Look for tasks that came and that went."""
        changed = False
        for task in self.tasks:
            try:
                changed = task.new_children() or changed
                if task.pid == task.process:
                    links = thread_links(task.pid)
                    changed = changed or links != self._threads.get(task.pid)
            except OSError:
                changed = True
        if changed:
            self._find()

    def close(self) -> None:
        """Forget all of them."""
        for task in self.tasks:
            task.close()
        self.tasks = []

    def _find(self) -> None:
        before = {task.pid: task for task in self.tasks}
        # A task whose parent has ended is no longer found from above, and still is the stream's.
        queue = [self.pid, *dict.fromkeys(task.process for task in self.tasks)]
        found: list[Task] = []
        seen: set[int] = set()
        self._threads = {}
        while queue and len(found) < MOST_TASKS:
            process = queue.pop(0)
            if process in seen:
                continue
            seen.add(process)
            try:
                names = names_in(f"/proc/{process}/task")
                self._threads[process] = thread_links(process)
            except OSError:
                continue
            for pid in sorted(map(int, names))[: MOST_TASKS - len(found)]:
                try:
                    task = before.pop(pid, None) or Task(process, pid)
                    found.append(task)
                    task.new_children()
                except OSError:
                    continue
                queue += map(int, task.children.split())
        for task in before.values():
            task.close()
        self.tasks = found
