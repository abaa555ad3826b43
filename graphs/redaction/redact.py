# SPDX-License-Identifier: GPL-2.0-or-later
"""Replaces secrets by tokens: the same secret gets the same token in every file of a bundle.

First `learn` collects names and spellings from everything; then `text` and `value` replace them.
Both leave text unchanged that is already redacted (docs/reference/redaction.md).
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from graphs.redaction.disk_serials import IN_MODEL
from graphs.redaction.domains import FULL_NAME
from graphs.redaction.known_names import KnownNames
from graphs.redaction.name_contexts import CONTEXTS, named
from graphs.redaction.rules import Rule, secret
from graphs.redaction.secret_keys import folders_of, kept_file, kind_of
from graphs.redaction.secret_names import Secrets, is_public, is_searchable
from graphs.redaction.secret_patterns import FIRST_RULES, RULES
from graphs.redaction.spelling import plain_name

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
    "secret": "password, token or key",
    "label": "label of a file system",
    "iqn": "iSCSI or NVMe name",
    "path": "file or folder outside the system's",
}
TOKEN = re.compile(rf"<({'|'.join(KINDS)})-([1-9][0-9]{{0,8}})>")
SHORTEST_BARE = 6  # characters of a serial number that is searched for everywhere
LONG_STEM = 8  # characters of a file's name that is searched for without its folder
LONGEST_KEPT = 4096  # characters of a text whose redaction is cached
MOST_KEPT = 200_000  # texts in the cache
# The prefix of a record in kern.log and console.log, which differs in every line.
STAMP = re.compile(r"\[ *[0-9]+\.[0-9]+\] ?(?:<[0-9]+> )?")


class Redactor:
    """Maps secrets to tokens. All names have to be learned before `text` is called."""

    def __init__(self, own: Secrets) -> None:
        self._tokens: dict[tuple[str, str], str] = {}
        self._used: Counter[str] = Counter()  # kind -> highest number of a token in the results
        self._known = KnownNames()
        homes = sorted(own.homes - {"/root"}, key=lambda home: (-len(home), home))
        self._rules = (*FIRST_RULES, *map(_home, homes), *RULES)
        self._weak: set[tuple[str, str]] = set()
        self._kept: dict[str, str] = {}
        self._learned: set[str] = set()
        for host in sorted(own.hosts):
            self._learn_name("host", host)
        for user in sorted(own.users):
            self._learn_name("user", user)

    def learn(self, text: str) -> None:
        """Collect the names and spellings in this text, and the tokens that it already contains."""
        lower = text.lower()
        for kind, name in named(text, lower):
            self._learn_name(kind, name)
        for rule in self._rules:
            if rule.learn and rule.hint in lower:
                for match in rule.pattern.finditer(text):
                    self._learn_secret(rule, match)
        for token in TOKEN.finditer(text):
            self._used[token[1]] = max(self._used[token[1]], int(token[2]))

    def _learn_name(self, kind: str, name: str) -> None:
        if kind == "host" and "." in name and is_searchable(name.split(".")[0]):
            name = name.split(".")[0]  # its domain is replaced with it, see KnownNames
        if is_public(name):
            return
        if not is_searchable(name) and " " not in name:
            self._weak.add((kind, name.lower()))
        elif not self._known.add(kind, name, name.lower()):
            return
        self._kept.clear()

    def _learn_secret(self, rule: Rule, match: re.Match[str]) -> None:
        form = rule.known(match)
        if form is None or TOKEN.search(form):
            return
        if rule.kind in ("ssid", "path"):
            self._learn_words(rule.kind, form)
        else:
            self._learn_bare(rule.kind, form)

    def _learn_bare(self, kind: str, form: str) -> None:
        bare = form.lower()
        if len(bare) < SHORTEST_BARE or not re.search("[0-9]", bare):
            return
        if kind == "serial" and not re.search("[a-z]", bare) and len(bare) < 8:
            return
        if self._known.add(kind, form, form):
            self._kept.clear()

    def _learn_words(self, kind: str, form: str) -> None:
        """Learn a name of several words, or a path and its file's name."""
        words = [form]
        if kind == "path":
            stem = re.sub(r"\.\w{1,8}$", "", form.rstrip("/").rpartition("/")[2])
            words += [stem] if len(stem) >= LONG_STEM else []
        for word in words:
            if (" " in word or "/" in word or is_searchable(word)) and self._known.add(
                kind, word, form.lower()
            ):
                self._kept.clear()

    def token(self, kind: str, form: str) -> str:
        """The token of a secret, a new one for a new secret; all spellings have the same token."""
        separators = {"uuid": "-", "mac": "[^0-9a-f]"}.get(kind)
        form = re.sub(separators, "", form.lower()) if separators else form.lower()
        key = (kind, form)
        if key not in self._tokens:
            self._used[kind] += 1
            self._tokens[key] = f"<{kind}-{self._used[kind]}>"
        return self._tokens[key]

    @property
    def given(self) -> frozenset[str]:
        """All tokens that replace a secret."""
        return frozenset(self._tokens.values())

    def text(self, text: str) -> str:
        """The text with tokens in place of secrets."""
        if text in self._kept:
            return self._kept[text]
        redacted = self._redacted(text)
        if len(text) <= LONGEST_KEPT and len(self._kept) < MOST_KEPT:
            self._kept[text] = redacted
        return redacted

    def _redacted(self, text: str) -> str:
        redacted, lower = text, text.lower()
        for rule in self._rules:
            if rule.hint in lower:
                redacted = rule.pattern.sub(partial(self._by_rule, rule), redacted)
        redacted = self._known.replaced(redacted, self.token)
        redacted = FULL_NAME.pattern.sub(partial(self._by_rule, FULL_NAME), redacted)
        for kind, hint, pattern in CONTEXTS if self._weak else ():
            if hint in lower:
                redacted = pattern.sub(partial(self._by_context, kind), redacted)
        return redacted

    def _by_rule(self, rule: Rule, match: re.Match[str]) -> str:
        form = rule.known(match)
        if form is None or TOKEN.search(secret(match)):
            return match[0]
        return _put(match, self.token(rule.kind, form))

    def _by_context(self, kind: str, match: re.Match[str]) -> str:
        name = plain_name(match[1]).lower()
        known = (kind, name) in self._weak
        return _put(match, self.token(kind, name)) if known else match[0]

    def log(self, text: str) -> str:
        """Like `text`, for a log with many lines that other logs repeat with other time stamps."""
        lines = split(text)
        new = list(dict.fromkeys(tail for _, tail in lines if tail not in self._kept))
        if len(self._kept) + len(new) > MOST_KEPT:
            self._kept.clear()
            new = list(dict.fromkeys(tail for _, tail in lines))
        if new:
            # No rule matches across lines: all lines together give the same as each line alone.
            self._kept.update(zip(new, self._redacted("\n".join(new)).split("\n"), strict=True))
        return "\n".join(stamp + self._kept[tail] for stamp, tail in lines)

    def learn_log(self, text: str) -> None:
        """Like `learn`, for a log."""
        lines = {tail for _, tail in split(text)} - self._learned
        self.learn("\n".join(sorted(lines)))
        if len(self._learned) < MOST_KEPT:
            self._learned |= lines

    def learn_value(self, value: Any, key: str = "") -> None:
        """Like `learn`, for a value of JSON or TOML."""
        if isinstance(value, str):
            if value not in self._learned:
                self.learn(value)
                self._learned.add(value)
            if not TOKEN.search(value):
                self._learn_keyed(value, key)
        elif isinstance(value, dict):
            for name, item in value.items():
                self.learn_value(name)
                self.learn_value(item, name)
        elif isinstance(value, list):
            for item, name in _with_options(value, key):
                self.learn_value(item, name)

    def _learn_keyed(self, value: str, key: str) -> None:
        kind = kind_of(value, key) if value.strip() else ""
        if kind in ("host", "user"):
            self._learn_name(kind, value)
        elif kind in ("ssid", "path"):
            self._learn_words(kind, value)
        elif kind in ("serial", "secret"):
            self._learn_bare(kind, value)
        elif kind in ("uuid", "mac"):
            self._learn_bare(kind, re.sub("[^0-9a-z]", "", value.lower()))
        elif folders := folders_of(value, key):
            for folder in folders:
                self._learn_words("path", folder)
        elif key.lower().endswith("model") and (match := IN_MODEL.pattern.search(value)):
            self._learn_secret(IN_MODEL, match)

    def value(self, value: Any, key: str = "") -> Any:
        """A value of JSON or TOML with tokens in its texts and keys; numbers never change."""
        if isinstance(value, str):
            return self._keyed(value, key) or self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(item, name) for item, name in _with_options(value, key))
        return value

    def _keyed(self, value: str, key: str) -> str:
        """The token of a value whose key makes it a secret; '' if not, or if it is public."""
        if not value.strip() or TOKEN.search(value):
            return ""
        kind = kind_of(value, key)
        kept = kept_file(value) if kind == "path" else ""
        return self.token(kind, value.removesuffix(kept)) + kept if kind else ""


def _with_options(values: Sequence[Any], key: str) -> Iterator[tuple[Any, str]]:
    """The values of a list with their keys; for words of a command that is the previous option."""
    before = key
    for value in values:
        yield value, before
        is_option = isinstance(value, str) and re.fullmatch(r"--[a-z][a-z-]{1,40}", value)
        before = value[2:].replace("-", "_") if is_option else key


def _home(home: str) -> Rule:
    """The rule for a home folder of the bundle's creator."""
    return Rule("home", home.lower(), re.compile(re.escape(home) + r"(?![\w-])"), secret)


def split(log: str) -> list[tuple[str, str]]:
    """Each line of a log, split into time stamp and rest."""
    lines = []
    for line in log.split("\n"):
        stamp = STAMP.match(line)
        end = stamp.end() if stamp else 0
        lines.append((line[:end], line[end:]))
    return lines


def _put(match: re.Match[str], token: str) -> str:
    """The whole match, with the token in place of the secret."""
    begin, end = (place - match.start() for place in match.span(match.lastindex or 0))
    return match[0][:begin] + token + match[0][end:]
