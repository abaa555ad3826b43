# SPDX-License-Identifier: GPL-2.0-or-later
"""The source of a kernel: a git tree object in an object store, which nothing is written to.

The user's checkout, its index and its object store are only read. What is made here (the tree of a
checkout with changes that are not committed, a folder that is no repository, the result of a
patch) goes to an object store in the cache. A tree's id stands for the names and bytes of all its
files, so the same id is the same source wherever it is from.
"""

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from errors import Exit, UserError
from setup import cache

OBJECTS = "kernel-sources"  # the bare repository in the cache
SHORT = 12  # hex digits of a commit in a label, as kernel developers quote one
# The user's settings (autocrlf, filters, hooks) would make other bytes of the same tree.
NEUTRAL = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C.UTF-8",
}
# Variables of a git that runs this suite (a hook, rebase --exec) name another repository.
FOREIGN = re.compile(r"GIT_(?!SSL|PROXY)")


@dataclass(frozen=True)
class Source:
    """A kernel's source.

    `label` is the variant's name (`v7.2`, `v7.2-revert-acd22fbb9f47`, `v7.2+fix`); `tree` the id of
    its git tree; `objects` the object stores that hold it; `repository` the user's repository, in
    which commits to revert are looked up, if there is one; `commit` the commit it was made of;
    `notes` are lines to tell the user: that a checkout has changes which are not committed.
    """

    label: str
    tree: str
    objects: tuple[Path, ...]
    repository: Path | None = None
    commit: str = ""
    version: str = ""
    notes: tuple[str, ...] = ()
