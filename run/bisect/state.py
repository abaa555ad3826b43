# SPDX-License-Identifier: GPL-2.0-or-later
"""bisect.json: all that a bisect knows, written after each run by a rename."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contract.run_record import write_json
from contract.untrusted import json_object
from errors import UserError

FILE = "bisect.json"
FORMAT = 1
REVERT = "-revert-"  # in the name of a kernel, after that of the one that it is but for a commit
ENDS, SEARCH, FINDING = "ends", "search", "finding"  # the folders of its campaigns


@dataclass
class Step:
    """A kernel of the row. name: its label and folder; commit: "" where it is none."""

    name: str
    kernel: str  # SPEC
    subject: str = ""
    commit: str = ""
    parents: list[str] = field(default_factory=list)


@dataclass
class RunFacts:
    """A run that counts, or would: figure: more is worse; None: it failed or was not done."""

    place: str  # the campaign's folder and the run's in it
    name: str  # of its kernel
    state: str
    figure: float | None
    counts: bool = True
    why_not: str = ""


@dataclass
class Stage:
    """A row that is searched, its ends included, and what came of it."""

    row: list[str]  # names
    kind: str = "row"  # or: merge, before, after (where it is from)
    outer: int = 0  # of a merge: the stage that found it
    word: str = ""  # found, unsure
    why: str = ""
    suspects: list[str] = field(default_factory=list)  # names; of `found` one, or a stretch
    probability: float = 0.0
    probable: list[tuple[str, float]] = field(default_factory=list)
    finding: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """The whole of it."""

    command: list[str]
    kind: str  # commits, kernels, hunks
    tree: str = ""
    paths: list[str] = field(default_factory=list)
    good: str = ""
    bad: str = ""
    newest: str = ""
    steps: dict[str, Step] = field(default_factory=dict)
    ends: dict[str, Any] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    runs: list[RunFacts] = field(default_factory=list)
    untestable: dict[str, str] = field(default_factory=dict)  # name: why
    twins: dict[str, str] = field(default_factory=dict)  # name: that with the same binary
    digests: dict[str, str] = field(default_factory=dict)  # name: of its binary
    available_kib: int = 0  # MemAvailable that all kernels are given
    memory: dict[str, dict[str, int]] = field(default_factory=dict)  # name: MiB more, KiB it had
    finished: bool = False

    def write(self, folder: Path) -> None:
        """Into the bisect's folder."""
        write_json(folder / FILE, {"format": FORMAT, **asdict(self)})


def is_bisect(folder: Path) -> bool:
    """Whether a folder holds a bisect."""
    return (folder / FILE).is_file()


def read(folder: Path) -> State:
    """The state in that folder; UserError if it is not as a bisect left it."""
    path = folder / FILE
    try:
        found = json_object(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        if found is None or found.pop("format") != FORMAT:
            raise ValueError("another format")
        found["steps"] = {name: Step(**one) for name, one in found["steps"].items()}
        found["runs"] = [RunFacts(**one) for one in found["runs"]]
        found["stages"] = [Stage(**one) for one in found["stages"]]
        for stage in found["stages"]:
            stage.probable = [(name, share) for name, share in stage.probable]
        return State(**found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path} is not as a bisect left it: {json.dumps(str(error))}",
            hint="begin anew in another folder: --out",
        ) from None
