# SPDX-License-Identifier: GPL-2.0-or-later
"""The row of kernels from a good to a bad one: commits of a tree, or Debian's packages."""

from collections.abc import Sequence

from contract.values import path as user_path
from contract.variant import exactly
from errors import Exit, UserError
from run.bisect.state import REVERT, Step
from setup import debian, package_lists
from setup.trees import specs
from setup.trees.sources import SHORT, user_git

FORMAT = "--format=%H%x00%P%x00%s"


class Tree:
    """A git repository, which is only read."""

    def __init__(self, path: str, config: str = "") -> None:
        self._path = user_path(path).absolute()
        self._config = config

    def git(self, *arguments: str) -> str:
        """The output of git; UserError with git's last line if it fails."""
        done = user_git(self._path, *arguments, errors="replace")
        if done.returncode:
            message = (done.stderr.strip() or "it printed nothing").splitlines()[-1]
            raise UserError(f"git in {self._path}: {message.removeprefix('fatal: ')}")
        return done.stdout.strip()

    def commit(self, revision: str) -> str:
        """The commit that a revision names; UserError (2) if there is none."""
        try:
            return self.git("rev-parse", "--verify", "-q", f"{revision}^{{commit}}")
        except UserError:
            raise UserError(
                f"{self._path} has no revision {revision!r}",
                hint="a tag, a branch or a commit; git fetch gets what the clone lacks",
                status=Exit.USAGE,
            ) from None

    def step(self, commit: str) -> Step:
        """The kernel of one commit."""
        return self._steps(self.git("log", "-1", FORMAT, commit))[0]

    def row(self, good: str, bad: str, paths: Sequence[str]) -> list[Step]:
        """Kernels from good (first) to bad (last): first parents only, that change these paths.

        UserError (2) if bad does not contain good.
        """
        base = self.git("merge-base", good, bad)
        if base != good:
            raise UserError(
                f"{bad[:SHORT]} does not contain {good[:SHORT]}: no row of commits is between them",
                hint=f"the last commit of both is {base[:SHORT]}: is that one good?",
                status=Exit.USAGE,
            )
        return self._between(good, bad, bad, paths)

    def inside(self, merge: Step, paths: Sequence[str]) -> list[Step]:
        """Kernels from a merge's first parent, over the commits it merged, to the merge itself."""
        first, *others = merge.parents
        steps = [self.step(first)]
        for other in others:
            steps += self._between(first, other, other, paths)[1:]
        return [*steps, merge]

    def _between(self, good: str, top: str, bad: str, paths: Sequence[str]) -> list[Step]:
        listed = self.git(
            "log", "--first-parent", "--reverse", FORMAT, f"{good}..{top}", "--", *paths
        )
        steps = [self.step(good), *self._steps(listed)]
        if steps[-1].commit != bad:
            steps.append(self.step(bad))
        return steps

    def _steps(self, listed: str) -> list[Step]:
        steps = []
        for line in filter(None, listed.splitlines()):
            commit, parents, subject = line.split("\0", 2)
            steps.append(
                Step(commit[:SHORT], self.kernel(commit), subject, commit, parents.split())
            )
        return steps

    def kernel(self, commit: str) -> str:
        """The --kernel SPEC of a commit."""
        return specs.with_config(f"{specs.GIT}{self._path}@{commit}", self._config)

    def reverted(self, bad: Step, culprit: Step) -> Step | None:
        """The bad end with the culprit reverted; None if it cannot be reverted."""
        if bad.commit == culprit.commit or len(culprit.parents) != 1:
            return None
        kernel = specs.with_change(bad.kernel, specs.REVERT, culprit.commit)
        return Step(f"{bad.name}{REVERT}{culprit.name}", kernel, f"{bad.name} without it")


def debian_row(good: str, bad: str, mirror: str | None) -> list[Step]:
    """Debian's kernels from good to bad, each version once; UserError if an end does not exist."""
    wanted = [debian.split(kernel.removeprefix("debian:")) for kernel in (good, bad)]
    flavour = wanted[0][1]
    if flavour != wanted[1][1]:
        raise UserError(f"{good} and {bad} are of two flavours", hint="name one", status=Exit.USAGE)
    packages = package_lists.update(mirror).packages
    ends = []
    for name, _ in wanted:
        fitting = debian.fitting(packages, name, flavour)
        if not fitting:
            what = debian.what_exists(packages, name, flavour)
            raise UserError(f"the mirror has no kernel {name}", hint=what)
        ends.append(fitting[0])
    low, high = (debian.version_key(kernel.version) for kernel in ends)
    if not low < high:
        raise UserError(f"{good} is not older than {bad}", status=Exit.USAGE)
    by_label: dict[str, debian.Candidate] = {}
    for kernel in debian.candidates(packages, flavour):
        if low <= debian.version_key(kernel.version) <= high:
            by_label[kernel.label] = kernel
    for kernel in ends:
        by_label[kernel.label] = kernel
    kept = sorted(by_label.values(), key=lambda kernel: debian.version_key(kernel.version))
    return [
        Step(kernel.label, exactly(good, kernel.version), f"Debian {kernel.version}")
        for kernel in kept
    ]
