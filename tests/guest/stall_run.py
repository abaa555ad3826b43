# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: plays the scenes, a few in each run folder, sent to the host as one tar.

Usage: stall_run.py [SCENE…] (default: all). A scene that gave no stall of LEAST_S is played once
more. Events (to events.jsonl): `scene` with name, run (folder), tries, began, ended
(seconds of CLOCK_MONOTONIC), stalled, held, error, absent (what this kernel lacks), one for each.
"""

import ctypes
import itertools
import os
import shutil
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from contract.results_memory import open_appended
from contract.run_record import Events
from measure import machine_facts
from measure.observers import evidence_facts
from monitors.beacon import Beacon
from monitors.launch import EvidenceProcess, RecorderProcess, SamplerProcess, in_memory
from monitors.streams import Stream
from setup.observers import program
from tests.guest.stall_machine import Absent, Machine
from tests.guest.stall_scenes import SCENES, Scene, SceneError, Victim

LEAST_S = 2.0
TRIES = 2
RESCUE_S = 35.0
RECORDING_S = 400.0
BETWEEN_S = 0.5
PRIORITY = 5
AHEAD_S = 2.0
MCL_CURRENT, MCL_FUTURE = 1, 2
VICTIM = Path(__file__).with_name("stall_victims.py")
RESULTS = Path("/run/results")
RUNS = Path("/run/runs")
ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
STREAM = "gitk-1"


class Observers:
    """The recorder with the victim, the sampler and the evidence observer, as in a run."""

    def __init__(self, folder: Path, devices: dict[str, str], events: Events, stream: Stream):
        self._events = events
        self._beacon = Beacon([STREAM])
        # Both at once: an emulated machine takes a second for each.
        own = in_memory(program())
        with ThreadPoolExecutor(2) as pool:
            samples = pool.submit(SamplerProcess, own, folder, devices)
            looks = pool.submit(EvidenceProcess, own, folder, self._beacon, devices)
            self._others = (samples.result(), looks.result())
        sampler, evidence = self._others
        events.write(
            "meta",
            not_available=sampler.not_available,
            evidence={"asked": True, **evidence_facts(evidence)},
            observer_problems=[*sampler.problems, *evidence.problems],
        )
        self._recorder = RecorderProcess(
            own,
            folder,
            [stream],
            until={STREAM},
            timeout_s=RECORDING_S,
            when_ready=self._begin,
            beacon=self._beacon,
        )

    def _begin(self, problems: list[str]) -> float:
        t0 = time.monotonic() + AHEAD_S
        for one in self._others:
            one.start(t0)
        return t0

    def stop(self) -> None:
        """End them, and write down what they say."""
        with ThreadPoolExecutor(3) as pool:
            ending = [pool.submit(one.stop) for one in (self._recorder, *self._others)]
        for facts in (one.result() for one in ending):
            if facts is not None:
                observer = facts.pop("observer")
                self._events.write("observer", **observer, **facts)
        self._beacon.close()


class Recording:
    """A run folder under way; the victim plays one scene after the other in it."""

    def __init__(self, machine: Machine, folder: Path, crypt: str) -> None:
        folder.mkdir(parents=True)
        self._machine = machine
        self._events = Events(folder / "events.jsonl")
        self._events.write("meta", **machine_facts.facts())
        self.victim = Victim(folder)
        argv = [sys.executable, "-S", str(VICTIM), *self.victim.fifos]
        stream = Stream(STREAM, argv, ENV, waits=True)
        self._observers = Observers(folder, machine.devices(crypt), self._events, stream)
        self.victim.pid = int(self.victim.line())

    def play(self, scene: Scene) -> dict[str, Any]:
        """One scene; what came of it."""
        watchdog = threading.Timer(RESCUE_S, self._machine.rescue)
        watchdog.daemon = True
        watchdog.start()
        self.victim.reset()
        error = absent = ""
        time.sleep(BETWEEN_S)
        try:
            scene.play(self._machine, self.victim)
        except Absent as problem:
            absent = str(problem)
        except (SceneError, OSError, AssertionError) as problem:
            error = f"{type(problem).__name__}: {problem}"
            self._machine.rescue()
        watchdog.cancel()
        times = {key: getattr(self.victim, key) for key in ("began", "ended", "stalled", "held")}
        return {**times, "error": error, "absent": absent}

    def end(self) -> None:
        """End the victim and the observers."""
        self.victim.end()
        self._observers.stop()
        self.victim.close()
        self._events.write("status", state="completed", why="the scenes were played")
        self._events.close()


def came_off(result: dict[str, Any]) -> bool:
    """Whether a scene need not be played again."""
    return bool(result["absent"]) or (result["stalled"] >= LEAST_S and not result["error"])


def record(machine: Machine, scenes: list[Scene], folder: Path) -> list[dict[str, Any]]:
    """What came of each scene, played in one recording; one that did not come off is the last."""
    results: list[dict[str, Any]] = []
    recording = Recording(machine, folder, scenes[0].crypt)
    for scene in scenes:
        results.append(recording.play(scene))
        print(f"{time.monotonic():.1f} {scene.name}: {results[-1]}", flush=True)
        if not came_off(results[-1]):
            break
    recording.end()
    return results


def main() -> None:
    """All scenes."""
    # The machine is frozen on purpose: who thaws it must not wait for memory.
    ctypes.CDLL(None).mlockall(MCL_CURRENT | MCL_FUTURE)
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    events = Events(RESULTS / "events.jsonl")
    pending = [SCENES[name] for name in sys.argv[1:] or SCENES]
    tries = dict.fromkeys(SCENES, 0)
    machine = Machine()
    machine.build()
    events.write("built")
    with (
        open_appended(RESULTS / "runs.tar") as sent,
        tarfile.open(fileobj=sent, mode="w|") as tar,
    ):
        for number in itertools.count(1):
            if not pending:
                break
            run = f"{number}"
            together = list(itertools.takewhile(pending[0].goes_with, pending))
            results = record(machine, together, RUNS / run)
            tar.add(RUNS / run, arcname=run)
            shutil.rmtree(RUNS / run)
            for scene, result in zip(together, results, strict=False):
                tries[scene.name] += 1
                if came_off(result) or tries[scene.name] == TRIES:
                    pending.remove(scene)
                    facts = {"name": scene.name, "run": run, "tries": tries[scene.name]}
                    events.write("scene", **facts, **result)
    events.write("played")


if __name__ == "__main__":
    main()
