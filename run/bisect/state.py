# SPDX-License-Identifier: GPL-2.0-or-later
"""bisect.json: the whole state of a bisect, replaced by a rename after each run."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from contract.run_record import write_json
from contract.untrusted import json_object
from errors import UserError

FILE = "bisect.json"
FORMAT = 1
REVERT = "-revert-"  # in a kernel's name: BASE-revert-COMMIT is BASE without COMMIT
ENDS, SEARCH, FINDING = "ends", "search", "finding"  # folders of the bisect's campaigns


@dataclass
class Step:
    """A kernel of the row. name: its label and folder; commit: "" if it is not a commit's."""

    name: str
    kernel: str  # SPEC
    subject: str = ""
    commit: str = ""
    parents: list[str] = field(default_factory=list)


@dataclass
class RunFacts:
    """A run's result. figure: larger is worse; None: the run failed or is unfinished."""

    place: str  # CAMPAIGN/KERNEL/NUMBER
    name: str  # the kernel's
    state: str
    figure: float | None
    counts: bool = True
    why_not: str = ""


@dataclass
class Stage:
    """A row to search, with its ends, and the result of the search."""

    row: list[str]  # names of kernels
    kind: str = "row"  # or its origin: merge, before, after
    outer: int = 0  # of kind merge: the index of the stage that found the merge
    word: str = ""  # found, unsure; "": not searched yet
    why: str = ""
    suspects: list[str] = field(default_factory=list)  # names; if `found` one, or neighbours
    probability: float = 0.0
    probable: list[tuple[str, float]] = field(default_factory=list)
    finding: dict[str, Any] = field(default_factory=dict)


@dataclass
class State:
    """All that a bisect knows."""

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
    twins: dict[str, str] = field(default_factory=dict)  # name: the kernel with the same binary
    digests: dict[str, str] = field(default_factory=dict)  # name: its binary's digest
    available_kib: int = 0  # MemAvailable that all kernels get, KiB
    memory: dict[str, dict[str, int]] = field(default_factory=dict)  # name: MiB added, KiB it had
    left_out: list[str] = field(default_factory=list)  # hunks that do not compile by themselves
    finished: bool = False

    def write(self, folder: Path) -> None:
        """Write it into the bisect's folder."""
        write_json(folder / FILE, {"format": FORMAT, **asdict(self)})


def is_bisect(folder: Path) -> bool:
    """Whether a folder holds a bisect."""
    return (folder / FILE).is_file()


def read(folder: Path) -> State:
    """The state in that folder; UserError if it was edited or damaged."""
    path = folder / FILE
    try:
        state = json_object(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    try:
        if state is None or state.pop("format") != FORMAT:
            raise ValueError("another format")
        state["steps"] = {name: Step(**fields) for name, fields in state["steps"].items()}
        state["runs"] = [RunFacts(**fields) for fields in state["runs"]]
        state["stages"] = [Stage(**fields) for fields in state["stages"]]
        for stage in state["stages"]:
            stage.probable = [(name, share) for name, share in stage.probable]
        return State(**state)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(
            f"{path} was edited or damaged: {json.dumps(str(error))}",
            hint="start in another folder: --out",
        ) from None
