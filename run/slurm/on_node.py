# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m run.slurm.on_node SUBMISSION: does one task of a job array; started by sbatch.

The environment variable SLURM_ARRAY_TASK_ID is the task's index. The results are written to the
campaign's folder, as by `python3 -m run.one`; temporary files are on the node's own disk. Before
its first run, a node does the campaign's proof run. If its result differs from the first node's,
the node does no other run.
"""

import argparse
import contextlib
import fcntl
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED
from contract.run_record import write_json
from contract.untrusted import json_object
from errors import Exit, UserError, run_command
from run import one
from run.hosts import links
from run.hosts.proof import TRIES, Proof, difference, read_proof
from run.jobs import job as jobs
from run.jobs import run_copies, work
from run.jobs.stop_signals import Stopped
from run.slurm import submission
from run.slurm.submission import TaskFolder
from setup import cache

BEAT_S = 5.0
POLL_S = 1.0  # between two checks whether another task of this node has made the proof
SCRATCH = "desktop-freeze-slurm"  # on the node's own disk
PROOFS = "proofs"  # folder in the campaign's .slurm: a file for each node
REFERENCE = "first"


def do(task: TaskFolder, stopped: Stopped) -> Exit:
    """Do the task; returns an exit status as run.one does."""
    node = os.environ.get("SLURMD_NODENAME") or run_copies.this_host()
    if not task.begin(node):
        print(f"task {task.index} was begun before, on {task.node}")
        return Exit.OK
    entry, shared = task.entry(), submission.plan(task.submission)["proof"]
    with _beating(task.begun / submission.ALIVE), _own_cache({**shared["links"], **entry["links"]}):
        why = _refusal(task.submission, node, stopped)
        if why and not stopped():
            (task.begun / submission.REFUSED).write_text(why)
            print(why)
            return Exit.MISSING
        job = jobs.from_json(entry["job"])
        results = task.submission.parent.parent / entry["where"]
        name = f"{task.submission.name}-{task.index}"
        return one.do(job, results, node, name, stopped)


@contextlib.contextmanager
def _beating(path: Path) -> Iterator[None]:
    """Within: a thread changes the file's text every BEAT_S."""
    ended = threading.Event()

    def beat() -> None:
        for number in itertools.count():
            # A full disk ends the run itself, with a better reason.
            with contextlib.suppress(OSError):
                path.write_text(str(number))
            if ended.wait(BEAT_S):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _own_cache(linked: Mapping[str, tuple[str, str]]) -> Iterator[None]:
    """Within: the cache is a folder on the node's disk, with links to the shared files."""
    place = Path(tempfile.gettempdir())
    cache.sweep(SCRATCH, place)
    with cache.scratch(SCRATCH, place) as folder:
        os.environ["XDG_CACHE_HOME"] = str(folder)
        for name, (digest, kept) in linked.items():
            links.link(name, digest, Path(kept))
        yield


def _refusal(folder: Path, node: str, stopped: Stopped) -> str:
    """Why this node cannot do runs of the campaign; empty if its proof equals all others'."""
    proofs = folder.parent / PROOFS
    proofs.mkdir(exist_ok=True)
    with _alone(proofs / f"node-{node}.lock", stopped):
        return _proved(proofs, submission.plan(folder), node, stopped)


@contextlib.contextmanager
def _alone(path: Path, stopped: Stopped) -> Iterator[None]:
    """Within: no other task of this node makes the proof, if the file system has locks."""
    with open(path, "a") as file:
        while not stopped():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(POLL_S)
                continue
            except OSError:
                pass
            break
        yield


def _proved(proofs: Path, wanted: Mapping[str, Any], node: str, stopped: Stopped) -> str:
    """The refusal from this node's earlier proof, or from a proof made now."""
    own = proofs / f"node-{node}.json"
    known = json_object(own.read_bytes()) if own.exists() else None
    if known is not None and known.get("suite") == wanted["suite"]:
        return str(known["why"])
    why = "its proof was cut short"
    for _ in range(TRIES):
        made = _proof(wanted["proof"]["job"], stopped)
        if isinstance(made, str):
            why = made
            continue
        reference = proofs / f"{REFERENCE}.json"
        first = {"node": node, "files": dict(made.files), "facts": dict(made.facts)}
        aside = proofs / f".{node}-{os.getpid()}"
        write_json(aside, first)
        with contextlib.suppress(FileExistsError):
            os.link(aside, reference)
        aside.unlink()
        kept = json_object(reference.read_bytes()) or {}
        if kept.get("files") == made.files:
            why = ""
            break
        why = difference(made, Proof(kept["files"], kept["facts"]), str(kept["node"]))
    if not stopped():
        write_json(own, {"suite": wanted["suite"], "why": why})
    return why


def _proof(planned: Mapping[str, Any], stopped: Stopped) -> Proof | str:
    """Make this node's proof; returns the reason as text if that fails."""
    with tempfile.TemporaryDirectory() as folder, stopped.armed():
        run = Path(folder) / "proof" / "1"
        run.mkdir(parents=True)
        job = jobs.from_json(planned)
        state, why = work.do(job, run, one.Log(), stopped, beside_others=False)
        return f"its proof was cut short: {why}" if state == ABORTED else read_proof(run)


def main() -> int:
    """Do the task that Slurm's environment names."""
    parser = argparse.ArgumentParser(prog="run.slurm.on_node", description=__doc__)
    parser.add_argument("submission", type=Path, metavar="SUBMISSION")
    given = parser.parse_args()
    index = os.environ.get("SLURM_ARRAY_TASK_ID", "")
    if not index.isdigit():
        raise UserError("SLURM_ARRAY_TASK_ID is not set: this is started by sbatch")
    with Stopped().armed() as stopped:
        return int(do(TaskFolder(given.submission, int(index)), stopped))


if __name__ == "__main__":
    sys.exit(run_command("run.slurm.on_node", main))
