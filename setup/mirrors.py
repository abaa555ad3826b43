# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the Debian mirrors of this machine: those of its apt sources, else mmdebstrap's."""

import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from errors import Exit, UserError

# Suites that distinguish Debian's own archive from others in the host's sources.
DEBIAN_SUITE = re.compile(
    r"(buster|bullseye|bookworm|trixie|forky|duke|sid|experimental|oldoldstable|oldstable|stable"
    r"|testing|unstable)(-updates|-backports|-proposed-updates|-security|/updates)?/?"
)
MMDEBSTRAP = Path("/usr/bin/mmdebstrap")
# How its source code spells the default mirrors for Debian.
BUILT_IN = r"my \$%s\s*= '(https?://[^']+)'"


@dataclass(frozen=True)
class Source:
    """An entry of apt's sources: an archive's location, and what is used of it."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str


def _one_line(text: str) -> Iterator[Source]:
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<rest>[^#]+)", line)
        if not match:
            continue
        fields = match["rest"].split()
        options = dict(
            item.split("=", 1) for item in (match["options"] or "").split() if "=" in item
        )
        if len(fields) >= 3:
            yield Source(fields[0], (fields[1],), tuple(fields[2:]), options.get("signed-by", ""))


def _deb822(text: str) -> Iterator[Source]:
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n\s*\n", text):
        fields = {
            match[1].lower(): match[2].strip()
            for match in re.finditer(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza, re.MULTILINE)
        }
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
            continue
        for uri in fields.get("uris", "").split():
            yield Source(
                uri,
                tuple(fields.get("suites", "").split()),
                tuple(fields.get("components", "").split()),
                fields.get("signed-by", ""),
            )


def host_sources(etc: Path = Path("/etc/apt")) -> list[Source]:
    """The host's sources for Debian's own archive, in the order in which apt reads them."""
    files = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]
    listed: list[Source] = []
    for path in files:
        if path.suffix not in (".list", ".sources") or not path.is_file():
            continue
        text = path.read_text(errors="replace")
        listed += _deb822(text) if path.suffix == ".sources" else _one_line(text)
    return [
        source
        for source in listed
        if "main" in source.components
        and re.match(r"(?:https?|file|copy|ftp|mirror\S*|tor\S*):", source.uri)
        and source.suites
        and all(DEBIAN_SUITE.fullmatch(suite) for suite in source.suites)
        and (not source.signed_by or "debian-archive" in source.signed_by)
    ]


def _of_the_host(etc: Path) -> tuple[str | None, str | None]:
    main = security = None
    for source in host_sources(etc):
        if any(suite.rstrip("/").endswith(("-security", "/updates")) for suite in source.suites):
            security = security or source.uri
        else:
            main = main or source.uri
    return main, security


def find(mirror: str | None = None, etc: Path = Path("/etc/apt")) -> tuple[str, str | None]:
    """The URIs of the main and of the security archive (None if there is only a main one).

    If the host's sources name neither, those are used that mmdebstrap has built in. UserError: 2 if
    mirror is not a URL, 3 if no mirror is known.
    """
    main, security = _of_the_host(etc)
    if mirror is not None:
        if not re.match(r"(?:https?|file|ftp):/", mirror):
            raise UserError(
                f"not a mirror's URL: {mirror!r}",
                hint="for example file:/srv/debian",
                status=Exit.USAGE,
            )
        return mirror, security
    return (main, security) if main else _built_in()


def _built_in() -> tuple[str, str]:
    text = MMDEBSTRAP.read_text(errors="replace") if MMDEBSTRAP.is_file() else ""
    main, security = (re.search(BUILT_IN % name, text) for name in ("mirror", "secmirror"))
    if main is None or security is None:
        raise UserError(
            "this machine's apt sources name no Debian mirror", hint="give one with --mirror URL"
        )
    return main[1], security[1]


def announce(mirror: str | None, etc: Path = Path("/etc/apt")) -> None:
    """Print once on stderr that Debian's own mirror is used, if it is."""
    if mirror is None and _of_the_host(etc)[0] is None:
        say_once(
            f"this machine's apt sources name no Debian mirror: using {_built_in()[0]}, as "
            "mmdebstrap does; --mirror names another"
        )


@functools.cache
def say_once(line: str) -> None:
    """Print a line on stderr, unless it was printed before."""
    print(line, file=sys.stderr)
