# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite's own Python environment, which `python3 -m analysis.compare` is not started in."""

import os
import sys
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / ".venv"
ENTERED = "DESKTOP_FREEZE_ENTERED"


def enter() -> None:
    """Of `python3 -m` with another Python: begin anew in the environment, if it is there.

    Where it is not nothing happens: some modules need none of its packages. Nor for who imports us.
    """
    python = OWN / "bin" / "python"
    # While the package of the module that is to be run is imported (runpy).
    asked = sys.argv[:1] == ["-m"] and not sys.flags.no_site
    if not asked or Path(sys.prefix) == OWN or ENTERED in os.environ or not python.exists():
        return
    os.environ[ENTERED] = "1"  # once, whatever that python is
    os.execv(python, [str(python), *sys.orig_argv[1:]])
