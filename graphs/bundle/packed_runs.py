# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a bundle: redacted, packed, and as many of them as there is room for.

If the whole of every run is too much, counters that no figure or picture needs are left out of all
of them, then the evidence of why they stalled; if that is still too much, runs are left out, those
that say least first.
"""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from analysis.figures.metrics import failed
from analysis.reading.files import names_in, read_file
from analysis.reading.load import LATENCY_LOG, Run
from analysis.verdicts.choice import badness, median_run
from analysis.verdicts.compared import Compared
from contract.run_files import (
    ALLOCFAIL,
    CONSOLE_LOG,
    EVENTS,
    EVIDENCE,
    FAILURES_LOG,
    HANG,
    KERN_LOG,
    META,
    STATUS,
    TABLES,
    latency_log,
)
from graphs.bundle.narrow_tables import drawn, narrowed
from graphs.redaction import result_files
from graphs.redaction.redact import TOKEN, Redactor

LEVEL = 6  # of zlib; 9 takes three times as long for 1 %
HEADER = 300  # bytes that a file costs in the archive beside its own, packed, at most
BEST_RATIO = 20  # no log of a run is packed better than this: its stamps are hard to guess
LARGEST_LOG = 1 << 20  # bytes of a log that no figure comes from
MISSES = 4  # runs that may be too large before we stop trying smaller ones
KEPT = frozenset(
    (
        *(META, STATUS, EVENTS, KERN_LOG, CONSOLE_LOG, FAILURES_LOG, *EVIDENCE),
        *(f"{name}.tsv" for name in TABLES),
    )
)
# What the causes of stalls come from: whole or not at all.
OF_CAUSES = frozenset(EVIDENCE) - {ALLOCFAIL}
# No figure comes from them. A completed run's console says what kern.log says; the other one
# `python3 -m graphs` makes of kern.log and allocfail.tsv.
REPEATED = frozenset((CONSOLE_LOG, FAILURES_LOG))


@dataclass(frozen=True)
class PackedFile:
    """One file of a bundle. `used`: how often each token stands in it for a secret."""

    path: str
    size: int
    digest: str
    packed: bytes
    used: Counter[str] = field(default_factory=Counter)

    @property
    def room(self) -> int:
        """Bytes that it takes in the archive, at most."""
        return len(self.packed) + HEADER

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return zlib.decompress(self.packed)


def packed_file(path: str, content: bytes, before: bytes | None = None) -> PackedFile:
    """Pack one file; before: what it was before its secrets were replaced."""
    used: Counter[str] = Counter()
    if before != content:
        used += tokens(content)
        used -= tokens(before or b"")
    packed = zlib.compress(content, LEVEL)
    return PackedFile(path, len(content), sha256(content).hexdigest(), packed, used)


def tokens(content: bytes) -> Counter[str]:
    """How often each token is in the file."""
    return Counter(match[0] for match in TOKEN.finditer(content.decode("utf-8", "replace")))


@dataclass
class Chosen:
    """The members of the runs that are in the bundle, by run; and what is not in it."""

    members: dict[tuple[str, int], list[PackedFile]]
    narrow: bool = False
    without_evidence: bool = False
    without_repeated: bool = False
    left_out: list[str] = field(default_factory=list)  # runs, as variant/number
    shortened: list[str] = field(default_factory=list)  # paths of logs, in the bundle


def texts(run: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each of a run's files that can hold a secret; no link is followed."""
    for name, path in _files(run):
        if not name.endswith(".tsv"):
            yield name.rpartition("/")[2], _read(path)


def is_kept(name: str) -> bool:
    """Whether a file of a run's folder goes into a bundle."""
    return name in KEPT or LATENCY_LOG.fullmatch(name) is not None


def _files(run: Path) -> list[tuple[str, Path]]:
    """(path inside the run, path) of a run's files, in order."""
    folders, files, *_ = names_in(run)
    found = [(name, run / name) for name in files if is_kept(name)]
    if HANG in folders:
        found += [(f"{HANG}/{name}", run / HANG / name) for name in names_in(run / HANG).files]
    return sorted(found)


def _read(path: Path) -> bytes:
    return read_file(path, []) or b""


@dataclass(frozen=True)
class Kept:
    """What of its runs a bundle holds: counters that nothing uses, evidence, logs that repeat."""

    counters: bool = True
    evidence: bool = True
    repeated: bool = True


# One after the other, until all runs fit; with the last one runs are left out.
STEPS = (
    Kept(),
    Kept(counters=False),
    Kept(counters=False, evidence=False),
    Kept(counters=False, evidence=False, repeated=False),
)


class Packer:
    """Packs the files of runs; a file whose content is the same either way is packed once."""

    def __init__(self, redactor: Redactor, counters: frozenset[str] = frozenset()) -> None:
        """`counters`: what a narrow bundle holds beside NARROW."""
        self._redactor = redactor
        self._counters = counters
        self._kept: dict[Path, PackedFile] = {}
        self.shortened: set[str] = set()

    def run(self, run: Run, kept: Kept) -> list[PackedFile]:
        """The members of one run."""
        folder = f"{self._redactor.text(run.variant)}/{run.number}"
        left_out = frozenset() if kept.evidence else OF_CAUSES
        left_out |= frozenset() if kept.repeated or failed(run) else REPEATED
        files = [one for one in _files(run.path) if one[0] not in left_out]
        return [self._member(run, folder, *one, not kept.counters) for one in files]

    def _member(self, run: Run, folder: str, name: str, path: Path, narrow: bool) -> PackedFile:
        if path in self._kept:
            return self._kept[path]
        raw = _read(path)
        place = f"{folder}/{self._name(name)}"
        table = name.endswith(".tsv") and name not in EVIDENCE
        # A failed run ranks last whatever its log says; of any other the log is counted.
        figures = (
            name.endswith(".tsv")
            or LATENCY_LOG.fullmatch(name) is not None
            or (name == KERN_LOG and not failed(run))
        )
        if not figures and len(raw) > LARGEST_LOG:
            raw = _ends(raw)
            self.shortened.add(place)
        found = result_files.redacted(name.rpartition("/")[2], raw, self._redactor)
        if narrow and table:
            return packed_file(place, narrowed(found, drawn(run) | self._counters), raw)
        packed = packed_file(place, found, raw)
        if not table:
            self._kept[path] = packed
        return packed

    def _name(self, name: str) -> str:
        """The file's name; a stream may be called like a host."""
        if log := LATENCY_LOG.fullmatch(name):
            return latency_log(self._redactor.text(log[1]))
        return (
            name
            if is_kept(name)
            else f"{HANG}/{self._redactor.text(name.removeprefix(f'{HANG}/'))}"
        )


def _ends(raw: bytes) -> bytes:
    """Beginning and end of a long log, with a line that says so between them."""
    begin = raw[: LARGEST_LOG // 2].rpartition(b"\n")[0]
    end = raw[-LARGEST_LOG // 2 :].partition(b"\n")[2]
    gone = len(raw) - len(begin) - len(end) - 1
    return begin + f"\n[... {gone} bytes left out of the bundle ...]\n".encode() + end


def in_rank(compared: Compared) -> list[Run]:
    """All runs, those first that a reader needs first: median and worst of what differs most."""
    verdicts = {one: compared.primary.get(one) for one in compared.variants}
    words = ("regressed", "improved", "trades", "undecided", "equivalent", "idle")

    def rank(variant: str) -> tuple[int, float]:
        one = verdicts[variant]
        if one is None:
            return -1, 0.0
        return words.index(one.verdict), -abs(one.delta or 0.0)

    by_variant = compared.campaign.variants()
    ordered = sorted(compared.variants, key=rank)
    first: list[Run] = []
    for variant in ordered:
        runs = by_variant.get(variant, [])
        middle = median_run(runs)
        worst = max(runs, key=lambda run: (*badness(run), -run.number), default=None)
        first += [run for run in (middle, worst) if run is not None]
    rest = [run for variant in ordered for run in by_variant.get(variant, [])]
    unique = {(run.variant, run.number): run for run in [*first, *rest, *compared.campaign.runs]}
    return list(unique.values())


def candidates(ranked: list[Run], limit: int) -> list[Run]:
    """The first runs, so many that no compression could make more of them fit."""
    left = BEST_RATIO * limit
    for index, run in enumerate(ranked):
        always = [path for name, path in _files(run.path) if _stays_whole(name)]
        left -= sum(path.lstat().st_size for path in always)
        if left < 0:
            return ranked[: index + 1]
    return ranked


def _stays_whole(name: str) -> bool:
    """Whether a bundle has the file as it is, however many runs it is of, if it has the run."""
    return not name.endswith(".tsv") and name not in REPEATED


def choose(tried: list[Run], packer: Packer, room: int, whole: bool) -> Chosen:
    """As much of the runs as fits into so many bytes; whole: these are all runs."""
    for kept in STEPS if whole else ():
        members = _fitting(tried, packer, room, kept, misses=0)
        if len(members) == len(tried):
            return _chosen(tried, members, packer, kept)
    members = _fitting(tried, packer, room, STEPS[-1], MISSES)
    return _chosen(tried, members, packer, STEPS[-1])


def _fitting(
    ranked: list[Run], packer: Packer, room: int, kept: Kept, misses: int
) -> dict[tuple[str, int], list[PackedFile]]:
    """The members of the runs that fit; it ends at the run after so many that do not."""
    found: dict[tuple[str, int], list[PackedFile]] = {}
    for run in ranked:
        members = packer.run(run, kept)
        size = sum(one.room for one in members)
        if size <= room:
            found[run.variant, run.number] = members
            room -= size
        elif misses:
            misses -= 1
        else:
            break
    return found


def _chosen(
    ranked: list[Run],
    members: dict[tuple[str, int], list[PackedFile]],
    packer: Packer,
    kept: Kept,
) -> Chosen:
    runs = [(run.variant, run.number) for run in ranked]
    out = [f"{variant}/{number}" for variant, number in runs if (variant, number) not in members]
    paths = {one.path for each in members.values() for one in each}
    there = {name for run in ranked for name, _ in _files(run.path)}
    return Chosen(
        members,
        not kept.counters,
        not (kept.evidence or there.isdisjoint(OF_CAUSES)),
        not (kept.repeated or there.isdisjoint(REPEATED)),
        out,
        sorted(packer.shortened & paths),
    )
