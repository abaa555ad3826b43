# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a bisect on run_test.sh's command line; its other options are for every run."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from contract.command_line import Parser
from contract.values import count
from run.bisect import state

OPTIONS = ("--bisect", "--bisect-hunks")
NOT_WITH = (
    *("kernel", "label", "plan", "runs", "stop-when-sure", "baseline", "device", "fail-on"),
    *("remedy", "remedies"),
)


@dataclass(frozen=True)
class BisectRequest:
    """A parsed bisect: its two ends, what to search, and the options of its runs."""

    command: list[str]
    good: str = ""
    bad: str = ""
    tree: str = ""
    paths: tuple[str, ...] = ()
    newest: str = ""
    hunks: bool = False
    most_runs: int = 150
    kernel_config: str = ""
    folder: Path | None = None
    resume: bool = False
    options: list[str] = field(default_factory=list)  # for every run


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a bisect, with their help."""
    group = parser.add_argument_group("which commit was it (docs/guides/culprit.md)")
    group.add_argument(
        "--bisect",
        nargs=2,
        metavar=("GOOD", "BAD"),
        help="find the commit between two revisions of --tree that made it worse; without --tree "
        "the Debian kernel between, for example, debian:6.12 and debian:7.2",
    )
    group.add_argument("--tree", metavar="PATH", help="the git repository of the kernel")
    group.add_argument(
        "--paths", nargs="+", metavar="PATH", help="only commits (or hunks) that change these"
    )
    group.add_argument(
        "--newest",
        metavar="REV",
        help="also test with the ends whether this newer revision is fixed",
    )
    group.add_argument(
        "--bisect-hunks",
        nargs=2,
        metavar=("DIR_A", "DIR_B"),
        help="the same over the hunks of the difference between two trees, each a folder or "
        "debian-source:VERSION; needs --paths",
    )
    group.add_argument(
        "--most-runs", type=count, metavar="N", help="give up after N runs (default: 150)"
    )


def refuse_alone(parser: Parser, given: argparse.Namespace) -> None:
    """A usage error for an option that needs --bisect, given without it."""
    for name in ("tree", "paths", "newest", "most_runs"):
        if getattr(given, name) is not None:
            parser.error(f"--{name.replace('_', '-')} goes with --bisect GOOD BAD")


def is_asked(argv: Sequence[str]) -> bool:
    """Whether this command line starts or resumes a bisect."""
    words = [word.partition("=")[0] for word in argv]
    if any(option in words for option in OPTIONS):
        return True
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--resume")
    try:
        resumed = parser.parse_known_args(list(argv))[0].resume
    except argparse.ArgumentError:
        return False
    return resumed is not None and state.is_bisect(Path(resumed))


def parse(argv: Sequence[str]) -> BisectRequest:
    """Parse the command line of a bisect; exits with status 2 after a usage error."""
    parser = Parser(prog="run_test.sh", add_help=False, allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--resume")
    parser.add_argument("--out")
    parser.add_argument("--kernel-config", default="")
    given, rest = parser.parse_known_args(list(argv))
    if given.resume is not None:
        folder = Path(given.resume)
        if not state.is_bisect(folder):
            parser.error(f"--resume {folder}: no bisect there (it has no {state.FILE})")
        kept = state.read(folder).command
        if _without(argv, "--resume") not in ([], _without(kept, "--out")):
            parser.error("--resume of a bisect takes no other option: it knows its command")
        return _asked(parser, [*_without(kept, "--out"), "--out", str(folder)], resume=True)
    if given.bisect and given.bisect_hunks:
        parser.error("--bisect and --bisect-hunks are two bisects")
    for word in rest:
        name = word.partition("=")[0].removeprefix("--")
        if word.startswith("--") and name in NOT_WITH:
            parser.error(f"--{name} does not go with a bisect, which says itself what is run")
    return _asked(parser, argv, resume=False)


def _asked(parser: Parser, argv: Sequence[str], *, resume: bool) -> BisectRequest:
    given, rest = parser.parse_known_args(list(argv))
    hunks = given.bisect_hunks is not None
    good, bad = given.bisect_hunks or given.bisect
    if hunks and given.tree is not None:
        parser.error("--tree does not go with --bisect-hunks: DIR_A and DIR_B are the trees")
    if hunks and not given.paths:
        parser.error("--bisect-hunks needs --paths: two whole kernels differ in too much")
    if given.newest is not None and hunks:
        parser.error("--newest goes with --bisect")
    if not hunks and given.tree is None:
        if given.paths:
            parser.error("--paths needs --tree")
        for end in (good, bad):
            if not end.startswith("debian:"):
                parser.error(f"{end}: a revision needs --tree PATH; else give debian:VERSION twice")
    return BisectRequest(
        command=list(argv),
        good=good,
        bad=bad,
        tree=given.tree or "",
        paths=tuple(given.paths or ()),
        newest=given.newest or "",
        hunks=hunks,
        most_runs=given.most_runs or 150,
        kernel_config=given.kernel_config,
        folder=Path(given.out) if given.out else None,
        resume=resume,
        options=rest,
    )


def _without(argv: Sequence[str], name: str) -> list[str]:
    """The words without an option and its value."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(name)
    return parser.parse_known_args(list(argv))[1]
