# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's tables second by second: what its lines said, place beside place."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.figures.meanwhile import lines_of
from analysis.reading.load import load_campaign
from analysis.text import meanwhile
from benchmarks.synthetic_results.make import line_log
from contract.workload import FigureTable, TableRow
from tests.support.workloads import DIRTY, figures_of, workload_run

TABLE = FigureTable(
    "The disk",
    ("w/s", "%util"),
    (TableRow("inside", ("w-in", "util-in")), TableRow("outside", ("w-out", "util-out"))),
)
SAID = (
    "meanwhile w-in=142 util-in=88.5",
    "inside: 17 MiB written in 0.5 s",
    "meanwhile w-in=1.3e+04 util-in=nan other=5",
    "meanwhile w-out=7 util-out=-3",
    "meanwhile",
    "meanwhile w-in",
)
TEXT = """\
a, run 1 of 2 (median)
----------------------
The disk, a row each second:
   inside         outside
      w/s  %util      w/s  %util
1     142   88.5        7      -
2  13,000      -
"""


def run(folder: Path, lines: tuple[str, ...]) -> None:
    told = DIRTY.as_meta() | {"tables": [*DIRTY.as_meta()["tables"], TABLE.as_meta()]}
    workload_run(folder, figures_of(40.0), workload=told)
    (folder / "latency-dirty.log").write_text(line_log([(1.0, line) for line in lines], 0.0))


def test_places_stand_side_by_side(tmp_path: Path) -> None:
    for number in (1, 2):
        run(tmp_path / "a" / str(number), SAID)
    run(tmp_path / "b" / "1", ())
    campaign = load_campaign(tmp_path)
    assert lines_of(campaign.runs[0]) == [
        {"w-in": 142.0, "util-in": 88.5},
        {"w-in": 13000.0, "other": 5.0},
        {"w-out": 7.0},
        {},
    ]
    found = [line.rstrip() for line in meanwhile.text(campaign).splitlines()]
    assert [line.split() for line in found] == [
        line.split() for line in TEXT.replace("run 1 of 2", "run 2 of 2").splitlines()
    ]


@given(st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=60), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_no_line_is_an_error(tmp_path: Path, words: list[str]) -> None:
    run(tmp_path / "a" / "1", tuple(f"meanwhile w-in=1 {one} w-in={one}" for one in words))
    text = meanwhile.text(load_campaign(tmp_path))
    assert text.isprintable() or "\n" in text or not text
