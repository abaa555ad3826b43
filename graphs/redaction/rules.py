# SPDX-License-Identifier: GPL-2.0-or-later
"""Redaction rules: a pattern finds candidates, and a function decides whether they are secrets."""

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """The last matched group, or the whole match, is a secret of this kind if known() confirms it.

    known: returns the form that all spellings of the secret share; None if it is not a secret. No
    rule matches across lines, and only quoted text may contain a bracket, so that JSON stays valid
    JSON.
    """

    kind: str
    hint: str  # texts without it (in lower case) cannot match, and are skipped
    pattern: re.Pattern[str]
    known: Callable[[re.Match[str]], str | None]
    learn: bool = False  # whether the secret is replaced everywhere else, too


def rule(
    kind: str,
    hint: str,
    pattern: str,
    known: Callable[[re.Match[str]], str | None] | None = None,
    *,
    learn: bool = False,
    flags: re.RegexFlag = re.NOFLAG,
) -> Rule:
    """The rule for a pattern; without `known` every candidate is a secret, in its spelling."""
    return Rule(kind, hint, re.compile(pattern, flags), known or secret, learn)


def secret(match: re.Match[str]) -> str:
    """The part of the match that gets replaced."""
    return match[match.lastindex or 0]


def with_digit(match: re.Match[str]) -> str | None:
    """The candidate, if it has a digit; otherwise it is a word, and not a secret."""
    candidate = secret(match)
    return candidate if re.search("[0-9]", candidate) else None
