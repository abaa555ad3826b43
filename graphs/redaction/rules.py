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


def rule(
    kind: str,
    hint: str,
    pattern: str,
    known: Callable[[re.Match[str]], str | None] | None = None,
    *,
    learn: bool = False,
    flags: re.RegexFlag = re.NOFLAG,
) -> Rule:
    """The rule of a pattern; unless `known` tells, every candidate is a secret as it is spelled."""
    return Rule(kind, hint, re.compile(pattern, flags), known or secret, learn)


def secret(match: re.Match[str]) -> str:
    """The part of the match that is replaced."""
    return match[match.lastindex or 0]


def with_digit(match: re.Match[str]) -> str | None:
    """A candidate without a digit is a word."""
    found = secret(match)
    return found if re.search("[0-9]", found) else None
