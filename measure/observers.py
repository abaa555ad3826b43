# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers of one run beside its recorder: start before its programs, end after them."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contract.options import Options
from contract.run_files import EVIDENCE_OBSERVER, KEYS, SAMPLER
from contract.run_record import Events
from errors import UserError
from measure.tracepoints import gfp_flags
from monitors.beacon import Beacon
from monitors.launch import (
    EvidenceProcess,
    KeysProcess,
    RecorderProcess,
    SamplerProcess,
    in_memory,
)
from monitors.streams import KeyProgram
from setup import observers
from workloads.registry import find, stream_names

DIED = "its process died"
OF_META = ("taskstats_version", "delayacct", "not_available", "problems")


def evidence_facts(evidence: EvidenceProcess) -> dict[str, Any]:
    """The facts about this kernel's evidence for meta.json."""
    return {"gfp_flags": gfp_flags(), **{key: evidence.facts[key] for key in OF_META}}


class Observers:
    """Runs the observers beside the recorder; writes what they could not observe into events.

    program: the executable of all observers; beacon: for the recorder, None without evidence;
    typed_at: the programs at which keys are pressed.
    """

    def __init__(
        self,
        options: Options,
        run_dir: Path,
        events: Events,
        watched: dict[str, str],
        typed_at: Sequence[KeyProgram] = (),
    ) -> None:
        self.beacon: Beacon | None = None
        self._events = events
        self._evidence: EvidenceProcess | None = None
        self._keys: KeysProcess | None = None
        self.program = in_memory(observers.program())
        self._sampler = SamplerProcess(
            self.program, run_dir, watched, slabs=find(options.workload).slabs
        )
        self._problems = list(self._sampler.problems)
        try:
            events.write("meta", not_available=self._sampler.not_available)
            events.write("meta", evidence={"asked": options.evidence})
            if options.evidence:
                self._start_evidence(options, run_dir, watched)
            if typed_at:
                self._start_keys(run_dir, typed_at)
        except BaseException:
            self.end()
            raise

    def prepare(self) -> None:
        """Start the programs at which keys are pressed."""
        if self._keys:
            self._problems += [f"{KEYS}: {problem}" for problem in self._keys.prepare()]

    def begin(self, t0: float, problems: list[str]) -> None:
        """The workload has begun at t0 (monotonic seconds); problems: those of the recorder."""
        self._sampler.start(t0)
        self._problems += problems
        self._events.write("meta", observer_problems=self._problems)
        for observer in (self._evidence, self._keys):
            with contextlib.suppress(OSError):  # it died, which end() reports
                if observer:
                    observer.start(t0)

    def live_lock(self, recorder: RecorderProcess) -> str:
        """Wait for the recorder's end or a live-lock.

        Returns the reason if it is a live-lock, else ''.
        """
        return self._evidence.live_lock(recorder) if self._evidence else ""

    def end(self) -> list[dict[str, Any] | None]:
        """End them; returns the facts of each, None in the place of one that died."""
        # Keys first: the run is over, and what is typed now is no key of it.
        stopped = {KEYS: self._keys.stop()} if self._keys else {}
        stopped[SAMPLER] = self._sampler.stop()
        more = [f"{name}: {DIED}" for name, facts in stopped.items() if facts is None]
        if self._evidence:
            observed = self._evidence.stop()
            stopped[EVIDENCE_OBSERVER] = observed
            problems = observed.pop("problems") if observed else [DIED]
            more += [f"{EVIDENCE_OBSERVER}: {problem}" for problem in problems]
        if more:
            self._problems += more
            self._events.write("meta", observer_problems=self._problems)
        if self.beacon:
            self.beacon.close()
        return list(stopped.values())

    def _start_evidence(self, options: Options, run_dir: Path, watched: dict[str, str]) -> None:
        beacon = Beacon(stream_names(options))
        try:
            self._evidence = EvidenceProcess(
                self.program,
                run_dir,
                beacon,
                watched,
                live_lock_s=options.live_lock_after,
                finite=find(options.workload).finite(options),
            )
        except UserError as error:
            # A run without evidence is better than no run.
            self._problems.append(str(error))
            beacon.close()
            return
        self.beacon = beacon
        self._events.write("meta", evidence=evidence_facts(self._evidence))
        self._problems += [f"evidence: {problem}" for problem in self._evidence.problems]

    def _start_keys(self, run_dir: Path, typed_at: Sequence[KeyProgram]) -> None:
        try:
            self._keys = KeysProcess(self.program, run_dir, typed_at)
        except UserError as error:
            self._problems.append(str(error))
            return
        programs = {one.name: " ".join(one.argv) for one in typed_at}
        windows = [one.name for one in typed_at if one.window]
        self._events.write("meta", keys={"programs": programs, "windows": windows})
        missing = [*self._keys.not_available, *self._keys.problems]
        self._problems += [f"{KEYS}: {problem}" for problem in missing]
