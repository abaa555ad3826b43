# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload lets be drawn over time: known answers, and pictures of 1, 3 and 12 variants."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis.figures.curves import phases, points
from analysis.reading.load import Run, load_campaign
from analysis.reading.workload import read_workload
from benchmarks.synthetic_results.make import line_log
from contract.workload import Curve, Panel
from graphs.bundle.narrow_tables import drawn, narrowed
from graphs.page.run_data import run_block
from graphs.pictures import over_time
from graphs.pictures.panels import ALWAYS, own_panels, panels_of
from graphs.report import make_report
from tests.support.workloads import DIRTY, figures_of, workload_run

CACHED = Panel(
    "cached",
    "objects",
    (
        Curve("xfs_inode", "xfs_inode_active", table="slabinfo"),
        Curve("dentry", "dentry_active", table="slabinfo"),
        Curve("none", "none_active", table="slabinfo"),
    ),
)
STOLEN = Panel("stolen", "pages/s", (Curve("stolen", "pginodesteal", "vmstat", rate=True, per=2),))
FILES = Panel("new files", "1/s", (Curve("files", "files", stream="load", rate=True),))
DRAWN = replace(DIRTY, panels=(CACHED, STOLEN, FILES), phases="load")
SLABS = (
    "elapsed_s\tlate_s\txfs_inode_active\tdentry_active\n"
    "0.500\t0.000\t1000\t2000\n1.000\t0.000\t10\t\n1.500\t0.000\t20\t2100\n"
)
VMSTAT = "elapsed_s\tlate_s\tpginodesteal\n0.250\t0.000\t0\n1.250\t0.000\t400\n"
LINES = (
    *((0.25, "make: begins"), (0.75, "make: files=10 rate=7"), (1.0, "make: files=30")),
    *((1.0, "make: myfiles=5 files=9x"), (0.5, "use: files=0"), (0.5, "use: done")),
)


def drawn_run(folder: Path, told: object = DRAWN.as_meta()) -> Path:
    run = workload_run(folder, figures_of(40.0), workload=told)
    (run / "slabinfo.tsv").write_text(SLABS)
    (run / "vmstat.tsv").write_text(VMSTAT)
    (run / "latency-load.log").write_text(line_log([*LINES], 0.0))
    return run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    drawn_run(tmp_path / "a" / "1")
    return load_campaign(tmp_path).runs[0]


def values(run: Run, curve: Curve) -> tuple[list[float], list[float]]:
    found = points(run, curve)
    assert found is not None
    return found[0].tolist(), found[1].tolist()


def test_a_column_is_drawn_as_it_was_sampled(run: Run) -> None:
    assert values(run, CACHED.curves[0]) == ([0.5, 1.0, 1.5], [1000, 10, 20])
    assert values(run, CACHED.curves[1]) == ([0.5, 1.5], [2000, 2100])
    assert points(run, CACHED.curves[2]) is None
    assert points(run, Curve("x", "MemFree", table="meminfo")) is None


def test_a_rate_is_what_it_grew_a_second(run: Run) -> None:
    assert values(run, STOLEN.curves[0]) == ([0.25, 1.25], [200])


def test_numbers_that_a_stream_prints_are_a_series(run: Run) -> None:
    level = replace(FILES.curves[0], rate=False)
    assert values(run, level) == ([1.0, 2.0, 3.5], [10, 30, 0])
    stamps, rate = values(run, FILES.curves[0])
    assert stamps == [1.0, 2.0, 3.5] and rate[0] == 20 and np.isnan(rate[1])
    assert points(run, replace(level, stream="none")) is None
    assert points(run, replace(level, column="Files")) is None


def test_phases_are_what_the_lines_begin_with(run: Run) -> None:
    assert phases(run) == [(0.25, "make"), (3.5, "use")]


def test_panels_are_read_as_they_were_written() -> None:
    warnings: list[str] = []
    told = json.loads(json.dumps(DRAWN.as_meta()))
    assert read_workload({"workload": told}, [], warnings) == DRAWN and warnings == []
    assert "panels" not in DIRTY.as_meta() and "phases" not in DIRTY.as_meta()


@pytest.mark.parametrize(
    "curve",
    [
        {"table": "passwd"},
        {"table": "", "stream": ""},
        {"column": "../x"},
        {"per": 0},
        {"per": -1},
        {"rate": 1},
    ],
)
def test_a_curve_that_cannot_be_is_left_out(curve: dict[str, object]) -> None:
    bad = CACHED.curves[0].as_meta() | curve
    panel = CACHED.as_meta() | {"curves": [bad, CACHED.curves[1].as_meta()]}
    warnings: list[str] = []
    [found] = read_workload({"workload": {"panels": [panel]}}, [], warnings).panels
    assert found.curves == CACHED.curves[1:2]
    panel["curves"] = [bad]
    assert read_workload({"workload": {"panels": [panel]}}, [], warnings).panels == ()
    assert "panels[0]" in warnings[-1]


def test_page_and_timeline_have_the_panels_of_the_workload(run: Run) -> None:
    assert [one.title for one in panels_of(run)][len(ALWAYS) :] == ["cached", "stolen", "new files"]
    panel = run_block(run, whole=True)["panels"][len(ALWAYS)]
    assert panel["unit"] == "objects"
    assert [one.get("y") for one in panel["curves"]] == [[10000, 100, 200], [20000, 21000], None]


@pytest.mark.parametrize(("variants", "pictures"), [(1, 1), (3, 1), (12, 4)])
def test_pictures_have_three_variants_each(tmp_path: Path, variants: int, pictures: int) -> None:
    for number in range(variants):
        drawn_run(tmp_path / f"v{number:02d}" / "1")
    runs = [(run, 1) for run in load_campaign(tmp_path).runs]
    made = over_time.draw(runs, {run.variant: run.label for run, _ in runs}, tmp_path)
    names = ["over-time.png", *(f"over-time-{n}.png" for n in range(2, pictures + 1))]
    assert [path.name for path in made] == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in made)


def test_a_legend_covers_no_curve_and_is_within_the_picture(run: Run) -> None:
    panels = own_panels(run)
    column = over_time.Column(run, "a", 1, [[c.read(run) for c in one.curves] for one in panels])
    figure = over_time.figure_of([column] * 3, panels, over_time.scale_of([column], len(panels)))
    figure.draw_without_rendering()
    edge = max(axes.get_window_extent().x1 for axes in figure.axes)
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    assert len(legends) == len(panels)
    for legend in legends:
        box = legend.get_window_extent()
        assert box.x0 >= edge and box.x1 <= figure.bbox.x1


def test_a_narrow_bundle_keeps_what_is_drawn(run: Run) -> None:
    raw = b"elapsed_s\tlate_s\tdentry_active\tdentry_objs\n1.0\t0.0\t7\t8\n"
    assert narrowed(raw, drawn(run)) == b"elapsed_s\tlate_s\tdentry_active\n1.0\t0.0\t7\n"
    assert narrowed(raw) == b"elapsed_s\tlate_s\n1.0\t0.0\n"


def test_a_report_has_them_and_forgets_those_of_before(tmp_path: Path) -> None:
    for number in range(4):
        drawn_run(tmp_path / f"v{number}" / "1")
    report = tmp_path / "report"
    assert not make_report(load_campaign(tmp_path), report).errors
    assert (report / "over-time-2.png").exists()
    for number in range(4):
        drawn_run(tmp_path / f"v{number}" / "1", DIRTY.as_meta())
    make_report(load_campaign(tmp_path), report)
    assert not list(report.glob("over-time*"))
