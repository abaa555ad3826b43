# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads beside the desktop: a known load, and what their tables make of it.

An old kernel with control groups of version 1 and no swap, a new one with version 2 and zswap.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.workload_tables import of_run
from analysis.reading.load import load_campaign
from tests.support.vms import one_small_run

RUN_S = 600
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
LIMIT, SIZE, WRITERS = 40, 96, 2  # MiB
WRITTEN = SIZE * WRITERS


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(("debian:7.3", "any", "zswap"), id="debian:7.3"),
        pytest.param(("debian:5.10", "1", "none"), id="debian:5.10", marks=pytest.mark.slow),
    ],
)
def dirty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The campaign folder of a small memcg-dirty."""
    kernel, version, swap = request.param
    out = tmp_path_factory.mktemp("dirty") / "out"
    load = f"limit={LIMIT}M,size={SIZE}M,writers={WRITERS},version={version}"
    more = ("--memory", "512M", "--swap", swap)
    return one_small_run(out, kernel, "memcg-dirty", load, *more, within_s=RUN_S)


def meta(campaign: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((campaign / "one" / "1" / "meta.json").read_text())
    return found


def in_tables(campaign: Path) -> dict[str, float]:
    (run,) = load_campaign(campaign).runs
    return of_run(run, run.workload.tables)


def last(campaign: Path, table: str) -> dict[str, str]:
    header, *rows = (campaign / "one" / "1" / f"{table}.tsv").read_text().splitlines()
    return dict(zip(header.split("\t"), rows[-1].split("\t"), strict=True))


def test_what_was_written_is_in_the_figures(dirty: Path) -> None:
    figures = meta(dirty)["figures"]
    for place in ("inside", "outside"):
        rate, seconds = figures[f"rate-{place}"], figures[f"time-{place}"]
        assert rate * seconds == pytest.approx(WRITTEN * 1.048576)
        # Data, and little else: inodes, the journal.
        assert WRITTEN <= figures[f"synced-{place}"] < 1.1 * WRITTEN
        # What the disk took while they wrote is the most of it.
        assert figures[f"wkb-{place}"] * seconds / 1024 <= figures[f"synced-{place}"]
        assert sum(
            figures[f"{share}-{place}"] for share in ("user", "system", "iowait", "idle")
        ) == (pytest.approx(100))


def test_the_group_reclaims_what_it_may_not_keep(dirty: Path) -> None:
    figures = in_tables(dirty)
    assert figures["killed-inside"] == 0
    assert 0 < figures["dirty-most"] <= LIMIT and figures["writeback-most"] <= LIMIT
    pages = figures["memcg-pages-inside"]
    assert 0.8 * (WRITTEN - LIMIT) * 256 <= pages <= 1.2 * WRITTEN * 256
    assert 1 <= figures["memcg-reclaims-inside"] <= pages
    # Nobody else is in a group that is full.
    assert pages >= 0.95 * int(last(dirty, "trace")["memcg_reclaim_pages"])
    assert figures["memcg-reclaims-outside"] < 0.1 * figures["memcg-reclaims-inside"]
    for place in ("inside", "outside"):
        assert {f"{key}-{place}" for key in ("pg-stall", "pg-wait", "ksd-stall", "ksd-wait")} <= (
            figures.keys()
        )


def test_the_version_is_told(dirty: Path) -> None:
    about = meta(dirty)
    left_open = "version=any" in about["parameters"]["load"]
    assert about["figures"]["version"] == (2 if left_open else 1)
    settled = "control groups of version 2" if left_open else None
    assert about["workload"].get("settled") == settled


def test_its_swap_is_the_one_that_was_asked_for(dirty: Path) -> None:
    swap = meta(dirty)["swap"]
    is_new = meta(dirty)["figures"]["version"] == 2
    assert swap["kind"] == ("zswap" if is_new else "none")
    assert (swap["size_kib"] > 0) == is_new


def test_the_heartbeats_inside_and_outside_beat(dirty: Path) -> None:
    run = dirty / "one" / "1"
    elapsed = json.loads((run / "status.json").read_text())["elapsed_s"]
    for stream in ("heartbeat", "heartbeat-inside"):
        beats = (run / f"latency-{stream}.log").read_text().count(" beat ")
        assert beats == pytest.approx(10 * elapsed, rel=0.1)
    figures = in_tables(dirty)
    for place in ("inside", "outside"):
        late = figures[f"late-{place}"]
        assert 0 < late < 1 and (figures[f"missed-{place}"] > 0) == (late > 0.1)


def test_the_tables_are_in_the_summary(dirty: Path) -> None:
    figures = meta(dirty)["figures"]
    said = (dirty / "report" / "summary.txt").read_text()
    for table in meta(dirty)["workload"]["tables"]:
        assert f"{table['title']}:" in " ".join(said.split())
    (line,) = (one for one in said.splitlines() if one.startswith("inside, dd 1"))
    assert float(line.split()[-2]) == pytest.approx(figures["time-inside-1"], rel=0.01)
