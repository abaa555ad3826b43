# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite itself: where it lies, and which commit it is."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str:
    """The suite's commit, with `-dirty` if its files differ from it; `unknown` outside git."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"],
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() if done.returncode == 0 else "unknown"
