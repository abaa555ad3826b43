# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's folder: its plan, the runs that it holds, and those that are missing.

Everything needed to resume after a crash is on disk before a run begins, and each change of
plan.toml is a rename: a runner that is killed at any time leaves a campaign that can be resumed.
"""

import re
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract import checkout, levels
from contract.levels import ALPHA, can_decide, compared_runs, level_of_a_look
from contract.options import Options
from contract.plan import CHANGES, variants_of
from contract.run_files import ABORTED, CONFIG, RUN_NUMBER
from contract.run_record import write_whole
from contract.variant import Variant, exactly
from errors import Exit, UserError
from run.hosts import host_list
from run.plans import machine_file, written
from run.plans.compatibility import refuse_misfits
from run.plans.journal import Journal
from run.plans.plan_variants import entry_of, refuse_another, times_before
from run.plans.stored import read_plan
from run.run_folders import completed, ended, folder, numbered, schedule, targets, writing
from setup.kernels import Kernel
from setup.trees import specs
from vm.results_memory import recover

JOURNAL = ".begun.jsonl"  # runs that are not in plan.toml yet
OTHER_SEEDS = 1000  # more than the runs of any variant


def names(options: Options) -> list[str]:
    """The label of each variant, or its kernel's SPEC; for --dry-run: nothing is resolved."""
    stored = Campaign(options, ()).stored()
    labels = []
    for variant in options.variants:
        same = next((known for known in stored if known.same_machine(variant)), variant)
        stored = [known for known in stored if known is not same]
        labels.append(same.label or variant.name(variant.kernel, options.variants))
    return labels


def remaining(options: Options) -> list[tuple[str, int]]:
    """(label or kernel, number) of the runs still to do, in order; for --dry-run."""
    place, labels = folder(options), names(options)
    done = {label: completed(place / label) for label in labels}
    return schedule(labels, targets(options, done), done)


def few_runs_warning(options: Options) -> str:
    """The warning of a campaign with these options, for --dry-run; nothing is written."""
    campaign = Campaign(options, ())
    campaign.expect(names(options))
    return campaign.few_runs_warning


class Campaign:
    """An open campaign; its user must hold the machine's lock.

    seeds_from: added to the seed of each run, so that the same kernel has other runs than in
    another campaign of the same bisect.
    """

    def __init__(self, options: Options, command: Iterable[str], seeds_from: int = 0) -> None:
        self._seeds_from = seeds_from
        self.path = folder(options)
        self._options = options
        self.looks = options.looks
        self._command = shlex.join(["./run_test.sh", *host_list.without(command)])
        self._plan = read_plan(self.path)
        self._extended: list[int] = list(self._plan.get("extended", []))
        # In the order in which variants entered; a variant's folder is its label.
        self._entries: list[dict[str, Any]] = list(self._plan.get("variant", []))
        self._runs: list[dict[str, Any]] = list(self._plan.get("run", []))
        self._journal = Journal(self.path / JOURNAL, len(self._runs))
        orders = {run["order"] for run in self._runs}
        self._runs += [run for run in self._journal.read() if run.get("order") not in orders]
        self._is_written = True  # except for the runs in the journal
        self._done: dict[str, set[int]] = {}  # label: numbers of runs with a result
        self._targets: dict[str, int] = {}
        refuse_misfits(self.path, options, self._plan)

    @property
    def asked(self) -> int:
        """The total number of runs that this command's variants should have."""
        return sum(self._targets.values())

    @property
    def labels(self) -> list[str]:
        """The labels of this command's variants, in order."""
        return list(self._targets)

    def stored(self) -> list[Variant]:
        """The variants in the folder's plan."""
        return list(variants_of(self._entries, []))

    def pinned(self, variant: Variant) -> str:
        """The kernel to resolve; for a stored variant the exact package that its runs used."""
        for entry, stored in zip(self._entries, self.stored(), strict=True):
            known = variant.label and stored.same_machine(variant)
            package = entry.get("package")
            if known and variant.kernel.startswith("debian:") and package:
                return exactly(variant.kernel, package)
            if known and specs.is_tree(variant.kernel) and package:
                return specs.pinned(variant.kernel, package)
        return variant.kernel

    def enter(self, resolved_variants: Sequence[tuple[Variant, Kernel | None]]) -> list[Variant]:
        """Enter variants with their resolved kernels; returns the variants with their labels.

        UserError if a stored variant's kernel is not the kernel of its earlier runs.
        """
        labelled: list[Variant] = []
        explicit = {variant.label for variant, _ in resolved_variants}
        for variant, kernel in resolved_variants:
            taken = explicit | {entered.label for entered in labelled}
            label = variant.label or self._free_label(kernel, variant, taken)
            labelled.append(replace(variant, label=label))
            self._enter(labelled[-1], label, kernel)
        labels = [variant.label for variant in labelled]
        self._options = replace(self._options, baseline=self._baseline())
        self.make_folders(labels)
        for label, (_, kernel) in zip(labels, resolved_variants, strict=True):
            if kernel is not None:
                self._keep_source(label, kernel)
        if self._options.machine.endswith(".toml") and not self._options.device:
            machine_file.keep(self.path, self._options.machine)
        self._set_aside_cut(labels)
        self._set_targets(labels)
        self._note_requested_runs()
        self._write()
        return labelled

    def expect(self, labels: Sequence[str]) -> None:
        """Enter this command's variants without their kernels, in memory only.

        A variant whose label depends on its kernel gets another, which no variant has.
        """
        stored = {variant.label for variant in self.stored()}
        entered: list[str] = []
        for variant, label in zip(self._options.variants, labels, strict=True):
            is_final = bool(variant.label) or label in stored
            entered.append(label if is_final else f"new {len(entered)}")
            self._enter(replace(variant, label=entered[-1]), entered[-1], None)
        named = self._options.baseline
        meant = self._labels_of(named) if named else []
        # A label that depends on a kernel is not known yet: then the plan's baseline counts.
        baseline = meant[0] if len(meant) == 1 else None
        self._options = replace(self._options, baseline=baseline)
        self._set_targets(entered)

    def make_folders(self, labels: list[str]) -> None:
        """Make the variants' folders; UserError if results cannot be written there."""
        with writing():
            for label in labels:
                (self.path / label).mkdir(parents=True, exist_ok=True)

    @property
    def few_runs_warning(self) -> str:
        """A warning that these runs cannot give any verdict; empty if they can, or with looks."""
        if self.looks:
            return ""
        runs = {
            label: max(len(self._completed(label)), self._targets.get(label, 0))
            for label in (variant.label for variant in self.stored())
        }
        baseline = self._options.baseline or self._plan.get("baseline")
        return levels.few_runs_warning(self._families(runs, baseline), self.level)

    @property
    def level(self) -> float:
        """The level (0 to 1) of the next verdicts, if it does not stop when sure."""
        return level_of_a_look(ALPHA, 1, len(self._extended))

    def left(self, up_to: int | None = None) -> list[tuple[str, int]]:
        """(label, number) of the runs still to do, in order; up_to: at most so many per variant."""
        done = {label: self._completed(label) for label in self.labels}
        runs = {label: min(n, up_to or n) for label, n in self._targets.items()}
        return schedule(self.labels, runs, done)

    def _completed(self, label: str) -> set[int]:
        """Numbers of the variant's runs with a result; each status.json is read only once."""
        self._done[label] = completed(self.path / label, self._done.get(label, set()))
        return self._done[label]

    def seed(self, label: str, number: int) -> int:
        """The seed of all randomness in a run's guest with its own clock: the run's number.

        A variant that repeats an earlier one gets different seeds: it is a control, and would
        otherwise have the same runs again.
        """
        return self._seeds_from + number + OTHER_SEEDS * times_before(self._entries, label)

    def begin(self, label: str, number: int, *, make: bool = True) -> tuple[Path, int]:
        """Make a run's folder and enter the run into plan.toml; returns (folder, place in order).

        make: False if the folder comes from another machine after the run. Such a run may already
        be in progress there: then it keeps its place.
        """
        known = [begun["order"] for begun in self._runs if _is_of(begun, label, number)]
        if known and not make:
            return self.path / label / str(number), known[-1]
        order = 1 + max((entry["order"] for entry in self._runs), default=0)
        run = self.path / label / str(number)
        entry = {
            "variant": label,
            "number": number,
            "order": order,
            "date": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "suite": checkout.commit(),
        }
        self._runs.append(entry)
        with writing():
            if make:
                run.mkdir(parents=True)
            if not (self._is_written and self._journal.append(entry)):
                self._write()
        return run, order

    def keep(self) -> None:
        """Move the runs of the journal into plan.toml."""
        if not (self._is_written and self._journal.is_empty):
            self._write()

    def set_aside(self, run: Path) -> None:
        """Rename a run that was cut short to <n>.cut-<k>: kept, but <n> is free for its repeat."""
        recover(run)
        taken = [1]
        for other in run.parent.glob(f"{run.name}.cut-*"):
            number = other.name.rpartition("-")[2]
            taken += [int(number) + 1] if re.fullmatch(RUN_NUMBER, number) else []
        aside = run.with_name(f"{run.name}.cut-{max(taken)}")
        run.rename(aside)
        self._done.get(run.parent.name, set()).discard(int(run.name))
        self._is_written = False
        for entry in self._runs:
            if _is_of(entry, run.parent.name, int(run.name)):
                entry["cut"] = aside.name

    def _set_aside_cut(self, labels: list[str]) -> None:
        for label in labels:
            for run in numbered(self.path / label).values():
                if ended(run) in (None, ABORTED):
                    self.set_aside(run)

    def _free_label(self, kernel: Kernel | None, variant: Variant, taken: set[str]) -> str:
        """A label from kernel and swap, followed by `-2` and so on if it is taken."""
        assert kernel is not None
        name = variant.name(kernel.label, self._options.variants)
        label, count = name, 1
        while label in taken:
            count += 1
            label = f"{name}-{count}"
        return label

    def _baseline(self) -> str | None:
        """The label of the variant that --baseline names by its label or its kernel."""
        asked = self._options.baseline
        if asked is None:
            return None
        meant = self._labels_of(asked)
        if len(meant) == 1:
            return meant[0]
        known = [entry["label"] for entry in self._entries]
        raise UserError(
            f"--baseline {asked}: " + ("several variants" if meant else "no such variant"),
            hint=f"there are {', '.join(meant or known)}",
            status=Exit.USAGE,
        )

    def _labels_of(self, name: str) -> list[str]:
        """The label of that name, or else the labels of all variants of that kernel."""
        if any(entry["label"] == name for entry in self._entries):
            return [name]
        return [entry["label"] for entry in self._entries if entry.get("kernel") == name]

    def _enter(self, variant: Variant, label: str, kernel: Kernel | None) -> None:
        entry = entry_of(variant, label, kernel)
        before = next((known for known in self._entries if known.get("label") == label), None)
        if before is None:
            self._entries.append(entry)
        else:
            refuse_another(self.path, before, entry)

    def _keep_source(self, label: str, kernel: Kernel) -> None:
        """Keep the kernel's .config and the changes of its source, in the variant's folder."""
        config = b"" if kernel.config is None else kernel.config.read_bytes()
        for name, content in ((CONFIG, config), (CHANGES, kernel.changes)):
            kept = self.path / label / name
            if content and not kept.exists():
                write_whole(kept, content)

    def _set_targets(self, labels: Iterable[str]) -> None:
        """Set the runs that these variants should have, and the level that this leaves."""
        self._targets = targets(self._options, {label: self._completed(label) for label in labels})
        self._note_extension()

    def _note_extension(self) -> None:
        """Note the look taken before the campaign grew: later looks then use a stricter level."""
        before = self._requested_before()
        planned = tuple(self._plan.get("stop_when_sure", {}).get("looks", ()))
        grows = any(runs > before.get(label, runs) for label, runs in self._targets.items())
        grows |= bool(self.looks) and self.looks != (planned or (self._plan.get("runs"),))
        if planned:
            compared = max(map(min, self._judged(dict.fromkeys(before, 0))), default=0)
            taken = max((look for look in planned if look <= compared), default=0)
            grows &= can_decide(taken) and taken not in self._extended
        else:
            decided = [pair for pair in self._judged(before) if can_decide(*pair)]
            taken = max(map(min, decided), default=0)
        if grows and taken:
            self._extended.append(taken)
        self.looks = tuple(look for look in self.looks if look > max(self._extended, default=0))

    def _requested_before(self) -> dict[str, int]:
        """The runs that earlier commands asked for, by label."""
        runs = int(self._plan.get("runs", 0))
        entries = self._plan.get("variant", [])
        return {entry["label"]: int(entry.get("requested_runs", runs)) for entry in entries}

    def _judged(self, requested: Mapping[str, int]) -> list[tuple[int, int]]:
        """The runs of each baseline and other variant that both have as many as requested."""
        done = {label: len(self._completed(label)) for label in requested}
        runs = {label: n if n >= requested[label] else 0 for label, n in done.items()}
        return compared_runs(self._families(runs, self._plan.get("baseline")))

    def _families(self, runs: Mapping[str, int], baseline: str | None) -> list[list[int]]:
        """These runs, of variants in plan.toml, by workload, the baseline's first."""
        families: dict[str, list[int]] = {}
        for variant in sorted(self.stored(), key=lambda variant: variant.label != baseline):
            if variant.label in runs:
                workload = variant.workload or self._options.workload
                families.setdefault(workload, []).append(runs[variant.label])
        return list(families.values())

    def _note_requested_runs(self) -> None:
        """Note in the [[variant]] tables how many runs each variant should have."""
        for entry in self._entries:
            if runs := self._targets.get(entry["label"]):
                entry["requested_runs"] = max(runs, entry.get("requested_runs", 0))

    def _write(self) -> None:
        plan = written.plan_of(
            self._options,
            self._plan,
            self._command,
            runs=max(self._targets.values(), default=0),
            looks=self.looks,
            extended=self._extended,
            variants=self._entries,
            begun=self._runs,
        )
        written.write(self.path, plan)
        self._journal.clear(len(self._runs))
        self._is_written = True


def _is_of(entry: Mapping[str, Any], label: str, number: int) -> bool:
    """Whether an entry of plan.toml is that run, not cut short."""
    same = (entry.get("variant"), entry.get("number")) == (label, number)
    return same and "cut" not in entry
