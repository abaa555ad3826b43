# SPDX-License-Identifier: GPL-2.0-or-later
"""The Linux version and the commit of a run's kernel, from its uname strings."""

import math
import re
from dataclasses import dataclass

from analysis.reading.load import Run

NUMBERS = r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?"
RELEASE = re.compile(rf"{NUMBERS}(?:-rc([0-9]{{1,3}}))?(?![0-9])")
# Debian's releases name an ABI (6.1.0-56), its version strings the upstream version (6.1.192-2).
DEBIAN = re.compile(rf"\bDebian {NUMBERS}(?:~rc([0-9]{{1,3}}))?[-~+]")
COMMIT = re.compile(r"-g([0-9a-f]{7,40})(?![0-9a-z])(?!.*-dirty)")  # of CONFIG_LOCALVERSION_AUTO


@dataclass(frozen=True)
class KernelVersion:
    """`numbers`: version, patch level, sublevel; `candidate`: N of -rcN, infinite for a release.

    `commit`: abbreviated; empty if the kernel names none, or was built from a changed tree.
    """

    numbers: tuple[int, int, int]
    candidate: float = math.inf
    commit: str = ""

    @property
    def order(self) -> tuple[tuple[int, int, int], float]:
        """Sort key for versions; it ignores commits, which have no order."""
        return self.numbers, self.candidate

    @property
    def tag(self) -> str:
        """The git tag: 'v6.12', 'v6.12.118', 'v7.3-rc2'."""
        *first, last = self.numbers
        text = ".".join(map(str, [*first, last] if last else first))
        return f"v{text}" + ("" if math.isinf(self.candidate) else f"-rc{self.candidate:.0f}")


def kernel_version(run: Run) -> KernelVersion | None:
    """The version; None if the run records none, or none in the form that Linux uses."""
    release, version = (str(run.fact("kernel", key) or "")[:300] for key in ("release", "version"))
    match = DEBIAN.search(version) or RELEASE.match(release)
    if match is None:
        return None
    major, minor, sub, candidate = match.groups()
    commit = COMMIT.search(release)
    return KernelVersion(
        (int(major), int(minor), int(sub or 0)),
        float(candidate) if candidate else math.inf,
        commit[1] if commit else "",
    )


def introduced_in(old: KernelVersion | None, new: KernelVersion | None) -> str:
    """The range for git log: 'v6.12.118..v7.2.13', or of two commits; empty if not known."""
    if old is None or new is None:
        return ""
    if old.commit and new.commit and old.commit != new.commit:
        return f"{old.commit}..{new.commit}"
    return f"{old.tag}..{new.tag}" if old.tag != new.tag else ""
