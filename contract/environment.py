# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite's own Python environment, for commands such as `python3 -m analysis.compare`."""

import os
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / ".venv"
ENTERED = "DESKTOP_FREEZE_ENTERED"


def enter() -> None:
    """Restart `python3 -m …` in the environment (.venv), if it exists.

    Does nothing without an environment, as some modules need none of its packages. Does nothing
    either if this package is imported by a program that was not started with `-m`.
    """
    python = OWN / "bin" / "python"
    # argv is ["-m"] while runpy imports the package of the module that it will run.
    by_module = sys.argv[:1] == ["-m"] and not sys.flags.no_site
    if not by_module or Path(sys.prefix) == OWN or ENTERED in os.environ or not python.exists():
        return
    os.environ[ENTERED] = "1"  # only once, even if that Python is not the environment's
    os.execv(python, [str(python), *sys.orig_argv[1:]])
