# SPDX-License-Identifier: GPL-2.0-or-later
"""bug-report.tar.gz: everything that a maintainer needs, redacted, at most LIMIT bytes.

The same results give the same bytes. docs/BUNDLE.md describes each file of it, and what is left
out where not everything fits.
"""

import gzip
import io
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path

from analysis.reading.files import names_in, read_file
from analysis.reading.load import Campaign, Run
from analysis.reading.places import CUT_RUN, LARGEST_FACTS, find_runs
from analysis.reading.words import plain, plural, some
from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from contract.plan import parse_plan
from contract.run_files import CONFIG, EVENTS, META, PLAN_FILE, STATUS
from errors import UserError
from graphs.bug_report import facts, report
from graphs.bundle import pictures
from graphs.bundle.manifest import NAME as MANIFEST
from graphs.bundle.manifest import check, manifest, redactions, remarks
from graphs.bundle.packed_runs import (
    Chosen,
    PackedFile,
    Packer,
    candidates,
    choose,
    in_rank,
    packed_file,
    texts,
)
from graphs.pictures import names
from graphs.redaction import result_files
from graphs.redaction.redact import Redactor
from graphs.redaction.secret_names import own_secrets

__all__ = ["LIMIT", "check", "remarks", "write"]

NAME = "bug-report.tar.gz"
FOLDER = "bug-report"  # what everything in it lies in
LIMIT = 5_000_000  # bytes of the whole bundle
RESERVE = 150_000  # of them for report.txt, REDACTIONS.txt and MANIFEST, packed
CONFIGS = 1_000_000  # of them for the kernels' configs at most
PICTURES = 1_000_000  # of them for the pictures of the whole campaign at most
NAMED = 40  # runs and files that a remark names
# The bundle's own files: a variant's folder cannot be called like one, whatever the case.
OWN_NAMES = frozenset(
    name.lower()
    for name in (
        *("report.txt", "REDACTIONS.txt", MANIFEST, PLAN_FILE),
        *("compare.txt", "compare.csv", "compare.json", export.CAUSES_JSON),
    )
)
OWN_TIMELINE = re.compile(r"timeline-.*\.png", re.DOTALL)
MTIME = 1257421724  # of every file: the day of the mail that this suite comes from
FACTS = (STATUS, META, EVENTS)  # of a run that is named, but not counted


def write(compared: Compared, report: Path, limit: int = LIMIT) -> Path:
    """Write bug-report.tar.gz into the report's folder, with the pictures that are there.

    UserError if it cannot be written, or a variant is called like one of its own files.
    """
    machine = compared.whole.plan.machine_copy
    own = OWN_NAMES | {name.lower() for name in (*names.of_campaign(compared), machine)}
    for variant in compared.whole.variants():
        if variant.lower() in own or OWN_TIMELINE.fullmatch(variant.lower()):
            raise UserError(
                f"{NAME}: the variant {plain(variant, 100)!r} is called like a file of the bundle",
                hint="rename its folder (and its label in plan.toml)",
            )
    redactor = Redactor(own_secrets())
    ranked = _in_turn([in_rank(one) for one in compared.each])
    tried = candidates(ranked, limit)
    path = report / NAME
    aside = report / f".{NAME}.{os.getpid()}"
    try:
        _learn(compared.whole, tried, redactor)
        view = _redacted(compared, redactor)
        packer = Packer(redactor)
        for reserve in (RESERVE, 2 * RESERVE, limit // 2, limit):
            draft = _Draft(compared, view, redactor, report, max(0, limit - reserve))
            packed = _archive(draft.members(ranked, tried, packer))
            if len(packed) <= limit:
                break
        else:
            raise UserError(
                f"{NAME}: its texts alone take {len(packed):,} bytes, {limit:,} are allowed",
                hint="attach compare.txt of the report instead",
            )
        aside.write_bytes(packed)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UserError(f"{error.filename or path}: {error.strerror}") from error
    return path


def _learn(campaign: Campaign, runs: list[Run], redactor: Redactor) -> None:
    """Show everything that will be in the bundle to the redactor."""
    result_files.learn(PLAN_FILE, campaign.plan.text.encode("utf-8", "replace"), redactor)
    result_files.learn(PLAN_FILE, campaign.machine, redactor)
    for variant, config in campaign.configs.items():
        redactor.learn(variant)
        result_files.learn(CONFIG, config.encode("utf-8", "replace"), redactor)
    for run in campaign.runs:
        redactor.learn_value([run.variant, run.meta, run.status])
    for run in runs:
        for name, content in texts(run.path):
            result_files.learn(name, content, redactor)
    for _, path, _ in _uncounted(campaign):
        result_files.learn(path.name, read_file(path, [], LARGEST_FACTS) or b"", redactor)


def _uncounted(campaign: Campaign) -> Iterator[tuple[str, Path, str]]:
    """(variant, file, its place below the variant) of runs that are named, but not counted."""
    counted = {(run.variant, run.number) for run in campaign.runs}
    folders = [
        (place.variant, place.path)
        for place in find_runs(campaign.path).runs
        if (place.variant, place.number) not in counted
    ]
    if campaign.set_aside:
        for variant in dict.fromkeys(run.variant for run in campaign.runs):
            folder = campaign.path / variant
            if folder.is_dir():
                cut = sorted(filter(CUT_RUN.fullmatch, names_in(folder)[0]))
                folders += [(variant, folder / name) for name in cut]
    for variant, folder in folders:
        for name in names_in(folder)[1]:
            if name in FACTS:
                yield variant, folder / name, f"{folder.name}/{name}"


def _in_turn(ranked: list[list[Run]]) -> list[Run]:
    """The first of each workload, then the second: none of them is left out altogether."""
    turns = zip_longest(*ranked)
    return [run for turn in turns for run in turn if run is not None]


def _redacted(compared: Compared, redactor: Redactor) -> Compared:
    """What is compared, without secrets; judged again if a name in the verdicts was one."""
    old = compared.whole
    toml = result_files.redacted(PLAN_FILE, old.plan.text.encode("utf-8", "replace"), redactor)
    campaign = replace(
        old,
        runs=[_redacted_run(run, redactor) for run in old.runs],
        incomplete=redactor.value(old.incomplete),
        set_aside=redactor.value(old.set_aside),
        problems=redactor.value(old.problems),
        plan=parse_plan(toml)[0] if old.plan.text else old.plan,
        configs={
            redactor.text(name): _redacted_config(old.configs[name], redactor)
            for one in compared.each
            for name in one.variants[: facts.KERNELS]
            if name in old.configs
        },
    )
    if all(_is_clean(one, redactor) for one in compared.each):
        parts = zip(compared.each, by_workload(campaign), strict=True)
        first, *others = (replace(one, campaign=part, whole=campaign) for one, part in parts)
        return replace(first, others=others)
    found = {
        path: replace(why, notes=redactor.value(why.notes))
        for path, why in compared.causes.runs.items()
    }
    return compare(
        campaign,
        baseline=[redactor.text(one.baseline) for one in compared.each],
        force=any(one.forced for one in compared.each),
        causes=found,
        counters=compared.counters.figures,
    )


def _is_clean(compared: Compared, redactor: Redactor) -> bool:
    """Whether nothing that the verdicts say is a secret."""
    words = [compared.variants, compared.labels, compared.sentences, compared.notes]
    words += [compared.workload.as_meta(), compared.forced]
    return bool(redactor.value(words) == words)


def _redacted_config(config: str, redactor: Redactor) -> str:
    raw = result_files.redacted(CONFIG, config.encode("utf-8", "replace"), redactor)
    return raw.decode("utf-8", "replace")


def _redacted_run(run: Run, redactor: Redactor) -> Run:
    streams = {redactor.text(name): stream for name, stream in run.streams.items()}
    return replace(
        run,
        variant=redactor.text(run.variant),
        meta=redactor.value(run.meta),
        status=redactor.value(run.status),
        warnings=redactor.value(run.warnings),
        streams={name: replace(stream, name=name) for name, stream in streams.items()},
    )


@dataclass
class _Draft:
    """One try to fit everything into `room` bytes, beside the texts that list what is there."""

    compared: Compared
    view: Compared
    redactor: Redactor
    report: Path
    room: int
    remarks: list[str] = field(default_factory=list)

    def members(self, ranked: list[Run], tried: list[Run], packer: Packer) -> list[PackedFile]:
        """Every file of the bundle, in order."""
        head = [
            packed_file(f"compare.{end}", render(self.view).encode("utf-8", "replace"), b"")
            for end, render in (
                ("txt", compare_text.text),
                ("csv", export.csv_text),
                ("json", export.json_text),
            )
        ]
        head += self._causes()
        named = self._plan() + [
            self._file(variant, path, place)
            for variant, path, place in _uncounted(self.compared.whole)
        ]
        configs = self._configs()
        pictures = self._pictures()
        room = self.room - sum(one.room for one in [*head, *named, *configs, *pictures])
        chosen = choose(tried, packer, room, whole=len(tried) == len(ranked))
        known = {(run.variant, run.number) for run in tried}
        chosen.left_out += [
            f"{r.variant}/{r.number}" for r in ranked if (r.variant, r.number) not in known
        ]
        runs = [one for each in sorted(chosen.members) for one in chosen.members[each]]
        pictures += self._timelines(room - sum(one.room for one in runs))
        self._remark(chosen)
        held, total = len(chosen.members), len(ranked)
        contents = report.Contents(
            frozenset((self.redactor.text(variant), n) for variant, n in chosen.members),
            total,
            self.remarks,
            [one.path for one in pictures],
        )
        text = report.build(self.view, contents, self.redactor.text)
        # What it quotes was redacted; a name that only its whole shows is redacted here.
        first = packed_file("report.txt", self.redactor.text(text).encode("utf-8", "replace"), b"")
        body = [first, *head, *pictures, *named, *configs, *runs]
        body.insert(1, packed_file("REDACTIONS.txt", redactions(body, self.redactor.given)))
        return [body[0], packed_file(MANIFEST, manifest(body, held, total)), *body[1:]]

    def _file(self, variant: str, path: Path, place: str) -> PackedFile:
        raw = read_file(path, [], LARGEST_FACTS) or b""
        found = result_files.redacted(path.name, raw, self.redactor)
        return packed_file(f"{self.redactor.text(variant)}/{place}", found, raw)

    def _plan(self) -> list[PackedFile]:
        """The plan, and the copy of the machine's file that it names."""
        text = self.compared.whole.plan.text.encode("utf-8", "replace")
        own = {PLAN_FILE: text, self.view.whole.plan.machine_copy: self.compared.whole.machine}
        return [
            packed_file(name, result_files.redacted(PLAN_FILE, raw, self.redactor), raw)
            for name, raw in own.items()
            if raw
        ]

    def _causes(self) -> list[PackedFile]:
        raw = export.causes_json(self.view).encode("utf-8", "replace")
        found = result_files.redacted(export.CAUSES_JSON, raw, self.redactor)
        return [packed_file(export.CAUSES_JSON, found, raw)] if raw else []

    def _configs(self) -> list[PackedFile]:
        """The .config of each variant, as far as there is room for them."""
        room, members, out = min(CONFIGS, self.room // 3), [], []
        for variant, runs in self.compared.whole.variants().items():
            if variant in self.compared.whole.configs:
                config = self._file(variant, runs[0].path.parent / CONFIG, CONFIG)
                if config.room <= room:
                    members.append(config)
                    room -= config.room
                else:
                    out.append(config.path)
        if out:
            self.remarks.append(f"Not in it for want of room: {_named(out)}.")
        return members

    def _pictures(self) -> list[PackedFile]:
        if not pictures.are_clean(self.compared.whole.runs, self.redactor):
            self.remarks.append(
                "The pictures show a name that is redacted and are not in it; "
                f"`python3 -m graphs {NAME}` draws them anew."
            )
            return []
        found = [
            packed_file(name, content)
            for name, content in pictures.main_pictures(self.report, self.compared)
        ]
        return self._that_fit(found, min(PICTURES, self.room // 3))

    def _timelines(self, room: int) -> list[PackedFile]:
        if not pictures.are_clean(self.compared.whole.runs, self.redactor):
            return []
        timelines = pictures.few_timelines(self.report, self.compared)
        return self._that_fit([packed_file(name, content) for name, content in timelines], room)

    def _that_fit(self, pictures: list[PackedFile], room: int) -> list[PackedFile]:
        found: list[PackedFile] = []
        out: list[PackedFile] = []
        for one in pictures:
            fits = one.room <= room
            (found if fits else out).append(one)
            room -= one.room if fits else 0
        if out:
            names = _named([one.path for one in out])
            self.remarks.append(f"Pictures not in it for want of room: {names}.")
        return found

    def _remark(self, chosen: Chosen) -> None:
        """Say what of the runs is not in the bundle."""
        size = f"{LIMIT / 1e6:g} MB"
        if chosen.left_out:
            names = _named([self.redactor.text(name) for name in chosen.left_out])
            self.remarks.insert(
                0,
                f"THIS IS A PART: {plural(len(chosen.left_out), 'run')} did not fit into {size}: "
                f"{names}. The table cannot be recomputed from this bundle; compare.json has the "
                "figures of every run.",
            )
        if chosen.narrow:
            self.remarks.append(
                f"For want of room ({size}) its *.tsv hold only the counters that the figures and "
                "pictures use; figures are recomputed to the digit all the same. What the kernel "
                "did differently is recomputed of these counters only: compare.txt, compare.csv "
                "and compare.json here are of all."
            )
        if chosen.without_evidence:
            self.remarks.append(
                f"For want of room ({size}) it holds no evidence (tasks.tsv and the like): why the "
                "runs stalled is in causes.json and compare.json, and cannot be recomputed; nor "
                "can a workload's figures that are read off trace.tsv, which compare.txt has. Of "
                "failed allocations it holds those whose stack is known (allocfail.tsv)."
            )
        if chosen.shortened:
            self.remarks.append(f"Long logs without their middle: {_named(chosen.shortened)}.")
        if self.compared.whole.incomplete or self.compared.whole.set_aside:
            self.remarks.append(
                "Of runs that are incomplete or were cut short it holds the facts, no logs."
            )


def _archive(members: list[PackedFile]) -> bytes:
    """The archive's bytes: nothing in them tells when, where or by whom it was made."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for one in members:
            header = tarfile.TarInfo(f"{FOLDER}/{one.path}")
            header.size, header.mtime, header.mode = one.size, MTIME, 0o644
            archive.addfile(header, io.BytesIO(one.content))
    return out.getvalue()


def _named(names: list[str]) -> str:
    return some([plain(name, 100) for name in names], NAMED)
