# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes ext4 images from folders, without root or mounting: equal files give equal bytes.

It uses mke2fs of the suite's tools. A small library hides from mke2fs what depends on the host
besides the files' bytes: times, owners, attributes.
"""

import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from setup import cache
from setup.userland import tools
from setup.userland.bootstrap import WHEN

BLOCK = 4096
# Without the new default features of mke2fs that kernels from 5.10 on cannot mount.
FEATURES = ("^orphan_file", "^metadata_csum_seed")
SOURCE = Path(__file__).with_name("steady.c")
COMPILE = ("gcc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC")


def sizes(path: Path) -> tuple[int, int]:
    """The bytes (in whole blocks) and the number of entries of a tree."""
    total, entries = BLOCK, 1
    for folder, names, files in os.walk(path):
        entries += len(names) + len(files)
        total += BLOCK * len(names)
        for name in files:
            size = (Path(folder) / name).lstat().st_size
            total += -(-size // BLOCK) * BLOCK
    return total, entries


def make(
    place: tools.Workplace,
    tree: Path,
    label: str,
    *,
    size: int,
    inodes: int,
    features: Sequence[str] = (),
    more: Sequence[str] = (),
    keep_modes: bool = False,
) -> Path:
    """Make the image of tree, a folder of place; size in bytes. UserError (3) if it fails.

    more: options of mke2fs. keep_modes=False: modes only tell whether a file is executable.
    """
    image, library = place.folder / f"{label}.ext4", place.folder / "steady.so"
    shutil.copy(_library(), library)
    # Nothing random, so that a guest with its own clock does the same with the same disk.
    name = str(uuid.uuid5(uuid.NAMESPACE_OID, label))
    command = ["mke2fs", "-q", "-F", "-t", "ext4", "-L", label, "-b", str(BLOCK), "-m", "0"]
    command += ["-O", ",".join((*FEATURES, *features)), "-N", str(inodes), "-U", name, *more]
    command += ["-E", f"root_owner=0:0,lazy_itable_init=0,hash_seed={name}"]
    command += ["-d", tree.name, image.name, str(size // BLOCK)]
    env = {"SOURCE_DATE_EPOCH": str(WHEN), "E2FSPROGS_FAKE_TIME": str(WHEN)}
    env |= {} if keep_modes else {"STEADY_MODES": "1"}
    # An absolute path, because mke2fs changes its folder before it loads further libraries.
    env["LD_PRELOAD"] = f"{place.inside}/{library.name}"
    place.run(command, what=f"making the {label} disk", env=env)
    return image


def _library() -> Path:
    def build(path: Path) -> None:
        with tools.workplace() as place:
            shutil.copy(SOURCE, place.folder)
            command = [*COMPILE, "-o", path.name, SOURCE.name]
            place.run(command, what=f"compiling {SOURCE.name}")
            shutil.move(place.folder / path.name, path)

    name = cache.key(*COMPILE, SOURCE.read_text(), tools.identity())
    return cache.built("steady", f"{name}.so", build)
