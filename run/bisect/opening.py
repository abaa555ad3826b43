# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a bisect's state: reads it from its folder, or makes it for a new bisect."""

import functools
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from contract.values import path as user_path
from errors import Exit, UserError
from run.bisect import hunks, rows, state
from run.bisect.options import BisectRequest
from run.bisect.state import Stage, State, Step
from run.preparation import say
from setup.trees import build, configs, hunk_check
from setup.trees.failures import NotBuilt
from setup.trees.progress import Shown
from setup.trees.sources import from_git

EACH_S = 20.0  # between two lines of progress


def opened(asked: BisectRequest, folder: Path, mirror: str | None) -> State:
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
        begun.tree = str(user_path(asked.tree).absolute())
        if asked.hunks:
            begun.tree, begun.left_out = _hunks(asked, folder, mirror)
        row = _commits(asked, begun)
    else:
        row = rows.debian_row(asked.good, asked.bad, mirror)
    begun.steps |= {step.name: step for step in row}
    begun.stages = [Stage([step.name for step in row])]
    begun.write(folder)
    say(f"{len(row) - 1} {'kernels' if begun.kind == 'kernels' else begun.kind} to search")
    return begun


def _hunks(asked: BisectRequest, folder: Path, mirror: str | None) -> tuple[str, list[str]]:
    """Make the history of hunks in the bisect's folder: its path, and the hunks left out."""
    repository = folder / "hunks.git"
    old, new = (hunks.source_of(tree, mirror) for tree in (asked.good, asked.bad))
    differ = hunks.difference(old, new, asked.paths)
    hunks.make_history(repository, differ, differ.changes)
    config = configs.find(asked.kernel_config)
    left_out: list[str] = []
    try:
        bad = from_git(repository, hunks.HEAD)
        build.build_kernel(bad, config, mirror=mirror, progress=Shown())
    except NotBuilt as error:
        say(f"with all {len(differ.changes)} hunks: {error}")
        error.keep_log(folder / "all-hunks.log")
        kept = _that_compile(differ, config, mirror)
        if not kept:
            raise UserError(
                f"none of the hunks compiles on {differ.old.label} by itself",
                hint="give more --paths: they need other files of the new tree",
            ) from None
        left_out = [str(change) for change in differ.changes if change not in kept]
        hunks.make_history(repository, differ, kept)
    return str(repository), left_out


def _that_compile(
    differ: hunks.Difference, config: configs.Config, mirror: str | None
) -> Sequence[hunks.Change]:
    """The hunks that compile and link together on the old tree."""
    say(f"searching those that compile on {differ.old.label} without the rest of the new tree")
    paths = list(differ.files)
    tried, last = 0, time.monotonic()
    with hunk_check.checking(differ.old, config, paths, mirror=mirror, progress=Shown()) as check:

        def compiles(changes: Sequence[hunks.Change], *, linked: bool) -> bool:
            nonlocal tried, last
            tried += 1
            if time.monotonic() - last > EACH_S:
                last = time.monotonic()
                say(f"  {len(changes)} of {len(differ.changes)} hunks, attempt {tried}")
            return not check.problem(differ.contents(changes), linked=linked)

        # Compiling without a result takes a second, and leaves few for the linker.
        kept = hunks.that_compile(differ.changes, functools.partial(compiles, linked=False))
        kept = hunks.that_compile(kept, functools.partial(compiles, linked=True))
    say(f"{len(kept)} of {len(differ.changes)} hunks compile together: these are searched")
    return kept


def _commits(asked: BisectRequest, state: State) -> list[Step]:
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
