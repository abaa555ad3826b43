# SPDX-License-Identifier: GPL-2.0-or-later
"""What follows from a stage of a bisect: which kernels confirm it, and where it goes on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run.bisect.state import Stage, State, Step

RUNS = 5  # of each kernel of a finding
WORSE, BETTER = "regressed", "improved"


def new(state: State) -> Stage | None:
    """The first stage that is not searched yet."""
    return next((one for one in state.stages if not one.word), None)


def outermost(state: State, stage: Stage) -> tuple[Stage, str]:
    """The row of commits that a stage inside of merges belongs to, and the merge in that row."""
    culprit = stage.suspects[0]
    while stage.kind == "merge":
        outer = state.stages[stage.outer]
        culprit, stage = outer.suspects[0], outer
    return stage, culprit


def is_inside(state: State, stage: Stage) -> bool:
    """Whether what was found is a merge whose own commits are to be searched."""
    if state.kind == "kernels" or stage.word != "found" or len(stage.suspects) > 1:
        return False
    culprit = stage.suspects[0]
    return len(state.steps[culprit].parents) > 1 and not (
        stage.kind == "merge" and stage.row[-1] == culprit
    )


def tested_beside(state: State, row: list[str], culprit: str) -> tuple[int, int]:
    """The places of the kernels with runs before the culprit, and from it on."""
    tested = {one.name for one in state.runs if one.counts}
    at = row.index(culprit)
    left = max(place for place in range(at) if row[place] in tested)
    right = min(place for place in range(at, len(row)) if row[place] in tested)
    return left, right


@dataclass(frozen=True)
class Kernels:
    """The kernels of a finding. `parent`: before the culprit; `revert`: the bad end without it.

    same_as: of each that is the same binary as one before it, that one's name.
    """

    parent: Step
    culprit: Step
    good: Step
    bad: Step
    revert: Step | None
    same_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[Step]:
        """Each once, the parent first."""
        found = {one.name: one for one in (self.parent, self.culprit, self.good, self.bad)}
        return [*found.values(), *([self.revert] if self.revert else [])]

    @property
    def to_run(self) -> list[str]:
        """The names of those that are different binaries."""
        return [step.name for step in self.all if step.name not in self.same_as]

    def run_as(self, step: Step) -> str:
        """The name that this binary is run by."""
        return self.same_as.get(step.name, step.name)

    def told_same(self) -> list[str]:
        """A sentence for each that is no binary of its own."""
        return [f"{name} is the same binary as {other}." for name, other in self.same_as.items()]


def ends_of(state: State, stage: Stage) -> tuple[Step, Step]:
    """The good and the bad end of the row that a stage is of."""
    row, _ = outermost(state, stage)
    return state.steps[row.row[0]], state.steps[row.row[-1]]


def judged(kernels: Kernels, at: dict[str, Any], on_bad: dict[str, Any]) -> dict[str, Any]:
    """What of the verdicts is kept; at: against the parent, on_bad: against the bad end."""

    def word(found: dict[str, Any], step: Step | None) -> dict[str, Any]:
        one = found.get(kernels.run_as(step)) if step else None
        if one is None or one["verdict"] is None:  # it has no runs, or is the baseline itself
            return {}
        primary = one.get("primary") or {}
        kept = {key: primary.get(key) for key in ("ratio", "low", "high", "p_adjusted")}
        return {"verdict": one["verdict"], "sentence": one["sentence"], **kept}

    return {
        "parent": kernels.parent.name,
        "culprit": kernels.culprit.name,
        "good": kernels.good.name,
        "bad": kernels.bad.name,
        "revert": kernels.revert.name if kernels.revert else "",
        "culprit_against_parent": word(at, kernels.culprit),
        "good_against_parent": word(at, kernels.good),
        "revert_against_bad": word(on_bad, kernels.revert),
        "culprit_against_bad": word(on_bad, kernels.culprit),
    }


def same_binaries(digests: Mapping[str, str]) -> dict[str, str]:
    """Of each name whose digest an earlier one has, the first such name."""
    firsts: dict[str, str] = {}
    for name, digest in digests.items():
        firsts.setdefault(digest, name)
    return {name: firsts[digest] for name, digest in digests.items() if firsts[digest] != name}


def more_stages(state: State, stage: Stage) -> list[Stage]:
    """Where it goes on: there is another step before the parent, or after the culprit."""
    row, culprit = outermost(state, stage)
    left, right = tested_beside(state, row.row, culprit)
    finding = stage.finding
    found = []
    before, after = row.row[: left + 1], row.row[right:]
    if finding["good_against_parent"].get("verdict") == BETTER and len(before) > 1:
        found.append(Stage(before, "before"))
    if finding["culprit_against_bad"].get("verdict") == BETTER and len(after) > 1:
        found.append(Stage(after, "after"))
    return found
