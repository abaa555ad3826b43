# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite itself: where it lies, and which commit it is."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str:
    """The suite's commit, with `-dirty` if its files differ from it or others are there.

    `unknown` outside git.
    """
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "unknown"
    return commit + ("-dirty" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
