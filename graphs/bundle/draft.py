# SPDX-License-Identifier: GPL-2.0-or-later
"""A draft of a bundle: its files in order, as many as there is room for, and what is left out."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from analysis.reading.facts import block
from analysis.reading.files import read_file
from analysis.reading.load import Run
from analysis.reading.places import LARGEST_FACTS
from analysis.reading.words import first_names, plural, safe_line
from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.compared import Compared
from contract.plan import CHANGES, HOST_OF_RUNS, HOSTS_FILE
from contract.run_files import CONFIG, FAILURES_LOG, PLAN_FILE
from graphs.bug_report import report
from graphs.bug_report.mail import NAME as MAIL
from graphs.bug_report.mail import Mail
from graphs.bundle import pictures
from graphs.bundle.manifest import NAME as MANIFEST
from graphs.bundle.manifest import manifest, redactions
from graphs.bundle.packed_runs import Chosen, PackedFile, Packer, choose, packed_file
from graphs.bundle.shape import CONFIGS, LIMIT, NAME, PICTURES
from graphs.bundle.uncounted_runs import uncounted
from graphs.redaction import result_files
from graphs.redaction.redact import Redactor

NAMED = 40  # at most so many runs or files are named in a remark


@dataclass
class Draft:
    """An attempt to fit everything into `room` bytes, besides the texts that list the content."""

    compared: Compared
    view: Compared
    redactor: Redactor
    report: Path
    room: int
    mail: Mail | str  # str: why there is none
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
        named = [*self._plan(), *self._hosts()] + [
            self._file(variant, path, place)
            for variant, path, place in uncounted(self.compared.whole)
        ]
        sources = self._sources()
        pictures = self._pictures()
        room = self.room - sum(file.room for file in [*head, *named, *sources, *pictures])
        chosen = choose(tried, packer, room, whole=len(tried) == len(ranked))
        known = {(run.variant, run.number) for run in tried}
        chosen.left_out += [
            f"{r.variant}/{r.number}" for r in ranked if (r.variant, r.number) not in known
        ]
        runs = [file for key in sorted(chosen.members) for file in chosen.members[key]]
        pictures += self._timelines(room - sum(file.room for file in runs))
        self._remark(chosen)
        held, total = len(chosen.members), len(ranked)
        contents = report.Contents(
            frozenset((self.redactor.text(variant), n) for variant, n in chosen.members),
            total,
            self.remarks,
            [file.path for file in pictures],
            self.mail if isinstance(self.mail, str) else "",
        )
        first = self._text("report.txt", report.build(self.view, contents, self.redactor.text))
        mails = [] if isinstance(self.mail, str) else [self._text(MAIL, self.mail.text)]
        body = [first, *mails, *head, *pictures, *named, *sources, *runs]
        body.insert(1, packed_file("REDACTIONS.txt", redactions(body, self.redactor.given)))
        return [body[0], packed_file(MANIFEST, manifest(body, held, total)), *body[1:]]

    def _text(self, name: str, text: str) -> PackedFile:
        """A text file. Quotes are already redacted; names that only the whole shows are not yet."""
        return packed_file(name, self.redactor.text(text).encode("utf-8", "replace"), b"")

    def _file(self, variant: str, path: Path, place: str) -> PackedFile:
        raw = read_file(path, [], LARGEST_FACTS) or b""
        redacted = result_files.redacted(path.name, raw, self.redactor)
        return packed_file(f"{self.redactor.text(variant)}/{place}", redacted, raw)

    def _plan(self) -> list[PackedFile]:
        """The plan, and the copy of the machine file that it names."""
        text = self.compared.whole.plan.text.encode("utf-8", "replace")
        own = {PLAN_FILE: text, self.view.whole.plan.machine_copy: self.compared.whole.machine}
        return [
            packed_file(name, result_files.redacted(PLAN_FILE, raw, self.redactor), raw)
            for name, raw in own.items()
            if raw
        ]

    def _hosts(self) -> list[PackedFile]:
        """The runs of each host, without its name; nothing if no figure depends on hosts."""
        runs = self.compared.whole.runs
        names = sorted({block(run) for run in runs})
        if len(names) < 2:
            return []
        hosts = {
            f"{self.redactor.text(run.variant)}/{run.number}": f"host {names.index(block(run)) + 1}"
            for run in runs
        }
        text = json.dumps({"format": 1, HOST_OF_RUNS: hosts}, indent=1)
        return [packed_file(HOSTS_FILE, text.encode("utf-8", "replace"), b"")]

    def _causes(self) -> list[PackedFile]:
        raw = export.causes_json(self.view).encode("utf-8", "replace")
        redacted = result_files.redacted(export.CAUSES_JSON, raw, self.redactor)
        return [packed_file(export.CAUSES_JSON, redacted, raw)] if raw else []

    def _sources(self) -> list[PackedFile]:
        """The patch of each variant's source, and its .config, if there is room for them."""
        room, members, out = min(CONFIGS, self.room // 3), [], []
        first = () if isinstance(self.mail, str) else self.mail.variants
        by_variant = self.compared.whole.variants()
        order = sorted(by_variant, key=lambda one: self.redactor.text(one) not in first)
        whole = self.compared.whole
        for name, known in ((CHANGES, whole.changes), (CONFIG, whole.configs)):
            for variant in filter(known.__contains__, order):
                file = self._file(variant, by_variant[variant][0].path.parent / name, name)
                if file.room <= room:
                    members.append(file)
                    room -= file.room
                else:
                    out.append(file.path)
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
        packed = [
            packed_file(name, content)
            for name, content in pictures.main_pictures(self.report, self.compared)
        ]
        return self._that_fit(packed, min(PICTURES, self.room // 3))

    def _timelines(self, room: int) -> list[PackedFile]:
        if not pictures.are_clean(self.compared.whole.runs, self.redactor):
            return []
        timelines = pictures.few_timelines(self.report, self.compared)
        return self._that_fit([packed_file(name, content) for name, content in timelines], room)

    def _that_fit(self, pictures: list[PackedFile], room: int) -> list[PackedFile]:
        kept: list[PackedFile] = []
        out: list[PackedFile] = []
        for picture in pictures:
            fits = picture.room <= room
            (kept if fits else out).append(picture)
            room -= picture.room if fits else 0
        if out:
            names = _named([picture.path for picture in out])
            self.remarks.append(f"Pictures not in it for want of room: {names}.")
        return kept

    def _remark(self, chosen: Chosen) -> None:
        """Add remarks about parts of the runs that are not in the bundle."""
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
                "runs stalled is read from causes.json. A workload's figures that are read off "
                "trace.tsv cannot be recomputed; compare.txt has them. Of failed "
                "allocations it holds those whose stack is known (allocfail.tsv)."
            )
        if chosen.without_repeated:
            self.remarks.append(
                f"For want of room ({size}) it holds no console.log of a run that completed, which "
                f"says what kern.log says, and no {FAILURES_LOG}, which `python3 -m graphs` makes."
            )
        if chosen.shortened:
            self.remarks.append(f"Long logs without their middle: {_named(chosen.shortened)}.")
        if self.compared.whole.incomplete or self.compared.whole.set_aside:
            self.remarks.append(
                "Of runs that are incomplete or were cut short it holds the facts, no logs."
            )


def _named(names: list[str]) -> str:
    return first_names([safe_line(name, 100) for name in names], NAMED)
