# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel tree in which the user has run make: its image, and its modules as if installed."""

import re
from pathlib import Path

from errors import UserError
from setup import apt, cache


def image(tree: Path) -> Path:
    """The tree's bzImage; UserError (3) if there is none."""
    path = tree / "arch/x86/boot/bzImage"
    if not path.is_file():
        raise UserError(
            f"{tree} is no built kernel tree: no arch/x86/boot/bzImage", hint="run make there"
        )
    return path


def modules(tree: Path, release: str) -> Path:
    """A folder in the cache with links to a build tree's modules, laid out as if installed."""
    order = tree / "modules.order"
    listed = order.read_text().split() if order.is_file() else []
    links: dict[str, Path] = {}
    for name in listed:
        # 5.x writes kernel/fs/x.ko, later kernels fs/x.o, both for the file fs/x.ko.
        name = re.sub(r"\.k?o$", ".ko", name.removeprefix("kernel/"))
        if not (tree / name).is_file():
            raise UserError(f"{tree}: {name} is listed in modules.order but not built")
        links[name] = tree / name
    parts = [str(tree), release]
    for name in (*links, "modules.builtin"):
        path = tree / name
        if path.exists():
            parts.append(f"{name} {path.stat().st_mtime_ns} {path.stat().st_size}")

    def build(folder: Path) -> None:
        target = folder / "lib/modules" / release
        target.mkdir(parents=True)
        for name, path in links.items():
            link = target / "kernel" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            text = (tree / name).read_bytes() if (tree / name).is_file() else b""
            (target / name).write_bytes(text)
        apt.run(["depmod", "-b", folder, release], what=f"depmod of {tree}")

    return cache.built("kernel-trees", cache.key(*parts), build) / "lib/modules" / release
