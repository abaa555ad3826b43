# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the runs in a folder of results: a campaign's, one variant's, or one run's."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from analysis.reading.files import names_in, read_file, readable
from contract.plan import CHANGES
from contract.run_files import CONFIG, EVENTS, META, REPORT, RUN_NUMBER, STATUS
from contract.untrusted import json_object

LARGEST_FACTS = 4 << 20  # bytes of a JSON file, the plan or a kernel's .config
MARKS = (STATUS, META, EVENTS)
OTHER_COPY = re.compile(r"[0-9]{1,9}\.differs-[0-9]{1,9}")  # a run's second copy
CUT_RUN = re.compile(r"[0-9]{1,9}\.cut-[0-9]{1,9}")


@dataclass(frozen=True)
class Place:
    """A folder that may hold a run."""

    variant: str
    number: int
    path: Path


@dataclass(frozen=True)
class CampaignPlaces:
    """The runs in order; links and runs set aside; each variant's .config and patch."""

    runs: list[Place] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def bytes_of_facts(self) -> int:
        """Size of all runs' JSON files together."""
        files = (run.path / mark for run in self.runs for mark in MARKS)
        return sum(file.lstat().st_size for file in files if os.path.lexists(file))


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts 6.1 before 6.12, and gitk-2 before gitk-10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(int(part[:18]), part) if part[0] in "0123456789" else (-1, part) for part in parts]


def find_runs(folder: Path) -> CampaignPlaces:
    """All folders in this folder that may be runs; raises UserError if it cannot be read."""
    listing = CampaignPlaces()
    if _is_run(folder):
        place = folder.resolve()
        number = int(place.name) if _is_number(place.name) else 1
        listing.runs.append(Place(readable(place.parent.name), number, folder))
        return listing
    folders, _, links, strange = names_in(folder)
    listing.problems.extend(map(_no_name, strange))
    if any(_is_number(name) and _is_run(folder / name) for name in folders):
        _variant(readable(folder.resolve().name), folder, listing)
        return listing
    for name in sorted(folders, key=natural):
        if name != REPORT:
            _variant(name, folder / name, listing)
    for name in sorted(links, key=natural):
        if name != REPORT and (folder / name).is_dir():
            listing.links.append(name)
    return listing


def _variant(variant: str, folder: Path, listing: CampaignPlaces) -> None:
    """Add a variant's runs, its kernel's .config and patch, runs that were set aside, links."""
    folders, files, links, strange = names_in(folder)
    listing.problems.extend(_no_name(f"{variant}/{name}") for name in strange)
    numbers = sorted(filter(_is_number, folders), key=int)
    listing.runs.extend(Place(variant, int(name), folder / name) for name in numbers)
    listing.links.extend(f"{variant}/{name}" for name in sorted(filter(_is_number, links), key=int))
    for name in sorted(filter(CUT_RUN.fullmatch, folders), key=natural):
        status = json_object(read_file(folder / name / STATUS, [], LARGEST_FACTS) or b"")
        state = "no status.json" if status is None else str(status.get("state", "unknown"))
        listing.set_aside.append(f"{variant}/{name} ({state[:20]})")
    for name in sorted(filter(OTHER_COPY.fullmatch, folders), key=natural):
        listing.problems.append(f"{variant}/{name}: a second copy of a run, and not the same bytes")
    for name, known in ((CONFIG, listing.configs), (CHANGES, listing.changes)):
        if name in files:
            content = read_file(folder / name, listing.problems, LARGEST_FACTS) or b""
            known[variant] = content.decode("utf-8", "replace")


def _no_name(shown: str) -> str:
    return f"{shown}: its name is no UTF-8, left out"


def _is_number(name: str) -> bool:
    return re.fullmatch(RUN_NUMBER, name) is not None


def _is_run(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in MARKS)
