# SPDX-License-Identifier: GPL-2.0-or-later
"""The source of a kernel: a git tree object. The user's checkout is only read.

The trees of a checkout with uncommitted changes, of a folder without a repository, and of a patch's
result are written to an object store in the cache, never to the user's. A tree's id stands for the
names and bytes of all its files: equal ids mean equal sources.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import Exit, UserError
from setup import cache

KIND, STORE = "kernel-sources", "objects.git"
SHORT = 12  # hex digits of a commit in a label, as kernel developers quote one
# The user's settings (autocrlf, filters, hooks) would change the bytes of a tree.
NEUTRAL = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}
MARKS = ("Kbuild", "Kconfig", "MAINTAINERS")  # files at the top of every kernel source


@dataclass(frozen=True)
class Source:
    """A kernel's source.

    label: the variant's name (`v7.2`, `v7.2-revert-acd22fbb9f47`, `v7.2+fix`). tree: the id of its
    git tree. objects: the object stores that have it. repository: the user's, for looking commits
    up, if there is one. commit: the commit from which it was made. package: the version of Debian's
    package. notes: lines for the user. unchanged: the tree of the commit or package before any
    change.
    """

    label: str
    tree: str
    objects: tuple[Path, ...] = ()
    repository: Path | None = None
    commit: str = ""
    package: str = ""
    notes: tuple[str, ...] = ()
    unchanged: str = ""

    @property
    def is_committed(self) -> bool:
        """Whether its commit describes it completely, apart from patches and reverts."""
        return bool(self.commit) and not self.notes

    @property
    def changes(self) -> bytes:
        """Its changes as a patch; empty if there are none."""
        if self.unchanged in ("", self.tree):
            return b""
        done = git(
            ["diff-tree", "-r", "-p", "--no-ext-diff", self.unchanged, self.tree], self.objects
        )
        text_of(done, f"the changes of {self.label}")
        return done.stdout


def store() -> Path:
    """The bare repository in the cache for the objects that are made here."""

    return cache.built(KIND, STORE, make_repository, ("objects",))


def make_repository(folder: Path) -> None:
    """Make an empty bare repository; UserError (3) if git cannot make it."""
    command = ["git", "init", "-q", "--bare", "--template=", str(folder)]
    text_of(subprocess.run(command, env=environment(), capture_output=True), "git init")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for git without the user's settings or those of a git that runs us."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**clean, **NEUTRAL, **(more or {})}


def git(
    arguments: Sequence[str],
    objects: Sequence[Path] = (),
    *,
    index: Path | None = None,
    worktree: Path | None = None,
    data: bytes | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git in the cache's repository; it reads these object stores, too."""
    more = {
        "GIT_DIR": str(store()),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(map(str, objects)),
    }
    if index is not None:
        more["GIT_INDEX_FILE"] = str(index)
    if worktree is not None:
        more["GIT_WORK_TREE"] = str(worktree)
    settings = ["-c", "core.looseCompression=1", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"]
    return subprocess.run(
        ["git", *settings, *arguments], env=environment(more), capture_output=True, input=data
    )


def text_of(done: subprocess.CompletedProcess[bytes], what: str) -> str:
    """The text that git printed; UserError (3) with its last line if it failed."""
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        raise UserError(f"{what}: {lines[-1]}")
    return done.stdout.decode(errors="surrogateescape").strip()


def from_git(path: Path, revision: str = "") -> Source:
    """The source of a revision of a repository, or of its current work tree.

    UserError: 2 if path or revision does not exist, 3 if git cannot read it.
    """
    objects, folder = _repository(path)
    commit = _user_git(path, "rev-parse", "--verify", "-q", f"{revision or 'HEAD'}^{{commit}}")
    if not commit:
        raise UserError(
            f"{path} has no revision {revision or 'HEAD'!r}",
            hint="a tag, a branch or a commit; git fetch gets what the clone lacks",
            status=Exit.USAGE,
        )
    label, tree = _name(path, revision, commit), _user_git(path, "rev-parse", f"{commit}^{{tree}}")
    source = Source(label, tree, (objects,), path, commit, unchanged=tree)
    if not revision:
        source = _as_it_is(source, folder)
    _check(source, str(path))
    return source


def from_folder(path: Path, label: str = "") -> Source:
    """The source in a folder, which need not be a repository; label: the folder's name by default.

    Files that .gitignore names are included; make refuses a folder in which make has run.
    """
    if not path.is_dir():
        raise UserError(f"no such folder: {path}", status=Exit.USAGE)
    index = cache.root() / KIND / f"index-{cache.key(str(path.resolve()))}"
    tree = _snapshot(path, (), index, "--force")
    source = Source(label or path.resolve().name, tree, (store() / "objects",))
    _check(source, str(path))
    return source


def _check(source: Source, name: str) -> None:
    listed = text_of(git(["ls-tree", "--name-only", source.tree], source.objects), name)
    if not set(MARKS) <= set(listed.split("\n")):
        raise UserError(f"{name} is not a kernel source", hint=f"it lacks {', '.join(MARKS)}")


def user_git(
    path: Path, *arguments: str, errors: str = "surrogateescape"
) -> subprocess.CompletedProcess[str]:
    """Run a git that only reads the user's repository, with the user's settings.

    errors: how to decode bytes that are not UTF-8 (see open()). UserError (3) if git does not trust
    the repository.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", "-C", str(path), *arguments],
        env={**clean, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        errors=errors,
    )
    if "dubious ownership" in done.stderr:
        raise UserError(
            f"{path} belongs to another user, and git does not trust it",
            hint=f"git config --global --add safe.directory {path.resolve()}",
        )
    return done


def _user_git(path: Path, *arguments: str) -> str:
    """The output of user_git(); "" if it fails."""
    done = user_git(path, *arguments)
    return "" if done.returncode else done.stdout.strip()


def _repository(path: Path) -> tuple[Path, Path]:
    """The repository's object store, and its folder with the index."""
    paths = _user_git(
        path, "rev-parse", "--path-format=absolute", "--git-path", "objects", "--absolute-git-dir"
    ).split("\n")
    if len(paths) != 2:
        raise UserError(
            f"{path} is no git repository",
            hint="give a clone, or debian-source:VERSION, which needs none",
            status=Exit.USAGE,
        )
    return Path(paths[0]), Path(paths[1])


def _name(path: Path, revision: str, commit: str) -> str:
    """The commit's name: `v7.2`, `v7.2-rc3-17-g0123456789ab`, or its id if no tag precedes it."""
    tag = _user_git(path, "rev-parse", "-q", "--verify", f"refs/tags/{revision}^{{commit}}")
    if revision and tag == commit:
        return revision
    described = _user_git(
        path, "describe", "--tags", "--match", "v[0-9]*", f"--abbrev={SHORT}", commit
    )
    return described or commit[:SHORT]


def _as_it_is(source: Source, folder: Path) -> Source:
    """The source of the work tree, including uncommitted changes and untracked files."""
    assert source.repository is not None
    top = _user_git(source.repository, "rev-parse", "--show-toplevel")
    if not top:
        raise UserError(
            f"{source.repository} has no work tree",
            hint=f"name a revision: git:{source.repository}@HEAD",
        )
    with cache.scratch("source-index") as scratch:
        index = scratch / "index"
        if (folder / "index").is_file():
            # The index has the files' times, so that git only reads changed files.
            shutil.copy2(folder / "index", index)
        ignored = _user_git(source.repository, "rev-parse", "--git-path", "info/exclude")
        exclude = Path(top, ignored)
        try:
            tree = _snapshot(Path(top), source.objects, index, exclude=exclude)
        except UserError:
            index.unlink(missing_ok=True)  # an index that cannot be read outside its repository
            git(["read-tree", source.tree], source.objects, index=index)
            tree = _snapshot(Path(top), source.objects, index, exclude=exclude)
    if tree == source.tree:
        return source
    objects = (*source.objects, store() / "objects")
    changed = text_of(
        git(["diff-tree", "-r", "--name-only", source.tree, tree], objects), "git diff-tree"
    ).splitlines()
    files = ", ".join(changed[:3]) + (" and others" if len(changed) > 3 else "")
    note = (
        f"git:{source.repository}: the work tree is built with its changes: {len(changed)} "
        f"file{'s' if len(changed) > 1 else ''} not as in {source.commit[:SHORT]}: {files}"
    )
    return Source(
        f"{source.label}-dirty", tree, objects, source.repository, source.commit, notes=(note,)
    )


def _snapshot(
    top: Path, objects: Sequence[Path], index: Path, *how: str, exclude: Path | None = None
) -> str:
    """Write the files of a folder into the store; returns the tree's id."""
    index.parent.mkdir(parents=True, exist_ok=True)
    more = ["-c", f"core.excludesFile={exclude}"] if exclude and exclude.is_file() else []
    done = git([*more, "add", "-A", *how, "--", "."], objects, index=index, worktree=top)
    text_of(done, f"reading {top}")
    return text_of(git(["write-tree"], objects, index=index), f"reading {top}")


def safe_label(text: str) -> str:
    """The text as a part of a label: only letters, digits and ._+-."""
    return re.sub(r"[^A-Za-z0-9._+-]", "-", text)
