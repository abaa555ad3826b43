# SPDX-License-Identifier: GPL-2.0-or-later
"""The sampler and the evidence of one run: started before its programs, ended after them."""

import contextlib
from pathlib import Path
from typing import Any

from contract.options import Options
from contract.run_files import EVIDENCE_OBSERVER, SAMPLER
from contract.run_record import Events
from errors import UserError
from measure.tracepoints import gfp_flags
from monitors.beacon import Beacon
from monitors.launch import EvidenceProcess, RecorderProcess, SamplerProcess, in_memory
from setup import observers
from workloads.registry import find, stream_names

DIED = "its process died"
OF_META = ("taskstats_version", "delayacct", "not_available", "problems")


def evidence_facts(evidence: EvidenceProcess) -> dict[str, Any]:
    """What meta.json says of this kernel's evidence."""
    return {"gfp_flags": gfp_flags(), **{key: evidence.facts[key] for key in OF_META}}


class Observers:
    """program: theirs, and the recorder's; beacon: for the recorder, None without evidence. What
    they miss goes into events."""

    def __init__(
        self, options: Options, run_dir: Path, events: Events, watched: dict[str, str]
    ) -> None:
        self.beacon: Beacon | None = None
        self._events = events
        self._evidence: EvidenceProcess | None = None
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
        except BaseException:
            self.end()
            raise

    def begin(self, t0: float, problems: list[str]) -> None:
        """The workload has begun; problems: the recorder's."""
        self._sampler.start(t0)
        self._problems += problems
        self._events.write("meta", observer_problems=self._problems)
        if self._evidence:
            with contextlib.suppress(OSError):  # it died: end() says so
                self._evidence.start(t0)

    def live_lock(self, recorder: RecorderProcess) -> str:
        """Wait until the recorder has ended, or there is a live-lock: then why."""
        return self._evidence.live_lock(recorder) if self._evidence else ""

    def end(self) -> list[dict[str, Any] | None]:
        """End both; their facts, of those that lived to tell."""
        facts = [self._sampler.stop()]
        more = [] if facts[0] else [f"{SAMPLER}: {DIED}"]
        if self._evidence:
            observed = self._evidence.stop()
            facts.append(observed)
            problems = observed.pop("problems") if observed else [DIED]
            more += [f"{EVIDENCE_OBSERVER}: {problem}" for problem in problems]
        if more:
            self._problems += more
            self._events.write("meta", observer_problems=self._problems)
        if self.beacon:
            self.beacon.close()
        return facts

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
            # A run without it is better than none.
            self._problems.append(str(error))
            beacon.close()
            return
        self.beacon = beacon
        self._events.write("meta", evidence=evidence_facts(self._evidence))
        self._problems += [f"evidence: {problem}" for problem in self._evidence.problems]
