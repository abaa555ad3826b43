# SPDX-License-Identifier: GPL-2.0-or-later
"""Each host proves itself before its first job: a short run must have the same bytes everywhere.

Beside other busy programs a run sometimes differs (docs/explain/machines-and-clocks.md): a host
therefore has TRIES.
"""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract.options import Options
from contract.run_files import ABORTED, META
from contract.untrusted import json_object
from contract.variant import Variant
from run.hosts.one_host import OneHost
from run.hosts.ssh import Failed
from run.jobs import plan_file, run_copies
from run.jobs.job import Job, Streams
from run.jobs.programs import NoAnswer
from run.measure_command import guest_job
from run.run_folders import ended, why_of
from setup import cache
from vm.guest import Guest
from workloads.registry import stream_names

LABEL = "proof"
WORKLOAD_S = 10  # seconds of the guest's clock, after which the workload is ended
TRIES = 3
POLL_S = 1.0
# Keys of meta.json that may explain why a run differs.
TELLING = ("accelerator", "clock", "machine", "disk", "kernel", "guest")


@dataclass(frozen=True)
class Proof:
    """The result of a host's short run: each file's digest, and the TELLING facts of meta.json."""

    files: Mapping[str, str]
    facts: Mapping[str, Any]


def job_of(options: Options, variant: Variant, guest: Guest) -> Job:
    """The proof's job: a variant's run with seed 1, ended after WORKLOAD_S."""
    short = replace(options.of(variant), timeout=WORKLOAD_S)
    return Job(
        LABEL,
        1,
        guest,
        guest_job(short, variant, clock=guest.timing.clock),
        {"label": LABEL, "parameters": short.parameters},
        Streams.of(short, stream_names(short)),
    )


def left_out(
    hosts: list[OneHost],
    job: Job,
    reference: dict[str, str],
    stopped: Callable[[], bool],
) -> tuple[dict[str, str], dict[str, str]]:
    """The hosts whose proof failed, with the reason; and the reference proof of all others.

    reference: the proof of hosts that proved themselves before; empty if none did: then it is the
    proof that most hosts agree on.
    """
    made: dict[str, list[Proof]] = {candidate.name: [] for candidate in hosts}
    why: dict[str, str] = {}
    for _ in range(TRIES):
        left = [
            candidate
            for candidate in hosts
            if candidate.name not in why and not _agrees(made[candidate.name], reference)
        ]
        if not left or stopped():
            break
        with ThreadPoolExecutor(len(left)) as pool:
            for host, outcome in zip(
                left, pool.map(lambda candidate: _proof(candidate, job, stopped), left), strict=True
            ):
                if isinstance(outcome, str):
                    why[host.name] = outcome
                else:
                    made[host.name].append(outcome)
        reference = reference or _most(made, len(hosts) - len(why))
    reference = reference or _first(made)
    for name, proofs in made.items():
        if name not in why and not _agrees(proofs, reference):
            why[name] = _difference(proofs, reference, made)
    return why, reference


def _agrees(proofs: list[Proof], reference: Mapping[str, str]) -> bool:
    return bool(reference) and any(proof.files == reference for proof in proofs)


def _most(made: Mapping[str, list[Proof]], hosts: int) -> dict[str, str]:
    """The proof of most hosts, if two or more hosts (or all) agree on it; else empty."""
    kinds = {
        name: {tuple(sorted(proof.files.items())) for proof in proofs}
        for name, proofs in made.items()
    }
    votes = Counter(kind for of_host in kinds.values() for kind in of_host)
    best, count = next(iter(votes.most_common(1)), ((), 0))
    return dict(best) if count >= min(2, hosts) else {}


def _first(made: Mapping[str, list[Proof]]) -> dict[str, str]:
    """The proof of the first host in the list, for when no two hosts agree."""
    return next((dict(proofs[0].files) for proofs in made.values() if proofs), {})


def _difference(
    proofs: list[Proof], reference: Mapping[str, str], made: Mapping[str, list[Proof]]
) -> str:
    """How a host's run differs from the reference, which this time no host may have made."""
    own = proofs[-1]
    agreeing = (
        (name, proof)
        for name, theirs in made.items()
        for proof in theirs
        if proof.files == reference
    )
    name, other = next(agreeing, ("", Proof(reference, own.facts)))
    return difference(own, other, name)


def difference(own: Proof, other: Proof, host: str) -> str:
    """How a proof differs from another host's, and the facts that may explain it."""
    both = sorted({*own.files, *other.files})
    names = [name for name in both if own.files.get(name) != other.files.get(name)]
    facts = [
        f"{key} {mine} here, {theirs} on {host}"
        for key, mine, theirs in _differing(own.facts, other.facts)
    ]
    text = f"its proof differs in {', '.join(names[:3])}{', …' if len(names) > 3 else ''}"
    return f"{text} ({'; '.join(facts) or 'with the same versions and digests'})"


def _differing(own: Any, other: Any, key: str = "") -> list[tuple[str, Any, Any]]:
    if isinstance(own, dict) and isinstance(other, dict):
        facts = []
        for name in sorted({*own, *other}):
            facts += _differing(own.get(name), other.get(name), f"{key}.{name}" if key else name)
        return facts
    return [(key, own, other)] if own != other else []


def _proof(host: OneHost, job: Job, stopped: Callable[[], bool]) -> Proof | str:
    """The host's proof, or why there is none."""
    entry = plan_file.portable(job)
    name = f"{plan_file.identity(entry, LABEL)}-{time.monotonic_ns():x}"
    try:
        host.send(job)
        host.start(entry, name)
        while (status := _look(host, name))["alive"]:
            if stopped():
                host.call("cancel", jobs=[name])
            time.sleep(POLL_S)
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "proof" / "1"
            state, why, _ = host.fetch(status, run)
            if state == ABORTED:
                return f"its proof was cut short: {why}"
            return read_proof(run)
    except Failed as error:
        return str(error)
    except NoAnswer as error:
        return f"it does not answer: {error}"


def _look(host: OneHost, name: str) -> dict[str, Any]:
    jobs: list[dict[str, Any]] = host.call("look")["jobs"]
    return next(
        (job for job in jobs if job["job"] == name),
        {"alive": False, "run": "", "job": name, "said": "it is gone"},
    )


def read_proof(run: Path) -> Proof | str:
    """The proof in the folder of an ended short run; on the host's clock only its facts count.

    Or why there is none: /dev/kvm may be openable although no kernel boots.
    """
    meta = json_object((run / META).read_bytes()) or {}
    facts = {name: meta.get(name) for name in TELLING}
    if run_copies.is_repeatable(run):
        names = run_copies.same_everywhere(run)
        return Proof({name: cache.file_digest(run / name) for name in names}, facts)
    if "t0" not in meta:
        return f"its proof did not come to its workload: {ended(run)}: {why_of(run)}"
    return Proof({META: cache.key(json.dumps(facts, sort_keys=True))}, facts)
