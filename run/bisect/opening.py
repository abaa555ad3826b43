# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisect's state: the one that is in its folder, or of one that begins."""

import shlex
from pathlib import Path

from contract.values import path as user_path
from errors import Exit, UserError
from run.bisect import hunks, rows, state
from run.bisect.options import Asked
from run.bisect.state import Stage, State, Step
from run.preparation import say


def opened(asked: Asked, folder: Path, mirror: str | None) -> State:
    """The state that is there, or of a bisect that begins; it is in the folder then."""
    if asked.resume:
        return state.read(folder)
    if state.is_bisect(folder):
        raise UserError(
            f"{folder} holds a bisect",
            hint=f"--resume {shlex.quote(str(folder))} goes on with it",
        )
    found = State(asked.command, "kernels", good=asked.good, bad=asked.bad)
    if asked.hunks or asked.tree:
        found.kind = "hunks" if asked.hunks else "commits"
        found.paths = [] if asked.hunks else list(asked.paths)
        given = str(user_path(asked.tree).absolute())
        found.tree = _hunks(asked, folder, mirror) if asked.hunks else given
        row = _commits(asked, found)
    else:
        row = rows.debian_row(asked.good, asked.bad, mirror)
    found.steps |= {one.name: one for one in row}
    found.stages = [Stage([one.name for one in row])]
    found.write(folder)
    say(f"{len(row) - 1} {'kernels' if found.kind == 'kernels' else found.kind} to search")
    return found


def _hunks(asked: Asked, folder: Path, mirror: str | None) -> str:
    """The history of the hunks, which is made in the bisect's folder."""
    repository = folder / "hunks.git"
    sources = [hunks.source_of(one, mirror) for one in (asked.good, asked.bad)]
    hunks.make_history(repository, sources[0], sources[1], asked.paths)
    return str(repository)


def _commits(asked: Asked, found: State) -> list[Step]:
    tree = rows.Tree(found.tree, asked.kernel_config)
    if found.kind == "hunks":
        bad = tree.commit(hunks.HEAD)
        good = tree.git("rev-list", "--max-parents=0", bad)
    else:
        good, bad = tree.commit(found.good), tree.commit(found.bad)
    row = tree.row(good, bad, found.paths)
    if len(row) < 2 or good == bad:
        raise UserError(f"{found.good} and {found.bad} are one commit", status=Exit.USAGE)
    if asked.newest:
        newest = tree.step(tree.commit(asked.newest))
        if newest.commit in (good, bad):
            raise UserError("--newest is one of the ends", status=Exit.USAGE)
        found.steps[newest.name] = newest
        found.newest = newest.name
    return row
