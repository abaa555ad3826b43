# SPDX-License-Identifier: GPL-2.0-or-later
"""A program whose output is recorded. Imports next to nothing: the recorder is locked in memory."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import time

READY = b"ready\n"
READY_S = 120.0  # an emulated machine may take its time
# Python ignores two, and the recorder the third: a program that is executed would inherit that.
IGNORED = (_signal.SIGPIPE, _signal.SIGXFSZ, _signal.SIGINT)


class StartError(Exception):
    """A program could not be started, in one line."""


class Stream:
    """A program whose output is a stream: env is its whole environment.

    On a terminal (pty) any program prints line by line. What a terminal holds is handed on by a
    kernel worker, though, which may itself wait for memory: a program that does not buffer is
    recorded more exactly through a pipe. One that waits prints `ready` when it has started up, and
    begins when it reads a line: neither is a part of its stream.
    """

    def __init__(
        self,
        name: str,
        argv: list[str],
        env: dict[str, str],
        *,
        pty: bool = False,
        waits: bool = False,
    ) -> None:
        self.name = name
        self.argv = argv
        self.env = env
        self.pty = pty
        self.waits = waits


class Child:
    """What the recorder knows of a program: its pid, and the fd that its output comes from."""

    pid: int
    fd: int

    def signal(self, number: int) -> None:
        """Send a signal to the program and all that it started."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def wait_ready(self, name: str) -> None:
        """Return when the program has said that it has started up."""
        until = time.monotonic() + READY_S
        said = b"\n"
        while not said.endswith(b"\n" + READY):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                last = _last_line(said)
                raise StartError(
                    f"{name} did not start up within {READY_S:.0f} s" + (last and f": {last}")
                )
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""  # a terminal says EIO when its program has ended
            if not data:
                raise StartError(f"{name} ended before it was ready: {_last_line(said)}")
            said += data

    def go(self) -> None:
        """Let a program that waits begin."""
        raise NotImplementedError

    def close(self) -> None:
        """Close our end of its output."""
        raise NotImplementedError

    def kill(self) -> None:
        """End and reap a program that is not recorded yet."""
        self.signal(_signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.close()


class PipeChild(Child):
    """A program that writes to a pipe: a line is read as soon as it is written."""

    def __init__(self, stream: Stream) -> None:
        given, self._to = os.pipe2(os.O_CLOEXEC)
        self.fd, taken = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, given, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, taken, target) for target in (1, 2)]
        try:
            self.pid = os.posix_spawnp(
                stream.argv[0],
                stream.argv,
                stream.env,
                file_actions=actions,
                setsid=True,
                setsigdef=IGNORED,
                scheduler=(os.SCHED_OTHER, os.sched_param(0)),
            )
        except OSError as error:
            self.close()
            os.close(self._to)
            raise StartError(f"cannot start {stream.name}: {error.strerror}") from None
        finally:
            os.close(given)
            os.close(taken)
        become_ordinary(self.pid)
        if not stream.waits:
            os.close(self._to)

    def go(self) -> None:
        try:
            os.write(self._to, b"go\n")
        except BrokenPipeError:
            return  # it has ended already, which its output says
        finally:
            os.close(self._to)

    def close(self) -> None:
        os.close(self.fd)


def _last_line(said: bytes) -> str:
    return said.decode(errors="replace").strip().split("\n")[-1]


def become_ordinary(pid: int) -> None:
    """Let the kernel kill this program for lack of memory, as it may any other."""
    try:
        fd = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, b"0")
    except OSError:
        pass
    finally:
        os.close(fd)
