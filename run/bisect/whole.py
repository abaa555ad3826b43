# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole bisect: compares its ends, then searches stages until each step is confirmed."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from contract.levels import looks
from contract.options import Options
from contract.variant import Variant
from errors import UserError
from run import machine_lock
from run.bisect import findings, results, rows
from run.bisect.builder import Builder
from run.bisect.findings import Kernels
from run.bisect.matched import Matched
from run.bisect.memory import Memory
from run.bisect.options import BisectRequest
from run.bisect.search_runs import Search
from run.bisect.state import ENDS, FINDING, SEARCH, Stage, State, Step
from run.campaign import Campaign
from run.hosts import opening
from run.jobs.local import Local
from run.jobs.workers import Workers
from run.preparation import PreparedVariant, another, end_children, ending_children, make_ready, say
from run.run_folders import refuse_another_host
from run.runner import Runner
from setup.trees.failures import NotBuilt
from setup.trees.progress import Progress
from vm.guest_facts import host_facts
from vm.qemu import GUEST

MOST_OF_ENDS = 20  # maximum number of runs per end
SEEDS_APART = 10_000  # of a bisect's campaigns: with the same seed a run would be the same


class Interrupted(Exception):
    """The user stopped the bisect; all results are kept."""


class Bisect:
    """A bisect in its folder. options: of every run; their only variant is the template of all."""

    def __init__(
        self,
        asked: BisectRequest,
        folder: Path,
        options: Options,
        state: State,
        stopped: Callable[[], bool],
    ) -> None:
        self._asked = asked
        self.folder = folder
        self._options = options
        (self._template,) = options.variants
        self._stopped = stopped
        self._ready: dict[str, PreparedVariant] = {}
        self._workers: Workers = Local(1)
        self._opened = contextlib.ExitStack()
        self.state = state
        self._lock = threading.RLock()  # guards the state
        self._memory = Memory(self.state, self._row.row[0], self._lock)

    @property
    def _row(self) -> Stage:
        return self.state.stages[0]

    @property
    def _tree(self) -> rows.Tree:
        return rows.Tree(self.state.tree, self._asked.kernel_config)

    def save(self) -> None:
        """Write the state."""
        with self._lock:
            self.state.write(self.folder)

    def prepare(self, machine: machine_lock.MachineLock) -> None:
        """Make the ends' kernels, and everything else that guests need."""
        first, last = self._row.row[0], self._row.row[-1]
        names = [first, last, *([self.state.newest] if self.state.newest else [])]
        wanted = [self._variant(self.state.steps[name]) for name in names]
        made = make_ready(replace(self._options, variants=tuple(wanted), out=str(self.folder)))
        self._ready = {one.variant.label: one for one in made}
        for name in names:
            if name not in self._ready:
                raise UserError(f"{name}, an end of the bisect, cannot be built")
            self.state.digests[name] = self._ready[name].guest.kernel.image_digest
        if self.state.digests[first] == self.state.digests[last]:
            raise UserError(
                f"{last} is the same binary as {first}: nothing between them is compiled",
                hint="another configuration may: --kernel-config",
            )
        where = opening.chosen(self._asked.options, self.folder)
        clocks = [one.guest.timing.clock for one in made]
        opening.check(where, self._options, clocks, bisects=True)
        if all(clock == GUEST for clock in clocks):
            machine.share()
        else:
            machine.keep()
        for place in (ENDS, SEARCH):
            here = self.folder / place
            refuse_another_host(
                here,
                [one.name for one in here.iterdir() if one.is_dir()] if here.is_dir() else [],
                host_facts(made[0].guest),
                self._options.workload,
            )
        workers = opening.workers(where, self.folder, self._options, made, self._stopped)
        self._workers = self._opened.enter_context(workers)

    def close(self) -> None:
        """End what other hosts still do for this bisect."""
        self._opened.close()

    def ends(self) -> bool:
        """Whether the bad end is worse than the good end, by the verdict on their runs.

        Not if it is known up to their limit only: a search ranks runs that were not done alike.
        """
        first, last = self._row.row[0], self._row.row[-1]
        newest = self.state.newest
        if not self.state.ends:
            names = [first, last, *([newest] if newest else [])]
            due = looks(MOST_OF_ENDS, len(names) - 1)
            self._campaign(ENDS, names, runs=due[-1], looks=due)
            verdicts = results.verdicts(self.folder / ENDS, first)
            primary = verdicts[last].get("primary") or {}
            self.state.ends = {
                "verdict": verdicts[last]["verdict"],
                "sentence": verdicts[last]["sentence"],
                "more_runs": primary.get("more_runs"),
                "limit_s": primary.get("limit_s"),
                "newest": verdicts[newest]["sentence"] if newest else "",
            }
            self.save()
            results.draw(self.folder / ENDS)
        is_worse = self.state.ends["verdict"] == findings.WORSE
        return is_worse and self.state.ends.get("limit_s") is None

    def search(self) -> None:
        """Search and confirm every stage, until no stage is left."""
        while (stage := findings.new(self.state)) is not None or self._unconfirmed() is not None:
            if (unconfirmed := self._unconfirmed()) is not None:
                self._confirm(unconfirmed)
            elif stage is not None:
                self._search(stage)
            self.save()
        self.state.finished = True
        self.save()

    def _unconfirmed(self) -> Stage | None:
        """A stage that found a single commit which is not confirmed yet; None if there is none."""
        for stage in self.state.stages:
            is_single = stage.word == "found" and len(stage.suspects) == 1 and not stage.finding
            if is_single and not findings.is_inside(self.state, stage):
                return stage
        return None

    def _search(self, stage: Stage) -> None:
        """Run kernels of a stage's row until there is an answer."""
        options = self._of(SEARCH, runs=1)
        campaign = Campaign(options, self._command, seeds_from=SEEDS_APART)
        entered: dict[str, PreparedVariant] = {}
        builder = Builder(self._make, self.folder / SEARCH)
        for name, ready in self._ready.items():
            builder.put(name, ready)
        search = Search(
            self.state,
            self._memory,
            self.save,
            self._lock,
            row=stage.row,
            campaign=campaign,
            ready=entered,
            builder=builder,
            most_runs=self._asked.most_runs,
        )
        campaign.make_folders([])
        try:
            Runner(options, campaign, entered, self._workers, self._stopped, search).go()
        finally:
            builder.end()
            end_children()
        self._go_on()
        for name in stage.row:
            made = builder.made(name)
            if made is not None and made.ready is not None:
                self._ready.setdefault(name, made.ready)
        now = search.decision()
        best = now.ranges[0]
        suspects = range(best.first, best.last + 1) if now.word == "found" else ()
        innocent = search.evidence().innocent
        stage.word, stage.why = now.word, now.why
        stage.suspects = [stage.row[place] for place in suspects if place not in innocent]
        stage.probability = best.probability
        stage.probable = [(name, share) for name, share, _ in search.best(now)]
        if findings.is_inside(self.state, stage):
            self._inside(stage)

    def _inside(self, stage: Stage) -> None:
        """Add a stage for the commits that a merge brought in."""
        merge = self.state.steps[stage.suspects[0]]
        inside = self._tree.inside(merge, self.state.paths)
        for step in inside:
            self.state.steps.setdefault(step.name, step)
        # If the row is restricted to paths, the merge's first parent may not be in it.
        left, _ = findings.tested_beside(self.state, stage.row, merge.name)
        names = [stage.row[left], *(step.name for step in inside[1:])]
        self.state.stages.append(
            Stage(names, "merge", outer=self.state.stages.index(stage)),
        )

    def _confirm(self, stage: Stage) -> None:
        """Measure the culprit in fresh runs against its parent, and reverted on the bad end."""
        culprit = self.state.steps[stage.suspects[0]]
        good, bad = findings.ends_of(self.state, stage)
        notes: list[str] = []
        parent = self._parent(stage, culprit, notes)
        revert = None
        if self.state.tree:
            revert = self._tree.reverted(bad, culprit)
        kernels = Kernels(parent, culprit, good, bad, revert)
        if revert is not None:
            self.state.steps[revert.name] = revert
            if not self._have(revert, notes):
                kernels = replace(kernels, revert=None)
        for one in kernels.all:
            if not self._have(one, notes):
                raise UserError(f"{one.name} cannot be made any more: {notes[-1]}")
        binaries = {
            one.name: self._ready[one.name].guest.kernel.image_digest for one in kernels.all
        }
        kernels = replace(kernels, same_as=findings.same_binaries(binaries))
        notes += kernels.sentences_on_same()
        number = 1 + sum(bool(one.finding) for one in self.state.stages)
        place = f"{FINDING}-{number}"
        names = kernels.to_run
        say(f"confirming {culprit.name}: {findings.RUNS} fresh runs of {', '.join(names)}")
        self._campaign(place, names, runs=findings.RUNS, seeds_from=(1 + number) * SEEDS_APART)
        at = results.verdicts(self.folder / place, parent.name)
        on_bad = results.verdicts(self.folder / place, kernels.run_as(bad))
        stage.finding = {
            "folder": place,
            "notes": notes,
            **findings.judged(kernels, at, on_bad),
        }
        self.state.stages += findings.more_stages(self.state, stage)
        self.save()
        results.draw(self.folder / place)

    def _parent(self, stage: Stage, culprit: Step, notes: list[str]) -> Step:
        """The culprit's parent; without a kernel of it the last tested one before it in the row."""
        if culprit.parents and self.state.tree:
            parent = self._tree.step(culprit.parents[0])
            parent = self.state.steps.setdefault(parent.name, parent)
            if self._have(parent, notes):
                return parent
        left, _ = findings.tested_beside(self.state, stage.row, culprit.name)
        return self.state.steps[stage.row[left]]

    def _have(self, step: Step, notes: list[str]) -> bool:
        """Whether the step has a kernel, which is made if needed; if not, a note says why."""
        if step.name in self._ready:
            return True
        try:
            with ending_children():
                self._ready[step.name] = self._make(step)
        except NotBuilt as error:
            error.keep_log(self.folder / SEARCH / f"{step.name}.log")
            notes.append(f"{step.name} has no kernel: {error}")
            return False
        return True

    def _campaign(
        self,
        place: str,
        names: Sequence[str],
        *,
        runs: int,
        looks: tuple[int, ...] = (),
        seeds_from: int = 0,
    ) -> None:
        """Do all runs of a campaign in that folder; Interrupted or UserError if some are left."""
        variants = tuple(self._variant(self.state.steps[name]) for name in names)
        options = replace(self._of(place, runs=runs), variants=variants, looks=looks)
        campaign = Campaign(options, self._command, seeds_from)
        kernels = [(variant, self._ready[variant.label].guest.kernel) for variant in variants]
        entered = {
            variant.label: PreparedVariant(variant, self._ready[variant.label].guest)
            for variant in campaign.enter(kernels)
        }
        oversight = Matched(self.state, self._memory, self.save, self._lock)
        outcome = Runner(options, campaign, entered, self._workers, self._stopped, oversight).go()
        self._go_on()
        if outcome.left:
            raise UserError(f"{campaign.path}: {outcome.left}", hint="--resume goes on")

    def _go_on(self) -> None:
        self.save()
        if self._stopped():
            raise Interrupted

    @property
    def _command(self) -> list[str]:
        return self.state.command

    def _of(self, place: str, *, runs: int) -> Options:
        """The options of a campaign in that folder, which may exist already."""
        here = str(self.folder / place)
        return replace(self._options, out=None, resume=here, runs=runs, variants=(), looks=())

    def _variant(self, step: Step) -> Variant:
        return replace(self._template, kernel=step.kernel, label=step.name)

    def _make(
        self, step: Step, progress: Callable[[Progress], None] | None = None
    ) -> PreparedVariant:
        """Make the step's guest; this may take as long as a kernel build."""
        base = next(iter(self._ready.values()))
        return another(base, self._variant(step), self._options, progress)
