# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a bisect: text, a `git bisect log` that can be replayed, and a mail."""

import shlex
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from run.bisect.findings import WORSE
from run.bisect.memory import unmatched
from run.bisect.state import Stage, State, Step

TEXT, LOG, MAIL = "bisect.txt", "bisect.log", "mail.txt"
WIDTH = 76
NAMED = 10
NOUNS = {  # a step of a row of this kind, the kernel before it, and that one as others name it
    "commits": ("commit", "its parent", "the parent"),
    "hunks": ("hunk", "the kernel without it", "the kernel without it"),
    "kernels": ("kernel", "the one before it", "the one before the step"),
}


def write(folder: Path, state: State) -> str:
    """Write all three into the bisect's folder; returns the text."""
    text = "\n".join(lines(state)) + "\n"
    (folder / TEXT).write_text(text)
    if state.kind == "commits":
        (folder / LOG).write_text("\n".join(log(state)) + "\n")
    if any(stage.finding for stage in state.stages):
        (folder / MAIL).write_text("\n".join(mail(state)) + "\n")
    return text


def lines(state: State) -> Iterator[str]:
    """The lines of the text."""
    ends = state.ends
    if ends:
        yield from _wrapped(f"The ends: {ends['sentence']}")
        if ends.get("newest"):
            yield from _wrapped(f"The newest: {ends['newest']}")
    for stage in state.stages:
        if stage.word:
            yield ""
            yield from _stage(state, stage)
    if state.untestable:
        yield ""
        yield "Not tested, so neither good nor bad:"
        for name, why in list(state.untestable.items())[:NAMED]:
            yield from _wrapped(f"{described(state, name)}: {why}", "  ")
        if len(state.untestable) > NAMED:
            yield f"  and {len(state.untestable) - NAMED} more (bisect.json)"
    if state.left_out:
        yield ""
        yield "Left out, since they do not compile without other files of the new tree:"
        yield from (f"  {what}"[:WIDTH] for what in state.left_out[:NAMED])
        if len(state.left_out) > NAMED:
            yield f"  and {len(state.left_out) - NAMED} more hunks (bisect.json)"
    yield ""
    yield from _how(state)


def described(state: State, name: str) -> str:
    """A commit with its subject."""
    step = state.steps.get(name)
    return f'{name} ("{step.subject}")' if step and step.subject else name


def _stage(state: State, stage: Stage) -> Iterator[str]:
    noun, *_ = NOUNS[state.kind]
    where = {
        "merge": "Inside that merge: ",
        "before": "There is another step before it. ",
        "after": "There is another step after it. ",
    }.get(stage.kind, "")
    if stage.word == "found" and len(stage.suspects) == 1:
        name = described(state, stage.suspects[0])
        yield from _wrapped(f"{where}The step is at {name}, probability {stage.probability:.3f}.")
    elif stage.word == "found":
        yield from _wrapped(
            f"{where}The step is at one of {len(stage.suspects)} {noun}s that cannot be told "
            f"apart, since kernels between them do not build or run: {stage.suspects[0]} to "
            f"{stage.suspects[-1]}, probability {stage.probability:.3f}."
        )
        for name in stage.suspects[:NAMED]:
            yield from _wrapped(described(state, name), "  ")
    else:
        yield from _wrapped(f"{where}Not sure which {noun} it is: {stage.why}. Most probable:")
        for name, share in stage.probable:
            yield from _wrapped(f"{share:6.1%}  {described(state, name)}", "  ")
    if stage.finding:
        yield from _finding(state, stage)


def _finding(state: State, stage: Stage) -> Iterator[str]:
    noun, before, parent = NOUNS[state.kind]
    finding = stage.finding
    at = finding["culprit_against_parent"]
    confirmed = at.get("verdict") == WORSE
    yield ""
    yield "Confirmed by fresh runs:" if confirmed else "NOT confirmed by fresh runs:"
    for what, key in (
        (f"The {noun} against {before}", "culprit_against_parent"),
        ("The bad end without it", "revert_against_bad"),
        (f"The good end against {parent}", "good_against_parent"),
        (f"The {noun} against the bad end", "culprit_against_bad"),
    ):
        if finding[key]:
            yield from _wrapped(f"{what}: {finding[key]['sentence']}", "  ")
    for note in finding.get("notes", []):
        yield from _wrapped(note, "  ")


def _how(state: State) -> Iterator[str]:
    counted = [one for one in state.runs if one.counts]
    kernels = {one.name for one in counted}
    yield from _wrapped(
        f"{len(counted)} runs of {len(kernels)} kernels. A probability assumes that each kernel "
        "also has a small offset of its own; it says where to look. The finding is the verdict of "
        "the fresh runs."
    )
    if state.available_kib:
        odd = unmatched(state)
        moved = {name: one["more_mib"] for name, one in state.memory.items() if one.get("more_mib")}
        yield from _wrapped(
            f"Memory: MemAvailable at the workload's start is matched to the good end's, "
            f"{state.available_kib:,} KiB, within 1 MiB. {_changed_sizes(moved.values())}"
            + (f" Not matched: {', '.join(odd)}." if odd else "")
        )


def _changed_sizes(mib: Collection[int]) -> str:
    """What matching did to the VMs; mib: by how much each changed one is larger."""
    if not mib:
        return "All VMs have the same size."
    least, most = (f"{size:+d}" for size in (min(mib), max(mib)))
    by = least if least == most else f"{least} to {most}"
    whose = "The VM of one kernel was" if len(mib) == 1 else f"The VMs of {len(mib)} kernels were"
    return f"{whose} changed by {by} MiB."


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "
    )


def log(state: State) -> Iterator[str]:
    """Input of `git bisect replay`: the first stage, and the stages inside the merges it found."""
    first = state.stages[0]
    good, bad = (state.steps[name] for name in (first.row[0], first.row[-1]))
    paths = f" '--' {' '.join(map(shlex.quote, state.paths))}" if state.paths else ""
    yield f"# bad: [{bad.commit}] {bad.subject}"
    yield f"# good: [{good.commit}] {good.subject}"
    yield f"git bisect start '{bad.commit}' '{good.commit}'{paths}"
    tested = {entry.name for entry in state.runs if entry.counts}
    logged: set[str] = {good.name, bad.name}
    stage: Stage | None = first
    while stage is not None:
        for word, step in _words(state, stage, tested):
            if step.name not in logged:
                logged.add(step.name)
                yield f"# {word}: [{step.commit}] {step.subject}"
                yield f"git bisect {word} {step.commit}"
        inner = [
            entry
            for entry in state.stages
            if entry.kind == "merge" and state.stages[entry.outer] is stage and entry.word
        ]
        last, stage = stage, inner[0] if inner else None
    if last.word == "found" and len(last.suspects) == 1:
        culprit = state.steps[last.suspects[0]]
        yield f"# first bad commit: [{culprit.commit}] {culprit.subject}"


def _words(state: State, stage: Stage, tested: set[str]) -> Iterator[tuple[str, Step]]:
    """The kernels that are known to be before or after the step, or that do not run.

    Bad kernels come last and in reverse order: git takes the last bad one as the first bad commit.
    """
    steps = [state.steps[name] for name in stage.row]
    yield from (("skip", step) for step in steps if step.name in state.untestable)
    if stage.word != "found":
        return
    first, last = (stage.row.index(end) for end in (stage.suspects[0], stage.suspects[-1]))
    yield from (("good", step) for step in steps[:first] if step.name in tested)
    yield from (("bad", step) for step in reversed(steps[last:]) if step.name in tested)


def mail(state: State) -> Iterator[str]:
    """The text of a mail about the first finding, with its numbers and how to reproduce them."""
    stage = next(entry for entry in state.stages if entry.finding)
    noun, before, _ = NOUNS[state.kind]
    finding = stage.finding
    culprit = state.steps[finding["culprit"]]
    ratio = finding["culprit_against_parent"].get("ratio")
    times = f" {ratio:.2f} times" if ratio else ""
    yield f"Subject: [REGRESSION] desktop stalls{times} with {finding['culprit']}"
    yield ""
    confirmed = finding["culprit_against_parent"].get("verdict") == WORSE
    if not confirmed:
        yield from _wrapped(
            f"DO NOT SEND: fresh runs of the {noun} and {before} do not show a regression."
        )
        yield ""
    if culprit.commit:
        yield from _wrapped(f'commit {culprit.commit} ("{culprit.subject}")')
        yield ""
    yield from lines(state)
    yield ""
    yield "To reproduce (the command, in a checkout of the suite):"
    yield f"  ./run_test.sh {shlex.join(state.command)}"
    if state.kind == "commits":
        yield ""
        yield from log(state)
        yield ""
        yield f"#regzbot introduced: {culprit.commit[:12]}"
