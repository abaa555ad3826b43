# SPDX-License-Identifier: GPL-2.0-or-later
"""Replaces secrets by tokens: the same secret gets the same token in every file of a bundle.

First everything is shown to `learn`, which gathers names and spellings; then `text` and `value`
replace. Both can be given what they gave before, and change nothing in it (docs/BUNDLE.md).
"""

import re
from collections import Counter
from functools import partial
from typing import Any

from graphs.redaction.ipv4 import is_address
from graphs.redaction.secret_names import Secrets, is_public, is_searchable
from graphs.redaction.secret_patterns import (
    AFTER,
    BEFORE,
    CONTEXTS,
    KEYS,
    RULES,
    TOP_LEVELS,
    Rule,
    named,
)

KINDS = {
    "host": "host name",
    "user": "user name",
    "home": "home folder",
    "login": "login of a URL",
    "email": "e-mail address",
    "mac": "MAC address",
    "ip": "IP address",
    "uuid": "UUID or ID of a volume",
    "serial": "serial number or name of a disk",
    "ssid": "name of a wireless network",
}
TOKEN = re.compile(rf"<({'|'.join(KINDS)})-([1-9][0-9]{{0,8}})>")
SHORTEST_BARE = 6  # of a serial that is searched for wherever it stands
LONGEST_KEPT = 4096  # of a text whose outcome is remembered
MOST_KEPT = 200_000
# What comes before a record's text in kern.log and console.log: no two lines have the same.
STAMP = re.compile(r"\[ *[0-9]+\.[0-9]+\] ?(?:<[0-9]+> )?")


class Redactor:
    """Tokens by secret. Names are learned at first; `text` may be asked for when all are."""

    def __init__(self, own: Secrets) -> None:
        self._tokens: dict[tuple[str, str], str] = {}
        self._used: Counter[str] = Counter()  # kind: the highest number that the results hold
        self._names: dict[str, tuple[str, str]] = {}  # in lower case: kind, form
        self._bare: dict[str, tuple[str, str]] = {}  # a spelling without separators
        self._homes = sorted(own.homes - {"/root"}, key=lambda home: (-len(home), home))
        self._weak: set[tuple[str, str]] = set()
        self._search: re.Pattern[str] | None = None
        self._kept: dict[str, str] = {}
        self._learned: set[str] = set()
        for host in sorted(own.hosts):
            self._learn_name("host", host)
        for user in sorted(own.users):
            self._learn_name("user", user)

    def learn(self, text: str) -> None:
        """Gather the names and spellings of this text, and the tokens that it holds already."""
        lower = text.lower()
        for kind, name in named(text, lower):
            self._learn_name(kind, name)
        for rule in RULES:
            if rule.learn and rule.hint in lower:
                for match in rule.pattern.finditer(text):
                    self._learn_bare(rule, match)
        for token in TOKEN.finditer(text):
            self._used[token[1]] = max(self._used[token[1]], int(token[2]))

    def _learn_name(self, kind: str, name: str) -> None:
        if kind == "host" and "." in name and is_searchable(name.split(".")[0]):
            name = name.split(".")[0]  # its domain goes with it, see _compiled
        if is_public(name):
            return
        if not is_searchable(name) and " " not in name:
            self._weak.add((kind, name.lower()))
        elif self._names.setdefault(name.lower(), (kind, name.lower()))[0] != kind:
            return
        self._search = None
        self._kept.clear()

    def _learn_bare(self, rule: Rule, match: re.Match[str]) -> None:
        form = rule.known(match)
        if form is not None and len(form) >= SHORTEST_BARE and re.search("[0-9]", form):
            bare = form.lower()
            if not (rule.kind == "serial" and not re.search("[a-z]", bare) and len(bare) < 8):
                self._bare.setdefault(bare, (rule.kind, form))
                self._search = None
                self._kept.clear()

    def _compiled(self) -> re.Pattern[str]:
        """Every learned name and spelling, longest first; a host's name with its domain."""
        if self._search is None:
            hosts = [name for name, (kind, _) in self._names.items() if kind == "host"]
            others = [name for name in (*self._names, *self._bare) if name not in set(hosts)]
            others += [escaped for name in others if (escaped := _escaped(name)) != name]
            hosts += [escaped for name in hosts if (escaped := _escaped(name)) != name]
            others.sort(key=lambda name: (-len(name), name))
            hosts.sort(key=lambda name: (-len(name), name))
            domain = rf"(?:(?:\.[^\W_][\w-]*){{0,4}}\.{TOP_LEVELS}(?![\w-]|\.\w))?"
            parts = ["|".join(map(re.escape, others))] if others else []
            parts += [f"(?:{'|'.join(map(re.escape, hosts))}){domain}"] if hosts else []
            body = "|".join(parts) or r"(?!)"
            self._search = re.compile(f"{BEFORE}({body}){AFTER}", re.IGNORECASE)
        return self._search

    def token(self, kind: str, form: str) -> str:
        """The token of a secret, a new one at its first appearance; all spellings have the same."""
        separators = {"uuid": "-", "mac": "[^0-9a-f]"}.get(kind)
        form = re.sub(separators, "", form.lower()) if separators else form.lower()
        key = (kind, form)
        if key not in self._tokens:
            self._used[kind] += 1
            self._tokens[key] = f"<{kind}-{self._used[kind]}>"
        return self._tokens[key]

    @property
    def given(self) -> frozenset[str]:
        """Every token that stands for a secret."""
        return frozenset(self._tokens.values())

    def text(self, text: str) -> str:
        """The text with tokens in place of secrets."""
        if text in self._kept:
            return self._kept[text]
        found = self._redacted(text)
        if len(text) <= LONGEST_KEPT and len(self._kept) < MOST_KEPT:
            self._kept[text] = found
        return found

    def _redacted(self, text: str) -> str:
        found = text
        for home in self._homes:
            if home in found:
                pattern = re.compile(re.escape(home) + r"(?![\w-])")
                found = pattern.sub(lambda match: self.token("home", match[0]), found)
        lower = found.lower()
        for rule in RULES:
            if rule.hint in lower:
                found = rule.pattern.sub(partial(self._by_rule, rule), found)
        found = self._compiled().sub(self._by_name, found)
        for kind, hint, pattern in CONTEXTS if self._weak else ():
            if hint in lower:
                found = pattern.sub(partial(self._by_context, kind), found)
        return found

    def _by_rule(self, rule: Rule, match: re.Match[str]) -> str:
        form = rule.known(match)
        return match[0] if form is None else _put(match, self.token(rule.kind, form))

    def _by_name(self, match: re.Match[str]) -> str:
        found = match[1].lower()
        for held in (self._names, self._bare):
            if found in held:
                return self.token(*held[found])
        plain = _unescaped(found)
        if plain in self._names:
            return self.token(*self._names[plain])
        return self.token("host", self._names_host(plain))

    def _names_host(self, found: str) -> str:
        """The host whose name, with a domain behind it, was found."""
        while found not in self._names:
            found = found.rpartition(".")[0]
        return found

    def _by_context(self, kind: str, match: re.Match[str]) -> str:
        name = match[1].lower()
        known = (kind, name) in self._weak
        return _put(match, self.token(kind, name)) if known else match[0]

    def log(self, text: str) -> str:
        """As `text`, for a log of many lines that other logs hold too, but for their stamps."""
        lines = split(text)
        new = list(dict.fromkeys(tail for _, tail in lines if tail not in self._kept))
        if len(self._kept) + len(new) > MOST_KEPT:
            self._kept.clear()
            new = list(dict.fromkeys(tail for _, tail in lines))
        if new:
            # No rule looks beyond its line: all of them at once are the same as each by itself.
            self._kept.update(zip(new, self._redacted("\n".join(new)).split("\n"), strict=True))
        return "\n".join(stamp + self._kept[tail] for stamp, tail in lines)

    def learn_log(self, text: str) -> None:
        """As `learn`, for a log."""
        lines = {tail for _, tail in split(text)} - self._learned
        self.learn("\n".join(sorted(lines)))
        if len(self._learned) < MOST_KEPT:
            self._learned |= lines

    def learn_value(self, value: Any, key: str = "") -> None:
        """As `learn`, for a value of JSON or TOML."""
        if isinstance(value, str):
            if value not in self._learned:
                self.learn(value)
                self._learned.add(value)
            for kind in ("host", "user"):
                if KEYS[kind].fullmatch(key) and value.strip() and not TOKEN.search(value):
                    self._learn_name(kind, value)
        elif isinstance(value, dict):
            for name, each in value.items():
                self.learn_value(name)
                self.learn_value(each, name)
        elif isinstance(value, list):
            for each in value:
                self.learn_value(each, key)

    def value(self, value: Any, key: str = "") -> Any:
        """A value of JSON or TOML with tokens in its texts and keys; no number ever changes."""
        if isinstance(value, str):
            return self._keyed(value, key) or self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(each, name) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(each, key) for each in value)
        return value

    def _keyed(self, value: str, key: str) -> str:
        """The token of a value whose key says what it is; '' if it does not, or it is public."""
        if not value.strip() or TOKEN.search(value):
            return ""
        for kind, pattern in KEYS.items():
            if pattern.fullmatch(key):
                if kind == "ip" and not is_address(value):
                    continue
                public = is_public(value) and kind in ("host", "user")
                return "" if public else self.token(kind, value)
        return ""


def split(log: str) -> list[tuple[str, str]]:
    """Each line of a log as its stamp and the rest."""
    lines = []
    for line in log.split("\n"):
        stamp = STAMP.match(line)
        end = stamp.end() if stamp else 0
        lines.append((line[:end], line[end:]))
    return lines


def _put(match: re.Match[str], token: str) -> str:
    """The whole match with the token in place of its secret."""
    if not match.re.groups:
        return token
    begin, end = (place - match.start() for place in match.span(1))
    return match[0][:begin] + token + match[0][end:]


def _escaped(name: str) -> str:
    """The name as latency logs and /dev/kmsg spell it: bytes beyond ASCII are \\xNN."""
    raw = name.encode("utf-8", "surrogateescape")
    return "".join(chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in raw)


def _unescaped(text: str) -> str:
    raw = re.sub(
        rb"\\x([0-9a-f]{2})",
        lambda match: bytes([int(match[1], 16)]),
        text.encode("utf-8", "surrogateescape"),
    )
    return raw.decode("utf-8", "surrogateescape")
