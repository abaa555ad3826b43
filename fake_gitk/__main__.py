# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a git history into memory as gitk does, and prints a line every N commits.

It runs the command that gitk runs, keeps every commit's raw text and a table parent -> children,
looks back over them (fake_gitk.layout), prints `pass P commits N`, discards all and starts again.
Per commit it keeps --commit-copies of the raw text, and about 250 bytes, the same in every pass
(docs/developer/fake-gitk.md has the figures). Python's cycle collector is off: it would walk the
whole heap at any time, which is not gitk's access pattern. Nothing here makes cycles.
"""

import argparse
import gc
import os
import subprocess
import sys

from contract import start_up
from errors import UserError, run_command
from fake_gitk.history import History
from fake_gitk.layout import STEP, Layout

LOG = ["log", "--no-color", "-z", "--pretty=raw", "--parents", "--boundary"]


def main(argv: list[str]) -> int:
    """The command; ends the process after the last pass with status 0, without freeing data."""
    options = _parse(argv)
    gc.disable()
    if options.wait:
        start_up.wait()
    layout = Layout(options.touch, options.seed, options.step)
    for number in range(1, options.passes + 1):
        history = History(options.commit_copies)
        layout.begin()
        _load(options, history, layout, number)
        if number < options.passes:
            history.discard()
    # An ordinary exit would read every object to free it.
    os._exit(0)


def _load(options: argparse.Namespace, history: History, layout: Layout, number: int) -> None:
    repo, every = options.repo, options.every
    most = [f"--max-count={options.commits}"] if options.commits else []
    complaints = os.memfd_create("git-stderr")
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        git = subprocess.Popen(
            ["git", "-C", repo, *LOG, *most, "HEAD"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=environment,
        )
    except FileNotFoundError:
        raise UserError("git is missing", hint="apt-get install git") from None
    assert git.stdout is not None
    count = last_printed = 0
    next_line = every
    for count in history.load(git.stdout.fileno()):
        if count >= layout.due:
            layout.look_back(history, count)
        if count == next_line:
            _say(number, count)
            last_printed = count
            next_line += every
    git.stdout.close()
    status = git.wait()
    words = os.pread(complaints, 4096, 0).decode(errors="replace").strip().splitlines()
    os.close(complaints)
    if status and not (count == 0 and _is_empty(repo)):
        how = f"signal {-status}" if status < 0 else f"status {status}"
        reason = f": {words[-1]}" if words else ""
        raise UserError(f"git log in {repo} ended with {how} after {count} commits{reason}")
    if last_printed != count or count == 0:
        _say(number, count)


def _say(number: int, count: int) -> None:
    os.write(1, b"pass %d commits %d\n" % (number, count))


def _is_empty(repo: str) -> bool:
    """Whether HEAD names a branch that has no commit yet."""

    def git(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(["git", "-C", repo, *words], capture_output=True, text=True)

    head = git("symbolic-ref", "-q", "HEAD")
    return head.returncode == 0 and git("show-ref", "--verify", head.stdout.strip()).returncode != 0


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m fake_gitk",
        description="Read a git history into memory as gitk does, again and again.",
    )
    parser.add_argument("--repo", required=True, metavar="DIR", help="the repository")
    parser.add_argument("--every", type=int, default=100, metavar="N", help="commits per line")
    parser.add_argument(
        "--commits",
        type=int,
        default=0,
        metavar="N",
        help="read only the N newest commits (default: all)",
    )
    parser.add_argument("--passes", type=int, default=1, metavar="N")
    parser.add_argument(
        "--touch", type=float, default=0.12, metavar="F", help="commits looked up per commit loaded"
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="S", help="seed of the access pattern"
    )
    parser.add_argument(
        "--step",
        type=int,
        default=STEP,
        metavar="N",
        help="mean number of commits between two looks back",
    )
    parser.add_argument(
        "--commit-copies", type=int, default=1, metavar="N", help="copies kept of each commit"
    )
    parser.add_argument(
        "--wait", action="store_true", help="print `ready`, begin when a line is read"
    )
    options = parser.parse_args(argv)
    least = {"every": 1, "commits": 0, "passes": 1, "touch": 0, "step": 2, "commit_copies": 1}
    for name, value in least.items():
        if not getattr(options, name) >= value:
            parser.error(f"--{name.replace('_', '-')} must be at least {value}")
    return options


if __name__ == "__main__":
    sys.exit(run_command("fake_gitk", lambda: main(sys.argv[1:])))
