# SPDX-License-Identifier: GPL-2.0-or-later
"""The pictures of a bundle: those in a report's folder, without invisible data.

A picture cannot be redacted. If any name in the pictures is a secret, none is included: the
recipient can draw them again from the redacted results.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from analysis.reading.files import names_in, read_file
from analysis.reading.load import Run
from analysis.verdicts.choice import badness, extremes, medians
from analysis.verdicts.compared import Compared
from graphs.pictures import names, timeline
from graphs.redaction.redact import Redactor

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The chunks that make the picture; texts, dates and other additions are left out.
SEEN = (b"IHDR", b"PLTE", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"IDAT", b"IEND")
TIMELINES = 6
LARGEST = 4 << 20


def main_pictures(report: Path, compared: Compared) -> list[tuple[str, bytes]]:
    """(name, content) of the pictures about the whole campaign."""
    listed = names.of_campaign(compared)
    return [(name, content) for name in listed if (content := _picture(report / name))]


def few_timelines(report: Path, compared: Compared) -> Iterator[tuple[str, bytes]]:
    """Timelines of the variants' median runs, then of their worst ones; workloads in turn."""
    taken = Counter(timeline.file_name(run) for run in compared.whole.runs)
    there = set(names_in(report).files)
    turns = zip_longest(*(map(timeline.file_name, _telling(part)) for part in compared.each))
    drawn = dict.fromkeys(name for turn in turns for name in turn if name is not None)
    for name in [name for name in drawn if name in there and taken[name] == 1][:TIMELINES]:
        if content := _picture(report / name):
            yield name, content


def _telling(compared: Compared) -> list[Run]:
    """The runs of a workload that have a timeline, the most informative first."""
    by_variant = compared.campaign.variants()
    middle = medians(compared.campaign, compared.variants)
    drawn = extremes(middle, TIMELINES)
    worst = [max(by_variant[v], key=lambda run: (*badness(run), -run.number)) for v in drawn]
    return [*middle.values(), *worst]


def are_clean(runs: list[Run], redactor: Redactor) -> bool:
    """Whether the pictures show no secret of these runs."""
    for run in runs:
        words = [run.variant, run.label, run.state, str(run.status.get("why")), *run.streams]
        words += [run.workload.subject, *(figure.title for figure in run.workload.figures)]
        words += [str(run.fact("kernel", key)) for key in ("release", "version", "spec")]
        if redactor.value(words) != words:
            return False
    return True


def _picture(path: Path) -> bytes:
    """The picture without invisible chunks; empty if it is missing, damaged or not a PNG."""
    raw = read_file(path, [], LARGEST) or b""
    if not raw.startswith(SIGNATURE):
        return b""
    parts, at = [SIGNATURE], len(SIGNATURE)
    while at + 12 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        chunk = raw[at : at + 12 + length]
        if len(chunk) < 12 + length:
            return b""
        parts += [chunk] if kind in SEEN else []
        at += 12 + length
        if kind == b"IEND":
            return b"".join(parts)
    return b""
