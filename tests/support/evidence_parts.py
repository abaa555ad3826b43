# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: the parts of monitors/evidence by themselves."""

from tests.support.observers import Driven, driver


class Refused(Exception):
    """What taskstats says that is wrong."""


class Parts(Driven):
    """Told orders, which it answers with a line."""

    DRIVER = "evidence_driver"
    FILES: tuple[str, ...] = ("tasks", "taskstats", "layout", "blocked", "rows", "room")
    COUNTED: tuple[str, ...] = ("malloc", "calloc", "realloc")

    def __init__(self, fds: tuple[int, ...] = ()) -> None:
        files = [*(f"evidence/{part}.c" for part in self.FILES), "text.c", "clock.c"]
        flags = tuple(f"-Wl,--wrap={name}" for name in self.COUNTED)
        super().__init__(driver(self.DRIVER, *files, flags=flags), fds=fds)

    def __call__(self, *words: object) -> str:
        return self.all([words])[0]

    def all(self, orders: "list[tuple[object, ...]]") -> list[str]:
        """The answers to so many orders; Refused is raised at the first that is an error."""
        lines = [" ".join(map(_word, order)) + "\n" for order in orders]
        self.tell("".join(lines).encode())
        answers = [self.line() for _ in orders]
        for answer in answers:
            if answer.startswith("! "):
                raise Refused(answer[2:])
        return answers

    def numbers(self, *words: object) -> list[int]:
        return [int(word) for word in self(*words).split()]


class LiveLock(Parts):
    """Its part alone."""

    DRIVER = "livelock_driver"
    FILES = ("livelock", "room")
    COUNTED = ()


def _word(word: object) -> str:
    if isinstance(word, bytes):
        return word.hex() or "-"
    return repr(word) if isinstance(word, float) else str(word)
