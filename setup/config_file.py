# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of kernel options: a kernel's .config, and the fragment with what the test needs."""

import gzip
import re
from pathlib import Path

from errors import UserError

FRAGMENT = Path(__file__).with_name("kernel.config")
# A comment in the fragment: the options below it, up to an empty line, are not in every kernel.
IF_IT_EXISTS = "# If it exists:"


def read(config: Path) -> dict[str, str]:
    """The options of a .config (or config.gz) and their values; what is not set is left out."""
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


def not_everywhere(text: str) -> set[str]:
    """The options of a fragment's text that a kernel may be too old, or too new, to have."""
    found: set[str] = set()
    marked = False
    for line in text.splitlines():
        if not line.strip():
            marked = False
        elif line.startswith(IF_IT_EXISTS):
            marked = True
        elif marked:
            found |= parsed(line).keys()
    return found
