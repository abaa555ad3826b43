# SPDX-License-Identifier: GPL-2.0-or-later
"""A copy of the suite without its tests, to try what one more file or row makes of it."""

import shutil
import subprocess
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2]


def copied_to(folder: Path) -> Path:
    """The folder, with what git knows of the suite."""
    listed = ["git", "ls-files", "-z", "--", "*.py", "*.sh", "*.toml", "setup", ":!tests"]
    names = subprocess.run(listed, cwd=SUITE, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SUITE / name, folder / name)
    return folder
