# SPDX-License-Identifier: GPL-2.0-or-later
"""A VM that is played, for whole processes that do jobs: `install()` puts it in a session's place.

What it does is in the JSON file that PLAYED names: `held`: whether runs go on until the file says
otherwise, `free`: the runs ("6.12 1") that end nevertheless, `kib` of a file that each run leaves,
`seconds_off`: by which the host's clock on the wall is wrong, `state`, `bytes` that are another
host's, `qemu`: its version, `log`: a file with a line for each run that was done. The seed, the
guest's memory and its kernel decide the run's bytes. A proof is always done. `nodes`: the same by
the name of a node of Slurm, whose own values count there.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from contract.run_record import Events, close, write_meta
from vm import emulator, session
from vm.emulator import Emulator
from vm.guest import Guest, GuestJob

PLAYED = "PLAYED"


def settings() -> dict[str, Any]:
    """What is to be played now."""
    path = os.environ.get(PLAYED)
    found: dict[str, Any] = json.loads(Path(path).read_text()) if path else {}
    return {**found, **found.get("nodes", {}).get(os.environ.get("SLURMD_NODENAME"), {})}


def find(wanted: str = emulator.SUITE) -> Emulator:
    """A QEMU that nobody starts."""
    return Emulator("qemu", settings().get("qemu", "7.2"), Path("/"))


def run(
    guest: Guest,
    guest_job: GuestJob,
    run_dir: Path,
    *,
    tick: Callable[[], None],
    stopped: Callable[[], bool],
    facts: dict[str, Any],
    **_: Any,
) -> tuple[str, str]:
    """A run that is the same on every host."""
    played = settings()
    if off := played.get("seconds_off", 0):
        real = time.time
        time.time = lambda: real() + off  # the worker's clock on the wall, and that of its files
    facts = {**facts, "seed": guest_job.seed, "machine": {"qemu": guest.emulator.version}}
    facts["host"] = {"cpu_model": played.get("cpu_model", "played")}
    write_meta(run_dir, facts)
    events = Events(run_dir / "events.jsonl")
    events.write("start", t0=1.0)
    is_proof = facts.get("label") == "proof"
    name = f"{facts.get('label')} {guest_job.seed}"
    while _is_held(name) and not is_proof and not stopped():
        tick()
        time.sleep(0.2)
    state = "completed" if is_proof else played.get("state", "completed")
    why = "as played"
    if stopped():
        state, why = "aborted", "interrupted by the user"
    size, digest = guest.hardware.memory, guest.kernel.image_digest
    text = f"{guest_job.seed} {size} {digest} {played.get('bytes', '')}"
    (run_dir / "latency-gitk-1.log").write_text(f"0.05 0.05 {text}\n")
    events.close()
    if not is_proof:
        (run_dir / "played.log").write_bytes(bytes(played.get("kib", 0) << 10))
    if "log" in played and not is_proof and state != "aborted":
        with open(played["log"], "a") as log:
            log.write(f"{name}\n")
    close(run_dir, facts, state, why)
    for path in run_dir.iterdir() if off else ():
        os.utime(path, (time.time(), time.time()))
    return state, why


def _is_held(name: str) -> bool:
    played = settings()
    return played.get("held", False) and name not in played.get("free", ())


def install() -> None:
    """Play from now on, in this process."""
    session.run = run
    emulator.find = cast(Any, find)
