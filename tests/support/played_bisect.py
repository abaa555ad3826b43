# SPDX-License-Identifier: GPL-2.0-or-later
"""A bisect whose kernels and VMs are played: what each commit does to a run is known."""

import json
import math
import os
import random
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from analysis.verdicts.export import json_text
from benchmarks.synthetic_results.make import line_log, meta, table, write_run
from contract.options import Options
from contract.variant import Variant
from run import checks, clock, runner
from run.bisect import opening, options, results, whole
from run.bisect.__main__ import options_of
from run.bisect.state import RunFacts, State
from run.preparation import PreparedVariant
from setup.kernels import Kernel
from setup.trees.failures import DoesNotCompile
from vm import session
from vm.guest import Guest, GuestJob, Hardware, Timing
from vm.qemu import GUEST

MARKS = ("Kbuild", "Kconfig", "MAINTAINERS")
# Played runs scatter by the commit's id, and a finding errs at a known rate: ids must not
# change from day to day.
ONE_DATE = {
    "GIT_AUTHOR_DATE": "2026-11-01T12:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-01T12:00:00Z",
}


def commit(repository: Path, subject: str, files: dict[str, str]) -> str:
    """One more commit with these files."""
    for name, text in files.items():
        path = repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", subject)
    return git(repository, "rev-parse", "HEAD")


def git(repository: Path, *arguments: str) -> str:
    """What git prints."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(repository), *who, *arguments],
        env={**os.environ, **ONE_DATE},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def linear(repository: Path, commits: int) -> list[str]:
    """A history of so many commits after the first, each of which changes mm/file.c."""
    repository.mkdir(parents=True)
    git(repository, "init", "-q", "-b", "main")
    first = commit(repository, "the first", dict.fromkeys(MARKS, "x\n"))
    return [
        first,
        *(
            commit(repository, f"mm: change {n}", {"mm/file.c": f"{n}\n"})
            for n in range(1, commits + 1)
        ),
    ]


@dataclass
class World:
    """What kernels do. level: seconds that a commit's runs stall on the average."""

    level: Callable[[str], float]
    scatter: float = 0.03
    broken: frozenset[str] = frozenset()
    panics: frozenset[str] = frozenset()  # at boot
    twins: dict[str, str] = field(default_factory=dict)  # commit: digest
    sizes: dict[str, int] = field(default_factory=dict)  # commit: KiB less than others leave
    aborts: frozenset[str] = frozenset()
    stop_after: int = 1 << 30  # runs, after which somebody presses Ctrl-C
    ran: list[str] = field(default_factory=list)
    built: list[str] = field(default_factory=list)
    stopped: bool = False


class Player:
    """Stands for kernels, VMs and whoever reads a run's figure."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, repository: Path) -> None:
        self.world = world
        self.folder = Path()
        self._repository = repository
        self._lock = threading.Lock()
        monkeypatch.setattr(session, "run", self._run)
        monkeypatch.setattr(whole, "make_ready", self._make_ready)
        monkeypatch.setattr(whole, "another", self._another)
        monkeypatch.setattr(whole, "host_facts", lambda guest: {})
        monkeypatch.setattr(checks, "check_rooms", lambda options, jobs: None)
        monkeypatch.setattr(clock, "parallel_jobs", lambda options, clocks: 2)
        monkeypatch.setattr(results, "run_facts", self._read)
        monkeypatch.setattr(results, "draw", lambda campaign: 0)
        monkeypatch.setattr(results, "verdicts", self._verdicts)
        monkeypatch.setattr(runner, "LOOK_S", 0.02)
        monkeypatch.setattr(runner.Runner, "_sure", self._sure)

    def _verdicts(self, campaign: Path, baseline: str) -> dict[str, dict[str, Any]]:
        """What results.verdicts says, without a process of its own."""
        found = json.loads(json_text(compare(load_campaign(campaign), baseline=baseline)))
        return {one["variant"]: one for one in found["variants"]}

    def _sure(self, look: int) -> bool:
        return compare(load_campaign(self.folder / "ends")).sure

    def _kernel(self, variant: Variant) -> Kernel:
        spec, _, revert = variant.kernel.partition(",revert=")
        commit = spec.rpartition("@")[2]
        with self._lock:
            self.world.built.append(commit)
        if commit in self.world.broken:
            raise DoesNotCompile("x.c: no such thing", log="log\n", label=commit)
        digest = self.world.twins.get(commit, commit) + revert
        return Kernel(variant.kernel, variant.label, "6", Path("/n"), None, None, digest, None)

    def _ready(self, variant: Variant) -> PreparedVariant:
        guest = Guest(
            kernel=self._kernel(variant),
            files=cast(Any, None),
            hardware=Hardware(memory=230 << 20, cpus=1),
            timing=Timing(GUEST, ""),
            emulator=cast(Any, None),
            accel="tcg",
            accel_reason="",
            music="",
        )
        return PreparedVariant(variant, guest)

    def _make_ready(self, options: Options) -> list[PreparedVariant]:
        return [self._ready(one) for one in options.variants]

    def _another(
        self, base: PreparedVariant, variant: Variant, options: Options, progress: object
    ) -> PreparedVariant:
        return self._ready(variant)

    def _seconds(self, guest: Guest, seed: int) -> tuple[str, float]:
        spec, _, revert = guest.kernel.spec.partition(",revert=")
        commit = spec.rpartition("@")[2]
        level = self.world.level(commit)
        if revert:
            before = git(self._repository, "rev-parse", f"{revert}^")
            level *= self.world.level(before) / self.world.level(revert)
        rng = random.Random(f"{guest.kernel.image_digest} {seed}")
        return commit, level * math.exp(rng.gauss(0, self.world.scatter))

    def _run(
        self,
        guest: Guest,
        guest_job: GuestJob,
        run_dir: Path,
        *,
        facts: dict[str, Any],
        stopped: Callable[[], bool],
        **_: Any,
    ) -> tuple[str, str]:
        commit, seconds = self._seconds(guest, guest_job.seed)
        with self._lock:
            self.world.ran.append(f"{run_dir.parent.parent.name}/{run_dir.parent.name}")
            self.world.stopped = self.world.stopped or len(self.world.ran) > self.world.stop_after
        available = (guest.hardware.memory >> 10) - self.world.sizes.get(commit, 0) - 40_000
        rows: dict[str, list[float | int | None]] = {
            "elapsed_s": [0.0],
            "late_s": [0.0],
            "MemAvailable": [available],
        }
        files = {"meminfo.tsv": table(rows)}
        (run_dir / "meminfo.tsv").write_text(files["meminfo.tsv"])
        facts_of_run = meta(**facts, seed=guest_job.seed)
        state = "completed"
        if commit in self.world.panics:
            del facts_of_run["t0"]
            state = "panicked"
        elif commit in self.world.aborts or stopped():
            state = "aborted"
        gaps = [(0.05, "pass 1 commits 100"), (seconds / 4, "pass 1 commits 200")]
        logs = {f"latency-gitk-{n}.log": line_log(gaps, 0.01) for n in range(1, 5)}
        write_run(run_dir, {**files, **logs, "meta.json": json.dumps(facts_of_run)}, state)
        return state, "as played"

    def _read(self, run: Path, name: str, state: str) -> RunFacts:
        """What analysis.runs would say (tests/analysis/test_runs.py), without a process."""
        place = str(Path(*run.parts[-3:]))
        if state == "aborted":
            return RunFacts(place, name, state, None, counts=False, why_not="as played")
        found = json.loads((run / "meta.json").read_text())
        if "t0" not in found:
            return RunFacts(place, name, state, None, counts=False, why_not="did not begin")
        row = (run / "latency-gitk-1.log").read_text().splitlines()[1]
        return RunFacts(place, name, state, 4 * float(row.split()[1]))


def bisect(player: Player, folder: Path, argv: Sequence[str]) -> tuple[whole.Bisect, State | None]:
    """Do one until it ends or somebody stops it; None: it was stopped."""
    asked = options.parse([*argv, "--out", str(folder)] if "--resume" not in argv else argv)
    chosen = replace(options_of(asked), out=str(folder))
    folder.mkdir(exist_ok=True)
    player.folder = folder
    known = opening.opened(asked, folder, None)
    one = whole.Bisect(asked, folder, chosen, known, lambda: player.world.stopped)
    one.prepare(cast(Any, SimpleNamespace(share=lambda: None, keep=lambda: None)))
    try:
        if one.ends():
            one.search()
    except whole.Interrupted:
        return one, None
    return one, one.state
