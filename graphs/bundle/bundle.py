# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes bug-report.tar.gz: everything that a maintainer needs, redacted, at most LIMIT bytes.

The same results give the same bytes. docs/guides/report-upstream.md describes its files, and what
is left out if not everything fits.
"""

import gzip
import io
import os
import re
import tarfile
from itertools import zip_longest
from pathlib import Path

from analysis.reading import archive
from analysis.reading.files import read_file
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from analysis.verdicts import export
from analysis.verdicts.compared import Compared
from analysis.verdicts.regression import regression
from contract.plan import HOSTS_FILE
from contract.run_files import PLAN_FILE
from errors import UserError
from graphs.bug_report.mail import NAME as MAIL
from graphs.bug_report.mail import Mail, mail
from graphs.bundle.draft import Draft
from graphs.bundle.manifest import NAME as MANIFEST
from graphs.bundle.manifest import is_part
from graphs.bundle.packed_runs import PackedFile, Packer, candidates, in_rank
from graphs.bundle.redacted_view import learn, redacted
from graphs.bundle.shape import FOLDER, LIMIT, NAME, RESERVE
from graphs.pictures import names
from graphs.redaction.redact import Redactor
from graphs.redaction.secret_names import own_secrets

# The bundle's own files: no variant may have such a name, in any case.
OWN_NAMES = frozenset(
    name.lower()
    for name in (
        *("report.txt", MAIL, "REDACTIONS.txt", MANIFEST, PLAN_FILE, HOSTS_FILE),
        *("compare.txt", "compare.csv", "compare.json", export.CAUSES_JSON),
    )
)
OWN_TIMELINE = re.compile(r"timeline-.*\.png", re.DOTALL)
MTIME = 1257421724  # of every file: the date of the mail that this suite originates from


def write(compared: Compared, report: Path, limit: int = LIMIT) -> Path:
    """Write bug-report.tar.gz into the report's folder, with the pictures in that folder.

    UserError if it cannot be written, or if a variant has the name of one of its files.
    """
    machine = compared.whole.plan.machine_copy
    own = OWN_NAMES | {name.lower() for name in (*names.of_campaign(compared), machine)}
    for variant in compared.whole.variants():
        if variant.lower() in own or OWN_TIMELINE.fullmatch(variant.lower()):
            raise UserError(
                f"{NAME}: the variant {safe_line(variant, 100)!r} is called like a file of the "
                "bundle",
                hint="rename its folder (and its label in plan.toml)",
            )
    redactor = Redactor(own_secrets())
    ranked = _in_turn([in_rank(part) for part in compared.each])
    tried = candidates(ranked, limit)
    path = report / NAME
    aside = report / f".{NAME}.{os.getpid()}"
    try:
        learn(compared.whole, tried, redactor)
        view = redacted(compared, redactor)
        letter = letter_of(view)
        packer = Packer(redactor, frozenset() if isinstance(letter, str) else letter.counters)
        for reserve in (RESERVE, 2 * RESERVE, limit // 2, limit):
            draft = Draft(compared, view, redactor, report, max(0, limit - reserve), letter)
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


def letter_of(view: Compared) -> Mail | str:
    """The mail, or why there is none; for a bundle with part of a campaign its own mail."""
    if is_part(view.whole.path):
        kept = (read_file(view.whole.path / MAIL, []) or b"").decode("utf-8", "replace")
        return Mail(kept) if kept else "this is a part of a campaign that had none"
    result = regression(view)
    return result if isinstance(result, str) else mail(result)


def write_mail(path: Path, report: Path) -> list[Path]:
    """Extract the bundle's mail into the report's folder; [] if it has none."""
    for member in archive.members(path):
        if member.name == f"{FOLDER}/{MAIL}":
            target = report / MAIL
            try:
                target.write_bytes(b"".join(member.chunks()))
            except OSError as error:
                raise UserError(f"{target}: {error.strerror}") from error
            return [target]
    return []


def _in_turn(ranked: list[list[Run]]) -> list[Run]:
    """The first run of each workload, then the second, and so on, so that each has some."""
    turns = zip_longest(*ranked)
    return [run for turn in turns for run in turn if run is not None]


def _archive(members: list[PackedFile]) -> bytes:
    """The archive's bytes, without any trace of when, where or by whom it was made."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in members:
            header = tarfile.TarInfo(f"{FOLDER}/{file.path}")
            header.size, header.mtime, header.mode = file.size, MTIME, 0o644
            archive.addfile(header, io.BytesIO(file.content))
    return out.getvalue()
