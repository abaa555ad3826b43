# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles a kernel from a Source, or takes it from the cache.

    build_kernel(source: Source, config: Config, *, mirror: str | None = None, jobs: int = 0,
                 progress: Callable[[Progress], None] | None = None) -> BuiltKernel

Raises failures.NotBuilt (OptionLost, DoesNotCompile), whose `log` is the build's.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Progress:
    """How far a build is: steps done, steps in all and seconds left as far as they are known."""

    label: str
    step: str
    done: int
    total: int | None
    left_s: float | None


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel that was compiled: files in the cache.

    `digest` is the SHA-256 of the image: two sources with the same one are the same kernel.
    `modules` is `…/lib/modules/RELEASE`, None if the configuration has none. `log` is the build's;
    `seconds` how long it took when it was compiled, `cached` whether that was another time.
    """

    label: str
    release: str
    image: Path
    modules: Path | None
    config: Path
    digest: str
    log: Path
    seconds: float
    cached: bool
