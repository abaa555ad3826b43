# SPDX-License-Identifier: GPL-2.0-or-later
"""The pictures: they are there, they can be made again by hand, and no label runs as code."""

import json
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest

from analysis.load import load_campaign
from analysis.words import plain
from graphs.__main__ import main
from graphs.classical import median_run, quoted
from setup.errors import UserError
from tests.make_results import line_log, make_campaign, make_run, meta, table, write_run

needs_gnuplot = pytest.mark.skipif(shutil.which("gnuplot") is None, reason="no gnuplot")
HOSTILE = "`touch owned` $x^{_ @print \"'\\n';system('touch owned')\n\x1b<script>&%d \ud800{/=50 W}"


def size(picture: Path) -> tuple[int, int]:
    raw = picture.read_bytes()
    assert raw.startswith(b"\x89PNG") and len(raw) > 5000
    width, height = struct.unpack(">II", raw[16:24])
    return width, height


@needs_gnuplot
def test_a_run_gives_every_picture_in_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_campaign(tmp_path / "c", 1)
    begin = time.monotonic()
    assert main([str(tmp_path / "c")]) == 0
    assert time.monotonic() - begin < 15  # 3 s on a machine at rest
    report = tmp_path / "c" / "report"
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == sorted(str(path) for path in report.iterdir())
    for name in ("gitk-latency.png", "gitk-latency-smooth.png", "timeline-6.1-1.png"):
        assert size(report / name)[0] == 1100
    # Again, by hand, as a user would.
    for name in ("gitk-latency", "gitk-latency-smooth"):
        (report / f"{name}.png").unlink()
        done = subprocess.run(
            ["gnuplot", f"{name}.gp"], cwd=report, capture_output=True, text=True, check=True
        )
        assert done.stderr == "" and size(report / f"{name}.png")


@needs_gnuplot
def test_a_label_is_text_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, label in (("a `touch owned` $(b)", HOSTILE), ("b", "'" * 90), ("c", "\\" * 40)):
        run = make_run(tmp_path / "c" / folder / "1", "6.1", seed=3, hung=folder == "b")
        (run / "meta.json").write_text(json.dumps(meta(label)))
    assert main([str(tmp_path / "c"), "-o", str(tmp_path / "out")]) == 0
    assert not list(tmp_path.rglob("owned"))
    assert len(list((tmp_path / "out").glob("timeline-*.png"))) == 3
    assert size(tmp_path / "out" / "gitk-latency.png")


def test_no_glyph_that_gnuplots_font_may_lack_gets_there() -> None:
    assert quoted("größer 日本\u0301") == "'größer ???'"


@needs_gnuplot
@pytest.mark.parametrize("text", [HOSTILE, "it's", "a\\", "''", "`id`", "@x", "%s"])
def test_gnuplot_prints_a_quoted_text_as_it_is(text: str, tmp_path: Path) -> None:
    script = f"x = 'macro'\nset print '-'\nprint {quoted(text)}\n"
    done = subprocess.run(
        ["gnuplot", "-"], input=script, capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == plain(text, 400).replace("'", "\u2019") + "\n"
    assert not list(tmp_path.iterdir())


@needs_gnuplot
def test_little_or_no_data_is_named_and_the_rest_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def facts(label: str) -> dict[str, str | bytes]:
        return {"meta.json": json.dumps(meta(label))}

    samples = table({"elapsed_s": [0.0, 9.0], "late_s": [0.0, 0.0], "pswpin": [1, 2]})
    silent: dict[str, str | bytes] = {"latency-gitk-1.log": "", "vmstat.tsv": samples}
    once: dict[str, str | bytes] = {"latency-gitk-1.log": line_log([(0.1, "x")], 0.0)}
    at_once: dict[str, str | bytes] = {"latency-gitk-1.log": line_log([(0.0, "x")], 0.0)}
    for name, files in (("none", {}), ("silent", silent), ("once", once), ("zero", at_once)):
        write_run(tmp_path / name / "1", {**facts(name), **files}, "lost")
    write_run(tmp_path / "cut" / "1", facts("cut"), None)
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "none: no gitk ran" in said and "none run 1: no data" in said
    assert "incomplete, left out: cut/1" in said
    made = sorted(path.name for path in (tmp_path / "report").glob("timeline-*.png"))
    assert made == ["timeline-once-1.png", "timeline-silent-1.png", "timeline-zero-1.png"]
    assert size(tmp_path / "report" / "gitk-latency.png")
    assert main([str(tmp_path / "none" / "1")]) == 0


def test_without_a_complete_run_or_a_place_to_write_it_says_so(tmp_path: Path) -> None:
    write_run(tmp_path / "k" / "1", {"meta.json": json.dumps(meta("k"))}, None)
    with pytest.raises(UserError, match=r"k/1 \(no status.json\)"):
        main([str(tmp_path)])
    write_run(tmp_path / "k" / "1", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        main([str(tmp_path), "-o", str(tmp_path / "file" / "report")])


def test_the_median_run_is_drawn_and_a_hang_ranks_worst(tmp_path: Path) -> None:
    for n, (gap, state) in enumerate([(9, "completed"), (2, "hung"), (5, "completed")], 1):
        log = line_log([(gap, "x")], 0.0)
        write_run(tmp_path / "k" / str(n), {"latency-gitk-1.log": log}, state)
    runs = load_campaign(tmp_path).runs
    chosen = median_run(runs)
    assert chosen is not None and chosen.number == 1  # 5 s, then 9 s, then the hang
    assert median_run([]) is None
