# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel that is built here is configured with, and which of it the kernel has lost."""

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
    """A configuration: `target` is make's (`tinyconfig`), or "" for `base`, the text of a .config.

    `fragment` is put on top, and its options have to be there afterwards: those in `optional` only
    where the kernel knows them, those in `refusable` only where it takes them. `name` says which
    one it is.
    """

    name: str
    target: str
    base: str
    fragment: str
    optional: frozenset[str] = frozenset()
    refusable: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[str, ...]:
        """What tells it from others."""
        return self.target, self.base, self.fragment


def find(name: str = "") -> Config:
    """The configuration that is meant: `host`, `defconfig`, a .config's file; "": a small one.

    A file is taken as it is; what the test needs (setup/kernel.config) is put on top of the others.
    UserError: 2 for a file that is not there, 3 if the running kernel's cannot be read.
    """
    said = config_file.FRAGMENT.read_text()
    marks = (config_file.IF_IT_EXISTS, config_file.IF_TAKEN)
    less = [config_file.marked(said, mark) for mark in marks]
    # Another comment in it is no other kernel.
    fragment = _lines(config_file.parsed(said))
    if name in ("", TINY, DEFAULT):
        return Config(name or TINY, name or TINY, "", fragment, *less)
    if name == HOST:
        release = os.uname().release
        places = (Path(f"/boot/config-{release}"), Path("/proc/config.gz"))
        found = next((one for one in places if os.access(one, os.R_OK)), None)
        if found is None:
            raise UserError(f"the running kernel's config is not in {places[0]} or {places[1]}")
        # The keys that its builder signed modules with are not here.
        keys = 'CONFIG_SYSTEM_TRUSTED_KEYS=""\nCONFIG_SYSTEM_REVOCATION_KEYS=""\n'
        return Config(HOST, "", _text(found) + keys, fragment, *less)
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


def check(source: Source, config: Config, made: Mapping[str, str], log: str) -> None:
    """OptionLost if the configured kernel has not all options of the fragment."""
    wanted = config_file.parsed(config.fragment)
    lost = {
        name: value
        for name, value in wanted.items()
        if made.get(name, "n") != value and name not in config.refusable
    }
    if not lost:
        return
    known = _known(source, lost)
    lost = {k: value for k, value in lost.items() if k in known or k not in config.optional}
    if not lost:
        return
    unknown = [name for name in lost if name not in known]
    refused = [f"{name}={lost[name]}" for name in lost if name in known]
    said = [f"it does not know {', '.join(unknown)}"] if unknown else []
    said += [f"it does not take {', '.join(refused)}"] if refused else []
    raise OptionLost(
        f"{source.label}: options of {config_file.FRAGMENT.name} are lost: {'; '.join(said)}",
        options=tuple(lost),
        log=log,
        label=source.label,
    )


def _known(source: Source, options: Mapping[str, str]) -> set[str]:
    """Those of the options that one of the source's Kconfig files defines."""
    patterns: list[str] = []
    for name in options:
        bare = name.removeprefix("CONFIG_")
        patterns += ["-e", rf"^[[:space:]]*(menu)?config[[:space:]]+{bare}[[:space:]]*$"]
    found = git(["grep", "-h", "-E", *patterns, source.tree, "--", "*Kconfig*"], source.objects)
    names = re.findall(r"config\s+(\w+)\s*$", found.stdout.decode(errors="replace"), re.MULTILINE)
    return {f"CONFIG_{name}" for name in names}
