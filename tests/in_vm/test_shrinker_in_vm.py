# SPDX-License-Identifier: GPL-2.0-or-later
"""shrinker in a guest: a known load, and what its tables say.

The newest kernel; SHRINKER_KERNELS="debian:5.10" tries another one.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.kernel_parameters import kernels
from tests.support.vms import one_small_run

RUN_S = 1800  # of the host: beside other work the guest is slower
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
KERNELS = kernels("SHRINKER_KERNELS", "debian:7.3")
COPIED, OBJECTS, HEADERS, FILES, BONNIE = 16, 2, 200, 3000, 6  # BONNIE x 1,024


@pytest.fixture(scope="module", params=KERNELS)
def shrunk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign folder of a small shrinker, all parts of it."""
    out = tmp_path_factory.mktemp("shrinker") / "out"
    load = f"copy={COPIED}M,objects={OBJECTS},tree={HEADERS},files={FILES},bonnie={BONNIE}"
    more = ("--swap", "zram")
    return one_small_run(out, request.param, "shrinker", f"{load},seconds=2", *more, within_s=RUN_S)


def meta(campaign: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((campaign / "one" / "1" / "meta.json").read_text())
    return found


def test_what_was_made_copied_and_compiled_is_in_the_figures(shrunk: Path) -> None:
    figures = meta(shrunk)["figures"]
    assert (meta(shrunk)["fs"], meta(shrunk)["swap"]["kind"]) == ("xfs", "zram")
    assert (figures["copied"], figures["objects"]) == (COPIED, OBJECTS)
    assert figures["files-fsmark"] == FILES
    assert figures["files-bonnie"] == 1024 * BONNIE
    assert {figures[f"files-{walk}"] for walk in ("first", "again", "after")} == {HEADERS + OBJECTS}


def test_the_tables_say_so(shrunk: Path) -> None:
    said = (shrunk / "report" / "summary.txt").read_text()
    row = {line.split("  ")[0]: line.split() for line in said.splitlines()}
    assert row["cp"][1] == str(COPIED) and row["gcc"][1] == str(OBJECTS)
    assert row["made"][1] == f"{FILES:,}" and row["at first"][2] == str(HEADERS + OBJECTS)
    assert f"bonnie++, {1024 * BONNIE:,} empty files:" in said
    figures = meta(shrunk)["figures"]
    asked = {
        key
        for table in meta(shrunk)["workload"]["tables"]
        for cells in table["rows"]
        for key in cells["figures"]
        if key
    }
    # A phase of bonnie++ that takes less than half a second has no figure.
    assert {key for key in asked - figures.keys() if not key.startswith("bonnie-")} == set()


def test_each_file_is_an_inode_in_the_cache(shrunk: Path) -> None:
    figures = meta(shrunk)["figures"]
    # The tree's may have been there before, and dentries may have been dropped since.
    assert figures["inodes-fsmark"] - figures["inodes-begin"] >= 0.9 * FILES
    header, *rows = (shrunk / "one" / "1" / "slabinfo.tsv").read_text().splitlines()
    column = header.split("\t").index("xfs_inode_active")
    assert max(int(one.split("\t")[column]) for one in rows) >= 0.9 * (FILES + HEADERS)


def test_a_line_of_each_part_and_a_beat_all_the_time(shrunk: Path) -> None:
    run = shrunk / "one" / "1"
    log = (run / "latency-shrinker.log").read_text()
    said = re.findall(r"^[\d.]+ [\d.]+ (\w+): (begins|done)", log, re.MULTILINE)
    parts = ("copy", "fsmark", "bonnie", "mix")
    assert said == [(part, word) for part in parts for word in ("begins", "done")]
    elapsed = json.loads((run / "status.json").read_text())["elapsed_s"]
    beats = (run / "latency-heartbeat.log").read_text().count(" beat ")
    assert beats == pytest.approx(10 * elapsed, rel=0.1)
    assert (shrunk / "report" / "over-time.png").read_bytes().startswith(b"\x89PNG")
