# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a bisect's state: reads it from its folder, or makes it for a new bisect."""

import shlex
from pathlib import Path

from contract.values import path as user_path
from errors import Exit, UserError
from run.bisect import hunks, rows, state
from run.bisect.options import Asked
from run.bisect.state import Stage, State, Step
from run.preparation import say


def opened(asked: Asked, folder: Path, mirror: str | None) -> State:
    """The state in the folder; with a new bisect it is made and written first."""
    if asked.resume:
        return state.read(folder)
    if state.is_bisect(folder):
        raise UserError(
            f"{folder} holds a bisect",
            hint=f"--resume {shlex.quote(str(folder))} goes on with it",
        )
    begun = State(asked.command, "kernels", good=asked.good, bad=asked.bad)
    if asked.hunks or asked.tree:
        begun.kind = "hunks" if asked.hunks else "commits"
        begun.paths = [] if asked.hunks else list(asked.paths)
        given = str(user_path(asked.tree).absolute())
        begun.tree = _hunks(asked, folder, mirror) if asked.hunks else given
        row = _commits(asked, begun)
    else:
        row = rows.debian_row(asked.good, asked.bad, mirror)
    begun.steps |= {step.name: step for step in row}
    begun.stages = [Stage([step.name for step in row])]
    begun.write(folder)
    say(f"{len(row) - 1} {'kernels' if begun.kind == 'kernels' else begun.kind} to search")
    return begun


def _hunks(asked: Asked, folder: Path, mirror: str | None) -> str:
    """Make the history of hunks in the bisect's folder; its path."""
    repository = folder / "hunks.git"
    sources = [hunks.source_of(tree, mirror) for tree in (asked.good, asked.bad)]
    hunks.make_history(repository, sources[0], sources[1], asked.paths)
    return str(repository)


def _commits(asked: Asked, state: State) -> list[Step]:
    tree = rows.Tree(state.tree, asked.kernel_config)
    if state.kind == "hunks":
        bad = tree.commit(hunks.HEAD)
        good = tree.git("rev-list", "--max-parents=0", bad)
    else:
        good, bad = tree.commit(state.good), tree.commit(state.bad)
    row = tree.row(good, bad, state.paths)
    if len(row) < 2 or good == bad:
        raise UserError(f"{state.good} and {state.bad} are one commit", status=Exit.USAGE)
    if asked.newest:
        newest = tree.step(tree.commit(asked.newest))
        if newest.commit in (good, bad):
            raise UserError("--newest is one of the ends", status=Exit.USAGE)
        state.steps[newest.name] = newest
        state.newest = newest.name
    return row
