# SPDX-License-Identifier: GPL-2.0-or-later
"""The consequences of a bisect's stage: kernels that confirm its result, and further stages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from run.bisect.state import Stage, State, Step

RUNS = 5  # per kernel of a finding
WORSE, BETTER = "regressed", "improved"


def new(state: State) -> Stage | None:
    """The first stage that was not searched yet; None if there is none."""
    return next((stage for stage in state.stages if not stage.word), None)


def outermost(state: State, stage: Stage) -> tuple[Stage, str]:
    """The stage with the row that a stage inside merges belongs to, and the merge in that row."""
    culprit = stage.suspects[0]
    while stage.kind == "merge":
        outer = state.stages[stage.outer]
        culprit, stage = outer.suspects[0], outer
    return stage, culprit


def is_inside(state: State, stage: Stage) -> bool:
    """Whether the stage found a merge whose own commits have to be searched."""
    if state.kind == "kernels" or stage.word != "found" or len(stage.suspects) > 1:
        return False
    culprit = stage.suspects[0]
    return len(state.steps[culprit].parents) > 1 and not (
        stage.kind == "merge" and stage.row[-1] == culprit
    )


def tested_beside(state: State, row: list[str], culprit: str) -> tuple[int, int]:
    """Indexes in the row of the last tested kernel before the culprit and the first from it on."""
    tested = {run.name for run in state.runs if run.counts}
    at = row.index(culprit)
    left = max(place for place in range(at) if row[place] in tested)
    right = min(place for place in range(at, len(row)) if row[place] in tested)
    return left, right


@dataclass(frozen=True)
class Kernels:
    """The kernels of a finding. `parent`: before the culprit; `revert`: the bad end without it.

    same_as: the name of a kernel -> the name of an earlier kernel with the same binary.
    """

    parent: Step
    culprit: Step
    good: Step
    bad: Step
    revert: Step | None
    same_as: Mapping[str, str] = field(default_factory=dict)

    @property
    def all(self) -> list[Step]:
        """Each kernel once, the parent first."""
        kernels = {step.name: step for step in (self.parent, self.culprit, self.good, self.bad)}
        return [*kernels.values(), *([self.revert] if self.revert else [])]

    @property
    def to_run(self) -> list[str]:
        """The names of the kernels with different binaries."""
        return [step.name for step in self.all if step.name not in self.same_as]

    def run_as(self, step: Step) -> str:
        """The name of the kernel that is run with this kernel's binary."""
        return self.same_as.get(step.name, step.name)

    def sentences_on_same(self) -> list[str]:
        """A sentence for each kernel with the binary of an earlier one."""
        return [f"{name} is the same binary as {other}." for name, other in self.same_as.items()]


def ends_of(state: State, stage: Stage) -> tuple[Step, Step]:
    """The good and the bad end of the row that a stage belongs to."""
    row, _ = outermost(state, stage)
    return state.steps[row.row[0]], state.steps[row.row[-1]]


def judged(kernels: Kernels, at: dict[str, Any], on_bad: dict[str, Any]) -> dict[str, Any]:
    """The verdicts to keep; at: verdicts against the parent, on_bad: against the bad end."""

    def word(found: dict[str, Any], step: Step | None) -> dict[str, Any]:
        verdict = found.get(kernels.run_as(step)) if step else None
        if verdict is None or verdict["verdict"] is None:  # it has no runs, or is the baseline
            return {}
        primary = verdict.get("primary") or {}
        kept = {key: primary.get(key) for key in ("ratio", "low", "high", "p_adjusted")}
        return {"verdict": verdict["verdict"], "sentence": verdict["sentence"], **kept}

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
    """Maps each name whose digest an earlier name has to the first such name."""
    firsts: dict[str, str] = {}
    for name, digest in digests.items():
        firsts.setdefault(digest, name)
    return {name: firsts[digest] for name, digest in digests.items() if firsts[digest] != name}


def more_stages(state: State, stage: Stage) -> list[Stage]:
    """Stages to search next: before the parent or after the culprit, if there is another step."""
    row, culprit = outermost(state, stage)
    left, right = tested_beside(state, row.row, culprit)
    finding = stage.finding
    stages = []
    before, after = row.row[: left + 1], row.row[right:]
    if finding["good_against_parent"].get("verdict") == BETTER and len(before) > 1:
        stages.append(Stage(before, "before"))
    if finding["culprit_against_bad"].get("verdict") == BETTER and len(after) > 1:
        stages.append(Stage(after, "after"))
    return stages
