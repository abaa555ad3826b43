# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration of an rsync daemon that serves a folder to the player, as another machine."""

import os

from errors import Exit, UserError


def config(folder: str, log: str | None) -> str:
    """The text of an rsyncd.conf that serves a folder as the module `music`, read by this user.

    UserError for a path that such a file cannot express.
    """
    for path in (folder, log or ""):
        # %NAME% is a variable, a backslash at the end continues the line, outer blanks are removed.
        if "%" in path or "\n" in path or path.endswith("\\") or path != path.strip():
            raise UserError(f"rsync's daemon cannot serve the path {path!r}", status=Exit.USAGE)
    lines = ["use chroot = no", f"log file = {log or '/dev/null'}", "[music]", f"path = {folder}"]
    lines += ["read only = yes", "munge symlinks = no"]
    if os.geteuid() == 0:
        # root's daemon would run as `nobody`, who cannot read the user's private files.
        lines += ["uid = 0", "gid = 0"]
    return "\n".join([*lines, ""])
