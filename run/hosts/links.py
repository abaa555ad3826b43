# SPDX-License-Identifier: GPL-2.0-or-later
"""A cache made of links to files that are kept elsewhere."""

from pathlib import Path

from setup import cache


def link(name: str, digest: str, kept: Path) -> None:
    """Link a file into this process's cache under `name`, and note its digest there."""
    place = cache.root()
    target = place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink() and target.readlink() != kept:
        target.unlink()
    if not target.is_symlink():
        target.symlink_to(kept)
    if name.count("/") == 1:
        known = place / cache.DIGESTS / name.replace("/", "-")
        known.parent.mkdir(exist_ok=True)
        known.write_text(digest)
