# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints docs/reference/options.md, generated from the option table."""

import argparse
import re
from collections.abc import Iterator

from contract.command_line import Parser
from contract.option_rows import DEVICE, MODELLED, PROFILED, PROFILES, VM, Row
from contract.option_table import ROWS
from contract.options import flag
from run.bisect import options as bisect
from run.changed_kernels import change_options
from run.hosts import host_list

HEAD = """\
# Options of run_test.sh

`python3 -m run.plans.options_document` makes this page from the option table; a test compares them.
In brackets: the default, where the text does not say it, and `VM` or `device`, if the option goes
only with a VM or only with `--device`.
"""
PROFILE_HEAD = """\
## Profiles
What `--profile` sets where no other option does. "hang": a guest that is silent for so long hangs.

| `--profile` | memory | commits | passes | touch | timeout | hang |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Print the page."""
    print("\n".join(page()))


def page() -> Iterator[str]:
    """The page's lines: the table's options by group, other packages' options, the profiles."""
    yield HEAD
    group = ""
    for name, row in ROWS.items():
        if row.group != group:
            if group:
                yield ""
            group = row.group
            yield f"## {_heading(group)}"
        words = f"`{flag(name)}{_value(name, row)}` {_details(row)}"
        yield _item(words.strip(), row.help)
    yield from _added()
    yield ""
    yield PROFILE_HEAD
    for name, profile in PROFILES.items():
        memory = f"{profile.memory >> 20} MiB" if profile.memory else "the machine's"
        yield (
            f"| `{name}` | {memory} | {profile.commits:,} | {profile.passes} | {profile.touch} "
            f"| {profile.timeout:,} s | {profile.hang_after} s |"
        )


def _heading(text: str) -> str:
    return text[:1].upper() + text[1:]


def _item(words: str, help: str | None) -> str:
    return f"- {words}: {_linked(help.replace('%%', '%'))}" if help else f"- {words}"


def _linked(text: str) -> str:
    """The text with paths of other pages as links; this page is in docs/reference."""
    return re.sub(r"docs/([\w/-]+\.md)", r"[docs/\1](../\1)", text)


def _value(name: str, row: Row) -> str:
    if isinstance(row.default, bool):
        return ""
    if row.choices:
        return f" {'|'.join(map(str, row.choices))}"
    return f" {row.metavar or name.upper()}"


def _details(row: Row) -> str:
    """The default and the restriction of an option, in brackets."""
    words = []
    if "default" not in (row.help or ""):
        if row.default is PROFILED:
            words.append("the profile's")
        elif row.default is MODELLED:
            words.append("the machine's")
        elif row.default and not isinstance(row.default, bool):
            words.append(str(row.default))
    if row.only == DEVICE or (row.only == VM and row.default is not MODELLED):
        words.append(row.only)
    return f"[{', '.join(words)}]" if words else ""


def _added() -> Iterator[str]:
    """The options outside the option table: of changed kernels, bisects and hosts."""
    parser = Parser(prog="run_test.sh", add_help=False, allow_abbrev=False)
    change_options.add(parser)
    bisect.add_options(parser)
    host_list.add_option(parser)
    for group in parser._action_groups:
        if group._group_actions:
            yield ""
            yield f"## {_linked(_heading(group.title or ''))}"
            for action in group._group_actions:
                yield _item(f"`{action.option_strings[0]}{_metavar(action)}`", action.help)


def _metavar(action: argparse.Action) -> str:
    names = action.metavar if isinstance(action.metavar, tuple) else (action.metavar,)
    return "".join(f" {name}" for name in names if name) + "…" * (action.nargs == "+")


if __name__ == "__main__":
    main()
