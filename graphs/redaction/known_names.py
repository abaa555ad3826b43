# SPDX-License-Identifier: GPL-2.0-or-later
"""Searches texts for known names, wherever they are in a text and however many names there are.

The words of a text are looked up one by one: the time depends on the text, not on the names.
"""

import re
from collections.abc import Callable

from graphs.redaction.domains import DOMAIN
from graphs.redaction.spelling import LONGEST, spellings

WORD = re.compile(r"\\{1,2}x[0-9A-Fa-f]{2}|[^\W_]+")
MOST_LETTERS = 16 * LONGEST  # of a name, which may be a path
Secret = tuple[str, str]  # kind and form


class KnownNames:
    """The known names, in all spellings, indexed by their first word."""

    def __init__(self) -> None:
        self._known: dict[str, Secret] = {}  # spelling in lower case -> secret
        # First word -> (characters before it, length of the whole name); longest first.
        self._places: dict[str, list[tuple[int, int]]] = {}

    def add(self, kind: str, name: str, form: str) -> bool:
        """Search for this name from now on; returns whether the name is new."""
        if len(name) > MOST_LETTERS or name.lower() in self._known:
            return False
        for spelling in spellings(name.lower()):
            word = WORD.search(spelling)
            if word and spelling not in self._known:
                self._known[spelling] = (kind, form)
                places = self._places.setdefault(word[0], [])
                place = (word.start(), len(spelling))
                if place not in places:
                    places.append(place)
                    places.sort(key=lambda entry: -entry[1])
        return True

    def kind(self, name: str) -> str:
        """The kind of a name; '' if it is not known."""
        return self._known.get(name.lower(), ("", ""))[0]

    def replaced(self, text: str, token: Callable[[str, str], str]) -> str:
        """The text with tokens in place of names; a host's domain is replaced with it."""
        parts: list[str] = []
        done = 0
        for word in WORD.finditer(text):
            places = self._places.get(word[0].lower())
            if places and word.start() >= done:
                begin, end, secret = self._at(text, word.start(), places, done)
                if secret:
                    parts += [text[done:begin], token(*secret)]
                    done = end
        return "".join([*parts, text[done:]]) if parts else text

    def _at(
        self, text: str, start: int, places: list[tuple[int, int]], done: int
    ) -> tuple[int, int, Secret | None]:
        """Begin and end of the longest name whose first word starts here, and its secret."""
        for lead, length in places:
            begin, end = start - lead, start - lead + length
            secret = self._known.get(text[begin:end].lower()) if begin >= done else None
            if secret and not text[end : end + 1].isalnum():
                domain = DOMAIN.match(text, end) if secret[0] == "host" else None
                return begin, domain.end() if domain else end, secret
        return start, start, None
