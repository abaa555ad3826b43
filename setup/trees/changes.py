# SPDX-License-Identifier: GPL-2.0-or-later
"""Patches and reverts: make a new Source from another, without touching its checkout."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from errors import Exit, UserError
from setup import cache
from setup.trees.failures import PatchDoesNotApply, RevertConflicts
from setup.trees.sources import SHORT, Source, git, safe_label, store, text_of

APPLY = ("apply", "--cached", "--whitespace=nowarn", "-v")
CONFLICT = re.compile(r"^(?:U |error: patch failed: )([^:\n]+)", re.MULTILINE)


def patched(source: Source, patches: Sequence[Path]) -> Source:
    """The source with these patch files applied in order: diffs, mails or mailboxes.

    UserError (2) for a missing file; PatchDoesNotApply.
    """
    label = source.label + "".join(f"+{safe_label(patch.stem)}" for patch in patches)
    for patch in patches:
        try:
            data = patch.read_bytes()
        except OSError as error:
            raise UserError(f"the patch {patch}: {error.strerror}", status=Exit.USAGE) from None
        source = patched_with(source, data, str(patch), label)
    return source


def patched_with(source: Source, data: bytes, name: str, label: str) -> Source:
    """The source with a patch applied; name: the patch's name in errors. PatchDoesNotApply."""
    done, tree = _applied(source, data, ())
    if done.returncode:
        log = _text(done)
        conflict = CONFLICT.search(log)
        where = f" in {conflict[1]}" if conflict else f": {_last(log)}"
        again, _ = _applied(source, data, ("--reverse",))
        hint = "this source has all of it already" if again.returncode == 0 else ""
        raise PatchDoesNotApply(
            f"{label}: {name} does not apply to {source.label}{where}",
            log=log,
            label=label,
            hint=hint,
        )
    if tree == source.tree:
        raise PatchDoesNotApply(
            f"{label}: {name} changes nothing in {source.label}", log=_text(done), label=label
        )
    return _with(source, tree, label)


def reverted(source: Source, commits: Sequence[str]) -> Source:
    """The source with these commits reverted, one after the other.

    UserError (2) if the source's repository lacks a commit; RevertConflicts.
    """
    for commit in commits:
        source = _reverted(source, commit)
    return source


def _reverted(source: Source, wanted: str) -> Source:
    if source.repository is None:
        raise UserError(
            f"{source.label} has no history to find the commit {wanted} in",
            hint="revert in a clone: --kernel git:PATH@REV; or give the reverse change as --patch",
            status=Exit.USAGE,
        )
    parents = git(["rev-list", "--parents", "-n", "1", wanted, "--"], source.objects)
    ids = parents.stdout.decode().split()
    if parents.returncode or not ids:
        raise UserError(
            f"{source.repository} has no commit {wanted}",
            hint="git fetch gets what the clone lacks",
            status=Exit.USAGE,
        )
    commit = ids[0]
    label = f"{source.label}-revert-{commit[:SHORT]}"
    if len(ids) > 2:
        raise UserError(
            f"{commit[:SHORT]} is a merge", hint="name the commits to revert", status=Exit.USAGE
        )
    # A root commit's change is relative to the empty tree.
    empty = text_of(git(["mktree"], data=b""), "git mktree")
    before = ids[1] if len(ids) == 2 else empty
    diff = git(["diff-tree", "-p", "--binary", "--full-index", before, commit], source.objects)
    text_of(diff, f"the change of {commit[:SHORT]}")
    done, tree = _applied(source, diff.stdout, ("--reverse", "--3way"))
    if done.returncode or tree == source.tree:
        log = _text(done)
        files = list(dict.fromkeys(CONFLICT.findall(log)))
        inside = git(["merge-base", "--is-ancestor", commit, source.commit], source.objects)
        raise RevertConflicts(
            f"{label}: {commit[:SHORT]} cannot be reverted on {source.label}"
            + (f": conflict in {', '.join(files)}" if files else ""),
            log=log,
            label=label,
            hint="" if inside.returncode == 0 else f"it is not among the commits of {source.label}",
        )
    return _with(source, tree, label)


def _with(source: Source, tree: str, label: str) -> Source:
    objects = tuple(dict.fromkeys((*source.objects, store() / "objects")))
    return replace(source, tree=tree, label=label, objects=objects)


def _applied(
    source: Source, data: bytes, how: Sequence[str]
) -> tuple[subprocess.CompletedProcess[bytes], str]:
    """The result of git apply, and the tree that it made, "" if it failed."""
    with cache.scratch("patch-index") as scratch:
        index = scratch / "index"
        text_of(git(["read-tree", source.tree], source.objects, index=index), source.label)
        done = git([*APPLY, *how], source.objects, index=index, data=data)
        if done.returncode:
            return done, ""
        return done, text_of(git(["write-tree"], source.objects, index=index), source.label)


def _text(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stdout + done.stderr).decode(errors="replace")


def _last(log: str) -> str:
    lines = [line for line in log.splitlines() if line.startswith("error:")] or log.splitlines()
    return lines[-1].removeprefix("error: ") if lines else "git printed nothing"
