# SPDX-License-Identifier: GPL-2.0-or-later
"""--on: where a campaign's runs are done, and the list of hosts."""

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from run.slurm import options as slurm

LOCAL = "local"
SSH = "ssh:"
# Cannot be taken for an option of ssh, nor for shell syntax.
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:%+-]*", re.ASCII)
SLOTS = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
HELP = (
    "where runs are done: local (the default), ssh:HOST=SLOTS,HOST=SLOTS,... or ssh:FILE with such "
    "a host a line, SLOTS runs at a time there, by default 1; or slurm[:slots=N,partition=P,...] "
    "with options of sbatch, N runs at a time, by default 16 (docs/guides/fleet.md)"
)


@dataclass(frozen=True)
class Host:
    """A host by its ssh name; slots: the number of runs that it does at a time."""

    name: str
    slots: int = 1


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add --on, with its help."""
    group = parser.add_argument_group("many machines (docs/guides/fleet.md)")
    group.add_argument("--on", type=_checked, metavar="WHERE", help=HELP)


def asked(argv: Sequence[str]) -> str | None:
    """The value of --on on a valid command line; None if it is not given."""
    return _split(argv)[0]


def without(argv: Iterable[str]) -> list[str]:
    """The command line without --on: hosts are private, and others do not have them."""
    return _split(argv)[1]


def _split(argv: Iterable[str]) -> tuple[str | None, list[str]]:
    """The value of --on, and the other words."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--on")
    given, others = parser.parse_known_args(list(argv))
    return given.on, others


def hosts(where: str) -> list[Host]:
    """The hosts of --on ssh; [] for this machine, or for Slurm, which knows its own hosts.

    ValueError with a message if the value is invalid.
    """
    if where == LOCAL:
        return []
    if slurm.is_slurm(where):
        slurm.parse(where)
        return []
    if not where.startswith(SSH) or not where.removeprefix(SSH):
        raise ValueError(f"--on {where}: neither local nor ssh:HOSTS nor slurm[:OPTIONS]")
    text = where.removeprefix(SSH)
    lines = text.split(",")
    if "=" not in text and Path(text).is_file():
        read = (line.partition("#")[0] for line in Path(text).read_text().splitlines())
        lines = ["=".join(line.split()) for line in read if line.strip()]
    listed = [_host(line) for line in lines]
    names = [host.name for host in listed]
    if not listed:
        raise ValueError(f"--on {where}: it names no host")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"--on {where}: {twice} is named twice")
    return listed


def slots(where: str) -> int:
    """The number of runs that other machines do at a time; 0 if this machine does them."""
    if slurm.is_slurm(where):
        return slurm.parse(where).slots
    return sum(host.slots for host in hosts(where))


def _host(text: str) -> Host:
    name, equals, slots = text.strip().partition("=")
    if not HOST.fullmatch(name) or (equals and not SLOTS.fullmatch(slots)):
        raise ValueError(f"--on: {text!r} is no HOST=SLOTS, as in alpha=4 or me@beta=2")
    return Host(name, int(slots) if equals else 1)


def _checked(where: str) -> str:
    try:
        hosts(where)
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--on ")) from None
    return where
