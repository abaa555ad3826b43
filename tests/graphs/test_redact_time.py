# SPDX-License-Identifier: GPL-2.0-or-later
"""Redaction takes time in proportion to the text, whatever stands in it and however long a line."""

import importlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graphs.redaction import domains, ipv4, secret_keys
from graphs.redaction.disk_serials import IN_MODEL
from graphs.redaction.name_contexts import CONTEXTS
from graphs.redaction.redact import Redactor
from graphs.redaction.secret_names import Secrets
from graphs.redaction.secret_patterns import FIRST_RULES, RULES

PARSER: Any = importlib.import_module("re._parser")
UNBOUNDED = PARSER.MAXREPEAT
SEARCHED = [rule.pattern for rule in (*FIRST_RULES, *RULES, domains.FULL_NAME, IN_MODEL)]
SEARCHED += [pattern for _, _, pattern in CONTEXTS]
# Those that look at a place that another one found, or at a value's key.
OTHERS = [*secret_keys.KEYS.values(), domains.DOMAIN]
OTHERS += [
    one
    for module in (ipv4, secret_keys, domains)
    for one in vars(module).values()
    if isinstance(one, re.Pattern)
]
SHORT, TIMES = 4_000, 4
CHARS = "a0A-_.:/= \"'\\~@$#,+x(["


def repeats(node: Any) -> Iterator[int]:
    """The upper bound of each repeat in a parsed pattern."""
    if isinstance(node, PARSER.SubPattern | list | tuple):
        parts = list(node)
        if len(parts) == 2 and str(parts[0]).endswith("_REPEAT"):
            yield int(parts[1][1])
        for part in parts:
            yield from repeats(part)


@pytest.mark.parametrize("pattern", [*SEARCHED, *OTHERS], ids=lambda one: one.pattern[:40])
def test_every_repeat_is_bounded(pattern: re.Pattern[str]) -> None:
    found = list(repeats(PARSER.parse(pattern.pattern, pattern.flags)))
    assert UNBOUNDED not in found


def accepts(members: list[Any], char: str) -> bool:
    """Whether a class of characters holds this one."""
    is_negated = str(members[0][0]) == "NEGATE"
    body = "".join(_spelled(name, value) for name, value in members if str(name) != "NEGATE")
    return (re.fullmatch(f"[{'^' if is_negated else ''}{body}]", char)) is not None


def _spelled(name: Any, value: Any) -> str:
    match str(name):
        case "LITERAL":
            return re.escape(chr(value))
        case "RANGE":
            return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        case _:
            words = {"WORD": r"\w", "DIGIT": r"\d", "SPACE": r"\s"}
            word = str(value).removeprefix("CATEGORY_")
            return words.get(word) or words[word.removeprefix("NOT_")].upper()


def sample(node: Any, choice: int) -> str:
    """A text that the part of the pattern likely matches; choice: which of its branches."""
    name, value = str(node[0]), node[1]
    match name:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "a" if value != ord("a") else "b"
        case "IN":
            return next((char for char in CHARS if accepts(value, char)), "")
        case "BRANCH":
            branch = list(value[1])[choice % len(value[1])]
            return "".join(sample(part, choice) for part in branch)
        case "SUBPATTERN":
            return "".join(sample(part, choice) for part in value[-1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least, most, body = value
            count = min(most, max(least, 1))
            return "".join(sample(part, choice) for part in body) * int(count)
        case _:
            return ""


def attacks(pattern: re.Pattern[str]) -> Iterator[str]:
    """What the pattern begins to match again and again, and what it nearly matches for long."""
    parts = list(PARSER.parse(pattern.pattern, pattern.flags))
    found: dict[str, None] = {}
    for choice in range(3):
        pieces = [sample(part, choice) for part in parts]
        for end in range(1, len(pieces) + 1):
            before = "".join(pieces[:end])
            for joint in ("", "-", " ", "_"):
                found[f"{before}{joint}"] = None
            if end < len(pieces) + 1 and pieces[end - 1]:
                found[f"{before}\0{pieces[end - 1]}"] = None  # the last of them for long
    yield from (one for one in found if one.strip("\0"))


def text_of(attack: str, length: int) -> str:
    """The attack as a line of this length."""
    first, _, rest = attack.partition("\0")
    again = rest or first
    return (first + again * (length // len(again) + 1))[:length]


def is_linear(work: Callable[[int], object]) -> bool:
    """Whether TIMES the text takes nearly TIMES as long; twice that is left for noise."""
    for _ in range(3):
        spent = []
        for length in (SHORT, SHORT * TIMES):
            begin = time.process_time()
            work(length)
            spent.append(time.process_time() - begin)
        if spent[1] < max(spent[0], 0.005) * TIMES * 2:
            return True
    return False


def search(pattern: re.Pattern[str], length: int) -> None:
    """Search for the pattern in each of its attacks."""
    for attack in attacks(pattern):
        for _ in pattern.finditer(text_of(attack, length)):
            pass


@pytest.mark.parametrize("pattern", SEARCHED, ids=lambda one: one.pattern[:40])
def test_every_pattern_takes_linear_time(pattern: re.Pattern[str]) -> None:
    assert is_linear(lambda length: search(pattern, length))


def test_a_quadratic_pattern_takes_longer() -> None:
    """What this file measures can be seen: the rule for disks as it must not be."""
    pattern = re.compile(r"(?<![^\W_])ata-(?:\w[\w.+-]*_)?([A-Z0-9]{8,})(?![^\W_])")
    assert UNBOUNDED in repeats(PARSER.parse(pattern.pattern))

    def work(length: int) -> None:
        for _ in pattern.finditer(text_of("ata-", length)):
            pass

    assert not is_linear(work)


LINES = (
    *("ata-", "ip=", "ata-a_", "1.2.3.4 ", "1.2.3.4, ", "a@", "a@b.", "serial ", "serial: ", "a."),
    *("//a/", "\\\\a\\", "00:", "::", "'", "ssid='", "token=", "/srv/", "/home/", "anna", "anna-"),
    *(
        "--repo ",
        "by-id/",
        "uuid=",
        "a b ",
        "~a/",
        "address ",
        "mac ",
        "\\x2d",
        "hostname=",
        "UUID=",
    ),
)


@pytest.mark.parametrize("line", LINES)
def test_a_long_line_takes_linear_time(line: str) -> None:
    own = Secrets(frozenset({"annas-box"}), frozenset({"anna"}), frozenset({"/data/anna"}))

    def work(length: int) -> None:
        redactor = Redactor(own)
        redactor.learn_log(line * (length // len(line)))
        redactor.log(line * (length // len(line)))

    assert is_linear(lambda length: work(4 * length))


@pytest.mark.parametrize("line", ["usb: SerialNumber: S%09dX\n", "x: Hostname set to <box-%d>\n"])
def test_many_secrets_take_linear_time(line: str) -> None:
    def work(length: int) -> None:
        text = "".join(line % n for n in range(length // 4))
        redactor = Redactor(Secrets())
        redactor.learn_log(text)
        assert len(set(redactor.log(text).splitlines())) == length // 4

    assert is_linear(work)
