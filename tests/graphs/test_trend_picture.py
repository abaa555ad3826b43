# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m graphs --trend: its files, its picture, its usage errors."""

import json
import math
import struct
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.figures.metrics import PRIMARY
from analysis.trends.tracks import Point
from analysis.trends.trend import Trend, judge_track
from analysis.verdicts.verdict import Sample
from benchmarks.synthetic_results.make import make_campaign
from errors import UserError
from graphs.__main__ import main
from graphs.pictures import trend as picture
from graphs.pictures.style import WIDTH_PX
from tests.support.verdicts import campaign

FACTORS = {6: 1.5, 20: 0.5, 21: 2.0}


def trend_of(kernels: int, tracks: int = 1, label: str = "6.12.{}") -> Trend:
    def points() -> list[Point]:
        level, found = 100.0, []
        for n in range(kernels):
            level *= FACTORS.get(n, 1.0)
            runs = [level + 5 * run + n % 3 for run in range(5)]
            if n == 2:
                runs[-1] = math.inf
            found.append(Point(str(n), label.format(n), None, Sample(tuple(runs))))
        return found

    each = [judge_track(f"t{n}", PRIMARY, points(), 0.05 / tracks, 0.1) for n in range(tracks)]
    return Trend("version", 0.05, 0.1, each, [], [])


def size_of(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.parametrize("kernels", [1, 2, 3, 12, 40, 150])
def test_it_is_drawn_with_few_and_many_kernels(tmp_path: Path, kernels: int) -> None:
    width, height = size_of(picture.draw(trend_of(kernels), tmp_path / "trend.png"))
    assert width == WIDTH_PX and 300 < height < 500


def test_each_track_has_a_panel_and_strange_names_are_drawn(tmp_path: Path) -> None:
    _, one = size_of(picture.draw(trend_of(12), tmp_path / "1.png"))
    _, three = size_of(picture.draw(trend_of(12, 3), tmp_path / "3.png"))
    assert three > 2 * one
    strange = trend_of(12, label="$\\frac{{ \u202e" + 300 * "x" + "{}")
    assert size_of(picture.draw(strange, tmp_path / "s.png"))[1] < 700


def test_the_texts_do_not_lie_on_each_other() -> None:
    """Three changes close to each other: their words are on lines of their own."""
    figure = picture._figure(trend_of(40))
    axes = figure.axes[0]
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]
    boxes = [text.get_window_extent(renderer) for text in axes.texts]
    assert len(boxes) == 3
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = campaign(tmp_path / "1", {"6.1": [100.0, 101.0]})
    second = campaign(tmp_path / "2", {"6.12": [102.0, 103.0]})
    out = tmp_path / "out"
    assert main(["--trend", str(first), str(second), "-o", str(out)]) == 0
    names = ["trend.png", "trend.txt", "trend.json"]
    assert capsys.readouterr().out.splitlines() == [str(out / name) for name in names]
    found = json.loads((out / "trend.json").read_text())
    assert [one["label"] for one in found["tracks"][0]["points"]] == ["6.1", "6.12"]
    assert "No change is established among 2 kernels" in (out / "trend.txt").read_text()
    assert main(["--trend", str(first)]) == 0
    assert (first / "report" / "trend.png").is_file()


def test_of_whose_plan_nothing_is_known_and_of_hangs_too(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 3, 2)  # the last one's last run hangs
    (folder / "plan.toml").unlink()
    assert main(["--trend", str(folder)]) == 0
    assert "Failed, counted as the worst: 7.2/2" in (folder / "report" / "trend.txt").read_text()


def test_wrong_usage_and_no_folder_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path / "1", {"6.1": [100.0]})
    for words, why in (
        ([str(folder), str(folder)], "several go with --trend"),
        (["--trend", str(folder), str(folder)], "say where with -o"),
        (["--trend"], "give either DIR or --check"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 2 and why in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: File exists"):
        main(["--trend", str(folder), "-o", str(tmp_path / "file")])
