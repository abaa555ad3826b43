# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a trend: which trend, and --fail-on, an exit status for unwanted verdicts."""

import argparse
import sys
from collections.abc import Sequence

from analysis.trends.trend import Trend
from errors import Exit

WORDS = ("regressed", "improved", "undecided")


def add_choices(parser: argparse.ArgumentParser) -> None:
    """Add --by and --metric."""
    parser.add_argument(
        "--by",
        choices=("version", "date"),
        default="version",
        help="a trend of all kernels in order of their versions (default), or of the kernels of "
        "each --kernel in the order in which they were measured",
    )
    parser.add_argument(
        "--metric", metavar="KEY", help="of the trend: another than the workload's primary one"
    )


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument(
        "--fail-on",
        type=_words,
        default=(),
        metavar="WORD,…",
        help=f"end with status {Exit.FAILED_ON} if the last change of a track is one of these: "
        f"{', '.join(WORDS)} (no change is established)",
    )


def fail_status(trend: Trend, fail_on: Sequence[str]) -> int:
    """Exit.FAILED_ON, with a line on stderr for each track that is why; else 0."""
    rejected = [one for one in trend.tracks if one.verdict in fail_on]
    for track in rejected:
        print(f"analysis.trend: --fail-on: {track.name} is {track.verdict}", file=sys.stderr)
    return Exit.FAILED_ON if rejected else 0


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not set(words) <= set(WORDS):
        raise argparse.ArgumentTypeError(f"not of {', '.join(WORDS)}: {text[:200]!r}")
    return words
