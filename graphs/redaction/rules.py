# SPDX-License-Identifier: GPL-2.0-or-later
"""What a rule is: a pattern that finds candidates, and what tells whether one is a secret."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """The group that matched (all of it, without groups) is a secret of this kind, if known.

    known: the form under which all its spellings are the same secret, or None if it is none. No
    rule reaches over a line, and only what stands in quotes reaches over a bracket, so that what
    was JSON stays JSON.
    """

    kind: str
    hint: str  # a text without it, in lower case, cannot match: most logs are passed over
    pattern: re.Pattern[str]
    known: Callable[[re.Match[str]], str | None]
    learn: bool = False  # it is a secret wherever else it stands


def secret(match: re.Match[str]) -> str:
    """The part of the match that is replaced."""
    return match[match.lastindex or 0]


def same(match: re.Match[str]) -> str | None:
    """Every candidate is a secret, as it is spelled."""
    return secret(match)


def with_digit(match: re.Match[str]) -> str | None:
    """A candidate without a digit is a word."""
    found = secret(match)
    return found if re.search("[0-9]", found) else None
