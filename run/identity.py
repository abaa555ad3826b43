# SPDX-License-Identifier: GPL-2.0-or-later
"""Identifies the user's repository and music: runs with different ones are not compared."""

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path

from contract import values
from contract.options import Options
from setup import history
from setup.kernels import absolute

UNKNOWN = "unknown"


def identified(options: Options) -> Options:
    """The options with absolute paths, and with the user's own data identified by content."""
    options = replace(
        options,
        device=_absolute(options.device),
        destroy_data=_absolute(options.destroy_data),
        baseline=_baseline(options.baseline),
        variants=tuple(
            replace(variant, kernel=absolute(variant.kernel)) for variant in options.variants
        ),
    )
    if options.repo is not None:
        repo = str(values.path(options.repo).absolute())
        head = _head(repo)
        options = replace(options, repo=repo, history=f"repo {head}")
        if head != UNKNOWN:  # a history shorter than --commits is read whole
            commits = history.count(Path(repo), options.commits)
            options = replace(options, commits=commits)
    if options.music is not None and not options.music.startswith("rsync://"):
        music = str(values.path(options.music).absolute())
        options = replace(options, music=music, music_kind=f"own {_listing(Path(music))}")
    return options


def _absolute(name: str | None) -> str | None:
    return None if name is None else str(values.path(name).absolute())


def _baseline(name: str | None) -> str | None:
    """The baseline, made absolute as kernels are if it is a path and not a label."""
    return absolute(name) if name is not None and "/" in name else name


def _head(repo: str) -> str:
    """The commit that is cloned; UNKNOWN if it is not a repository, which is refused later."""
    done = subprocess.run(
        ["git", "-C", repo, "rev-parse", "--verify", "-q", "HEAD"], capture_output=True, text=True
    )
    return done.stdout.strip() or UNKNOWN


def _listing(folder: Path) -> str:
    """The digest of the files' names and sizes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listing = [f"{path.relative_to(folder)}\0{path.stat().st_size}" for path in files]
    return hashlib.sha256("\n".join(listing).encode("utf-8", "surrogateescape")).hexdigest()[:16]
