# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists runs that a bundle names, but figures do not count: incomplete or cut short."""

from collections.abc import Iterator
from pathlib import Path

from analysis.reading.files import names_in
from analysis.reading.load import Campaign
from analysis.reading.places import CUT_RUN, find_runs
from contract.run_files import EVENTS, META, STATUS

FACTS = (STATUS, META, EVENTS)  # their files in the bundle


def uncounted(campaign: Campaign) -> Iterator[tuple[str, Path, str]]:
    """(variant, file, path below the variant) of runs that are named, but not counted."""
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
                cut = sorted(filter(CUT_RUN.fullmatch, names_in(folder).folders))
                folders += [(variant, folder / name) for name in cut]
    for variant, folder in folders:
        for name in names_in(folder).files:
            if name in FACTS:
                yield variant, folder / name, f"{folder.name}/{name}"
