# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes the causes of a run's stalls from its evidence (docs/explain/causes.md)."""

from collections.abc import Iterable, Sequence
from typing import Any

from analysis.figures.stalls import Stall, stalls
from analysis.reading.facts import swap_kind
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from analysis.stall_causes import missing_evidence
from analysis.stall_causes.causes import CAUSES, UNEXPLAINED, Card, RunCauses
from analysis.stall_causes.critical_path import CriticalPath, Shares
from analysis.stall_causes.machine import RunCounters, clauses
from analysis.stall_causes.stacks import BACKPRESSURE, FOLLOW, classify_stack, shown
from contract.run_files import HEARTBEAT, PLAYER

MOST_CARDS = 5000  # of a run; an hour with a stall each second has fewer
MOST_STACKS = 5
MOST_WHO = 6
OTHERS = (PLAYER, HEARTBEAT)  # their stalls have cards, and are in a sum only as subjects


def run_causes(run: Run) -> RunCauses | None:
    """The causes (s) of all stalls of the run's subjects; None if the run has no evidence."""
    if not run.evidence.tells:
        return None
    machine = RunCounters(run)
    subjects = [stream.name for stream in run.subjects]
    subject_stalls = _stalls(run, subjects)
    other_stalls = _stalls(run, [name for name in OTHERS if name not in subjects])[:MOST_CARDS]
    all_stalls = [*subject_stalls[:MOST_CARDS], *other_stalls]
    path = _path(run, machine, all_stalls)
    cards = [_card(path, machine, stall) for stall in subject_stalls[:MOST_CARDS]]
    notes = missing_evidence.notes(run, machine)
    seconds: dict[str, float] = {}
    if len(subject_stalls) > MOST_CARDS:
        seconds[UNEXPLAINED] = sum(stall.length for stall in subject_stalls[MOST_CARDS:])
        notes.append(
            f"Only the {MOST_CARDS:,} longest of {len(subject_stalls):,} stalls are explained."
        )
    for card in cards:
        for key, amount in card.seconds.items():
            seconds[key] = seconds.get(key, 0.0) + amount
    return RunCauses(
        cards,
        _in_order(seconds),
        notes,
        apart=missing_evidence.apart(run, machine),
        others=[_card(path, machine, stall) for stall in other_stalls],
        swap=swap_kind(run),
    )


def causes_between(run: Run, edges: Sequence[float]) -> list[dict[str, float]] | None:
    """Cause -> seconds for each interval between edges (elapsed s); player and heartbeat included.

    Several streams may stall at a time. None if the run has no evidence.
    """
    if not run.evidence.tells:
        return None
    names = [stream.name for stream in run.subjects]
    all_stalls = _stalls(run, dict.fromkeys([*names, *OTHERS]))
    path = _path(run, RunCounters(run), all_stalls)
    seconds_by_cause: list[dict[str, float]] = [{} for _ in edges[1:]]
    for stall in all_stalls:
        for place, shares in path.between(stall, edges):
            for (cause, _, _), amount in shares.of.items():
                seconds = seconds_by_cause[place]
                seconds[cause] = seconds.get(cause, 0.0) + amount
    return seconds_by_cause


def _path(run: Run, machine: RunCounters, asked: Sequence[Stall]) -> CriticalPath:
    tasks, looks = run.evidence.tasks or [], run.evidence.looks or []
    return CriticalPath(tasks, looks, machine, _pids(run), sum(stall.length for stall in asked))


def _stalls(run: Run, names: Iterable[str]) -> list[Stall]:
    """The stalls of these streams, the longest first."""
    streams = [run.streams[name] for name in names if name in run.streams]
    all_stalls = [stall for stream in streams for stall in stalls(stream)]
    return sorted(all_stalls, key=lambda stall: (-stall.length, stall.begin, stall.stream))


def _card(path: CriticalPath, machine: RunCounters, stall: Stall) -> Card:
    shares = path.shares(stall)
    seconds: dict[str, float] = {"unexplained": 0.0}
    who: dict[str, dict[str, float]] = {}
    for (cause, comm, amid), amount in shares.of.items():
        seconds[cause] = seconds.get(cause, 0.0) + amount
        if comm:
            words = _who(cause, comm, amid)
            by = who.setdefault(cause, {})
            by[words] = by.get(words, 0.0) + amount
    ordered = {
        cause: sorted(by.items(), key=lambda item: (-item[1], item[0]))[:MOST_WHO]
        for cause, by in who.items()
    }
    folded, samples = _stacks(path, stall, shares)
    machine_clauses = clauses(machine, stall.begin, stall.end)
    swap = swap_kind(machine.run)
    return Card(stall, _in_order(seconds), ordered, folded, machine_clauses, samples, swap)


def _who(cause: str, comm: str, amid: str) -> str:
    comm = safe_line(comm, 32)
    if not amid:
        return comm
    return f"{comm}: lock, {amid}" if cause == "lock" else f"{comm}: amid {amid}"


def _stacks(path: CriticalPath, stall: Stall, shares: Shares) -> tuple[list[tuple[str, int]], int]:
    """The most frequent stacks of the tasks that the stall waited for; the number of samples."""
    counts: dict[tuple[str, ...], int] = {}
    samples = 0
    waited_for = {comm for _, comm, _ in shares.of}
    for witness in path.witnesses(stall):
        if witness.comm not in waited_for:
            continue
        for look in witness.looks:
            if classify_stack(look.stack, look.wchan, look.state).kind in (FOLLOW, BACKPRESSURE):
                continue
            samples += 1
            if look.stack:
                stack = shown(look.stack)
                counts[stack] = counts.get(stack, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_STACKS]
    return [
        (" <- ".join(safe_line(name, 80) for name in stack), n) for stack, n in ordered
    ], samples


def _in_order(seconds: dict[str, float]) -> dict[str, float]:
    """The causes with the most seconds first, "unexplained" last."""
    order = {cause.key: place for place, cause in enumerate(CAUSES)}
    known = [key for key in seconds if key != "unexplained"]
    known.sort(key=lambda key: (-seconds[key], order[key]))
    return {key: seconds[key] for key in (*known, "unexplained") if key in seconds}


def _pids(run: Run) -> dict[str, int]:
    """Stream -> the pid of its program, from the events."""
    pids = {}
    for event in run.events:
        pid = number(event.get("pid"))
        if event["event"] == "stream-start" and pid is not None:
            pids[str(event.get("stream"))] = int(pid)
    return pids


def as_json(run: Run, causes: RunCauses) -> dict[str, Any]:
    """A run's causes as JSON values: seconds, and `unexplained` as a share (0 to 1)."""
    return {
        "variant": run.variant,
        "number": run.number,
        "label": run.label,
        "kernel": run.fact("kernel", "release"),
        "total_s": _rounded(causes.total),
        "unexplained": round(causes.unexplained, 4),
        "seconds": causes.seconds,
        "apart": causes.apart,
        "notes": causes.notes,
        "cards": [_card_as_json(card) for card in causes.cards],
        "others": [_card_as_json(card) for card in causes.others],
    }


def _card_as_json(card: Card) -> dict[str, Any]:
    return {
        "stream": card.stall.stream,
        "begin_s": _rounded(card.stall.begin),
        "length_s": _rounded(card.stall.length),
        "open": card.stall.open,
        "main": card.main,
        "seconds": {key: _rounded(value) for key, value in card.seconds.items()},
        "who": {
            key: [[words, _rounded(value)] for words, value in values]
            for key, values in card.who.items()
        },
        "machine": card.machine,
        "samples": card.samples,
        "stacks": [[stack, count] for stack, count in card.stacks],
    }


def _rounded(seconds: float) -> float:
    return round(seconds, 4)
