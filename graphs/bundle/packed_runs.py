# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a bundle: redacted, packed, and as many as there is room for.

If not everything fits, counters that no figure or picture needs are left out of all runs, then the
evidence about stalls, then repeated logs; if that is not enough, the least informative runs are
left out.
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

LEVEL = 6  # of zlib; 9 takes three times as long to save 1 %
HEADER = 300  # bytes of overhead per file in the archive, packed, at most
BEST_RATIO = 20  # no log is compressed more than this: its time stamps are hard to predict
LARGEST_LOG = 1 << 20  # bytes kept of a log that no figure is computed from
MISSES = 4  # so many runs may be too large before we stop trying further ones
KEPT = frozenset(
    (
        *(META, STATUS, EVENTS, KERN_LOG, CONSOLE_LOG, FAILURES_LOG, *EVIDENCE),
        *(f"{name}.tsv" for name in TABLES),
    )
)
# The files that stall causes are computed from: kept together or not at all.
OF_CAUSES = frozenset(EVIDENCE) - {ALLOCFAIL}
# No figure is computed from these. A completed run's console repeats kern.log; `python3 -m graphs`
# derives the other file from kern.log and allocfail.tsv.
REPEATED = frozenset((CONSOLE_LOG, FAILURES_LOG))


@dataclass(frozen=True)
class PackedFile:
    """A file of a bundle. `used`: token -> number of secrets that it replaces in the file."""

    path: str
    size: int
    digest: str
    packed: bytes
    used: Counter[str] = field(default_factory=Counter)

    @property
    def room(self) -> int:
        """The bytes that it takes in the archive, at most."""
        return len(self.packed) + HEADER

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return zlib.decompress(self.packed)


def packed_file(path: str, content: bytes, before: bytes | None = None) -> PackedFile:
    """Pack a file; before: its content before redaction, None if it was not redacted."""
    used: Counter[str] = Counter()
    if before != content:
        used += tokens(content)
        used -= tokens(before or b"")
    packed = zlib.compress(content, LEVEL)
    return PackedFile(path, len(content), sha256(content).hexdigest(), packed, used)


def tokens(content: bytes) -> Counter[str]:
    """The number of occurrences of each token in the content."""
    return Counter(match[0] for match in TOKEN.finditer(content.decode("utf-8", "replace")))


@dataclass
class Chosen:
    """The files of the runs that are in the bundle, by run; and what was left out."""

    members: dict[tuple[str, int], list[PackedFile]]
    narrow: bool = False
    without_evidence: bool = False
    without_repeated: bool = False
    left_out: list[str] = field(default_factory=list)  # runs, as variant/number
    shortened: list[str] = field(default_factory=list)  # paths of shortened logs, in the bundle


def texts(run: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of a run's files that may contain secrets; links are not followed."""
    for name, path in _files(run):
        if not name.endswith(".tsv"):
            yield name.rpartition("/")[2], _read(path)


def is_kept(name: str) -> bool:
    """Whether a file of a run's folder goes into a bundle."""
    return name in KEPT or LATENCY_LOG.fullmatch(name) is not None


def _files(run: Path) -> list[tuple[str, Path]]:
    """(path inside the run, path) of a run's files, in order."""
    folders, files, *_ = names_in(run)
    paths = [(name, run / name) for name in files if is_kept(name)]
    if HANG in folders:
        paths += [(f"{HANG}/{name}", run / HANG / name) for name in names_in(run / HANG).files]
    return sorted(paths)


def _read(path: Path) -> bytes:
    return read_file(path, []) or b""


@dataclass(frozen=True)
class Kept:
    """Which parts of runs a bundle keeps: unused counters, evidence, repeated logs."""

    counters: bool = True
    evidence: bool = True
    repeated: bool = True


# Tried in this order until all runs fit; with the last step runs are left out.
STEPS = (
    Kept(),
    Kept(counters=False),
    Kept(counters=False, evidence=False),
    Kept(counters=False, evidence=False, repeated=False),
)


class Packer:
    """Packs the files of runs; files that are the same in all steps are packed once."""

    def __init__(self, redactor: Redactor, counters: frozenset[str] = frozenset()) -> None:
        """`counters`: columns that a narrow bundle keeps besides NARROW."""
        self._redactor = redactor
        self._counters = counters
        self._kept: dict[Path, PackedFile] = {}
        self.shortened: set[str] = set()

    def run(self, run: Run, kept: Kept) -> list[PackedFile]:
        """The packed files of a run."""
        folder = f"{self._redactor.text(run.variant)}/{run.number}"
        left_out = frozenset() if kept.evidence else OF_CAUSES
        left_out |= frozenset() if kept.repeated or failed(run) else REPEATED
        files = [file for file in _files(run.path) if file[0] not in left_out]
        return [self._member(run, folder, *file, not kept.counters) for file in files]

    def _member(self, run: Run, folder: str, name: str, path: Path, narrow: bool) -> PackedFile:
        if path in self._kept:
            return self._kept[path]
        raw = _read(path)
        place = f"{folder}/{self._name(name)}"
        table = name.endswith(".tsv") and name not in EVIDENCE
        # A failed run ranks last without its kernel log; of other runs the log is counted.
        figures = (
            name.endswith(".tsv")
            or LATENCY_LOG.fullmatch(name) is not None
            or (name == KERN_LOG and not failed(run))
        )
        if not figures and len(raw) > LARGEST_LOG:
            raw = _ends(raw)
            self.shortened.add(place)
        redacted = result_files.redacted(name.rpartition("/")[2], raw, self._redactor)
        if narrow and table:
            return packed_file(place, narrowed(redacted, drawn(run) | self._counters), raw)
        packed = packed_file(place, redacted, raw)
        if not table:
            self._kept[path] = packed
        return packed

    def _name(self, name: str) -> str:
        """The file's name, redacted: a stream may have a host's name."""
        if log := LATENCY_LOG.fullmatch(name):
            return latency_log(self._redactor.text(log[1]))
        return (
            name
            if is_kept(name)
            else f"{HANG}/{self._redactor.text(name.removeprefix(f'{HANG}/'))}"
        )


def _ends(raw: bytes) -> bytes:
    """Beginning and end of a long log, with a line about the omission in between."""
    begin = raw[: LARGEST_LOG // 2].rpartition(b"\n")[0]
    end = raw[-LARGEST_LOG // 2 :].partition(b"\n")[2]
    gone = len(raw) - len(begin) - len(end) - 1
    return begin + f"\n[... {gone} bytes left out of the bundle ...]\n".encode() + end


def in_rank(compared: Compared) -> list[Run]:
    """All runs, the most useful first: median and worst runs of the variants that differ most."""
    verdicts = {variant: compared.primary.get(variant) for variant in compared.variants}
    words = ("regressed", "improved", "trades", "undecided", "equivalent", "idle")

    def rank(variant: str) -> tuple[int, float]:
        comparison = verdicts[variant]
        if comparison is None:
            return -1, 0.0
        return words.index(comparison.verdict), -abs(comparison.delta or 0.0)

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
    """The first runs, as many as could fit with the best possible compression; limit: bytes."""
    left = BEST_RATIO * limit
    for index, run in enumerate(ranked):
        always = [path for name, path in _files(run.path) if _stays_whole(name)]
        left -= sum(path.lstat().st_size for path in always)
        if left < 0:
            return ranked[: index + 1]
    return ranked


def _stays_whole(name: str) -> bool:
    """Whether a bundle contains the complete file for every run that it contains."""
    return not name.endswith(".tsv") and name not in REPEATED


def choose(tried: list[Run], packer: Packer, room: int, whole: bool) -> Chosen:
    """As much of the runs as fits into `room` bytes; whole: whether these are all runs."""
    for kept in STEPS if whole else ():
        members = _fitting(tried, packer, room, kept, misses=0)
        if len(members) == len(tried):
            return _chosen(tried, members, packer, kept)
    members = _fitting(tried, packer, room, STEPS[-1], MISSES)
    return _chosen(tried, members, packer, STEPS[-1])


def _fitting(
    ranked: list[Run], packer: Packer, room: int, kept: Kept, misses: int
) -> dict[tuple[str, int], list[PackedFile]]:
    """The files of the runs that fit; stops after more than `misses` runs that do not fit."""
    fitted: dict[tuple[str, int], list[PackedFile]] = {}
    for run in ranked:
        members = packer.run(run, kept)
        size = sum(file.room for file in members)
        if size <= room:
            fitted[run.variant, run.number] = members
            room -= size
        elif misses:
            misses -= 1
        else:
            break
    return fitted


def _chosen(
    ranked: list[Run],
    members: dict[tuple[str, int], list[PackedFile]],
    packer: Packer,
    kept: Kept,
) -> Chosen:
    runs = [(run.variant, run.number) for run in ranked]
    out = [f"{variant}/{number}" for variant, number in runs if (variant, number) not in members]
    paths = {file.path for files in members.values() for file in files}
    there = {name for run in ranked for name, _ in _files(run.path)}
    return Chosen(
        members,
        not kept.counters,
        not (kept.evidence or there.isdisjoint(OF_CAUSES)),
        not (kept.repeated or there.isdisjoint(REPEATED)),
        out,
        sorted(packer.shortened & paths),
    )
