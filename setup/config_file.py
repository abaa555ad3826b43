# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of kernel options: a kernel's .config, and the fragment with what the test needs."""

import gzip
import re
from pathlib import Path

from errors import UserError

FRAGMENT = Path(__file__).with_name("kernel.config")
# Comments in the fragment, about the options below them up to an empty line: options that not every
# kernel has, and options that not every kernel accepts.
IF_IT_EXISTS, IF_TAKEN = "# If it exists:", "# If the kernel takes it:"


def read(config: Path) -> dict[str, str]:
    """The options of a .config (or config.gz) and their values; unset ones are left out."""
    try:
        data = config.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise UserError(f"cannot read the kernel config {config}: {error}") from None
    options = parsed(data.decode(errors="replace"))
    if not options:
        raise UserError(f"{config} is not a kernel config")
    return options


def parsed(text: str) -> dict[str, str]:
    """The options of a .config's text."""
    return dict(re.findall(r"^(CONFIG_\w+)=(.*)$", text, re.MULTILINE))


def marked(text: str, comment: str) -> frozenset[str]:
    """The options of a fragment's text that are below such a comment."""
    options: set[str] = set()
    inside = False
    for line in text.splitlines():
        if not line.strip() or line.startswith((IF_IT_EXISTS, IF_TAKEN)):
            inside = line.startswith(comment)
        elif inside:
            options |= parsed(line).keys()
    return frozenset(options)
