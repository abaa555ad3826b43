# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds a kernel's configuration, and checks which options were lost in the build."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from errors import Exit, UserError
from setup import config_file
from setup.trees.failures import OptionLost
from setup.trees.sources import Source, git

TINY, DEFAULT, HOST = "tinyconfig", "defconfig", "host"


@dataclass(frozen=True)
class Config:
    """A configuration. target: a target of make (`tinyconfig`); if "": base, a .config's text.

    fragment: options to add. All of them must be set in the end, except those in `optional` that
    the kernel does not know, and those in `refusable` that it does not accept. name: for the user.
    """

    name: str
    target: str
    base: str
    fragment: str
    optional: frozenset[str] = frozenset()
    refusable: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that distinguish it from others."""
        return self.target, self.base, self.fragment


def find(name: str = "") -> Config:
    """The configuration of that name: `host`, `defconfig`, or a .config's path; "": a small one.

    A file is used unchanged; setup/kernel.config, which the test needs, is added to the others.
    UserError: 2 for a missing file, 3 if the running kernel's config cannot be read.
    """
    text = config_file.FRAGMENT.read_text()
    marks = (config_file.IF_IT_EXISTS, config_file.IF_TAKEN)
    less = [config_file.marked(text, mark) for mark in marks]
    # Without comments: they do not make another kernel.
    fragment = _lines(config_file.parsed(text))
    if name in ("", TINY, DEFAULT):
        return Config(name or TINY, name or TINY, "", fragment, *less)
    if name == HOST:
        release = os.uname().release
        places = (Path(f"/boot/config-{release}"), Path("/proc/config.gz"))
        readable = next((place for place in places if os.access(place, os.R_OK)), None)
        if readable is None:
            raise UserError(f"the running kernel's config is not in {places[0]} or {places[1]}")
        # The keys with which its builder signed modules are not here.
        keys = 'CONFIG_SYSTEM_TRUSTED_KEYS=""\nCONFIG_SYSTEM_REVOCATION_KEYS=""\n'
        return Config(HOST, "", _text(readable) + keys, fragment, *less)
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(
            f"no such kernel config: {name!r}",
            hint="a .config, host or defconfig",
            status=Exit.USAGE,
        )
    return Config(name, "", _text(path), "")


def _text(path: Path) -> str:
    return _lines(config_file.read(path))


def _lines(options: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in options.items())


def check(source: Source, config: Config, actual: Mapping[str, str], log: str) -> None:
    """OptionLost if the configured kernel lacks options of the fragment."""
    wanted = config_file.parsed(config.fragment)
    lost = {
        name: value
        for name, value in wanted.items()
        if actual.get(name, "n") != value and name not in config.refusable
    }
    if not lost:
        return
    known = _known(source, lost)
    lost = {k: value for k, value in lost.items() if k in known or k not in config.optional}
    if not lost:
        return
    unknown = [name for name in lost if name not in known]
    refused = [f"{name}={lost[name]}" for name in lost if name in known]
    reasons = [f"it does not know {', '.join(unknown)}"] if unknown else []
    reasons += [f"it does not take {', '.join(refused)}"] if refused else []
    raise OptionLost(
        f"{source.label}: options of {config_file.FRAGMENT.name} are lost: {'; '.join(reasons)}",
        options=tuple(lost),
        log=log,
        label=source.label,
    )


def _known(source: Source, options: Mapping[str, str]) -> set[str]:
    """The options that a Kconfig file of the source defines."""
    patterns: list[str] = []
    for name in options:
        bare = name.removeprefix("CONFIG_")
        patterns += ["-e", rf"^[[:space:]]*(menu)?config[[:space:]]+{bare}[[:space:]]*$"]
    matches = git(["grep", "-h", "-E", *patterns, source.tree, "--", "*Kconfig*"], source.objects)
    names = re.findall(r"config\s+(\w+)\s*$", matches.stdout.decode(errors="replace"), re.MULTILINE)
    return {f"CONFIG_{name}" for name in names}
