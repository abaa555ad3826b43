# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Debian packages that are not installed: unpacked into a folder of the cache.

A daemon's package starts it for everybody once it is installed; here it runs only in a test.
"""

import subprocess
from pathlib import Path

from setup import cache

LIBRARIES = "usr/lib/x86_64-linux-gnu"


def unpack(name: str, *packages: str) -> Path:
    """The folder with these packages, installed or not, and what they need and this machine lacks.

    name: the cache's for it. AssertionError if apt-get has none of them.
    """
    command = ["apt-get", "-q", "--print-uris", "--no-install-recommends", "-y", "--reinstall"]
    plan = subprocess.run([*command, "install", *packages], capture_output=True, text=True)
    lines = [line.split() for line in plan.stdout.splitlines() if line.startswith("'")]
    files = [words[1] for words in lines]
    assert plan.returncode == 0, plan.stderr

    def build(place: Path) -> None:
        place.mkdir()
        # What is installed here already is used as it is there.
        names = [file.split("_")[0] for file in files]
        command = ["apt-get", "-q", "download", *names]
        subprocess.run(command, cwd=place.parent, check=True, capture_output=True)
        for package in place.parent.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(place)], check=True)

    return cache.built(name, cache.key(*files), build)
