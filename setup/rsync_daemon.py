# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration of an rsync daemon that serves one folder: the other machine of the player."""

import os

from errors import Exit, UserError


def config(folder: str, log: str | None) -> str:
    """What rsyncd.conf says to serve a folder as the module `music`, to be read by this user.

    UserError for a path that such a file cannot hold.
    """
    for path in (folder, log or ""):
        # %NAME% is a variable, a backslash at the end continues the line, blanks around are cut.
        if "%" in path or "\n" in path or path.endswith("\\") or path != path.strip():
            raise UserError(f"rsync's daemon cannot serve the path {path!r}", status=Exit.USAGE)
    lines = ["use chroot = no", f"log file = {log or '/dev/null'}", "[music]", f"path = {folder}"]
    lines += ["read only = yes", "munge symlinks = no"]
    if os.geteuid() == 0:
        # root's daemon would be `nobody`, who cannot read what is the user's alone.
        lines += ["uid = 0", "gid = 0"]
    return "\n".join([*lines, ""])
