# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite's own checkout: its folder, version and commit."""

import argparse
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"


def commit() -> str:
    """The suite's commit, with `-dirty` if files were changed or added since.

    `unknown` outside git.
    """
    commit = _git("rev-parse", "--short=12", "HEAD")
    if commit is None:
        return "unknown"
    return commit + ("-dirty" if _git("status", "--porcelain") else "")


class ShowVersion(argparse.Action):
    """An option that prints the version and the commit, then exits."""

    def __init__(self, option_strings: list[str], dest: str, **more: Any) -> None:
        more |= {"nargs": 0, "default": argparse.SUPPRESS}
        more.setdefault("help", "print the suite's version and commit, and exit")
        super().__init__(option_strings, dest, **more)

    def __call__(self, parser: argparse.ArgumentParser, *parsed: Any) -> None:
        """Print the version and the commit, then exit."""
        print(f"{parser.prog} {VERSION}, commit {commit()}")
        parser.exit()


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
