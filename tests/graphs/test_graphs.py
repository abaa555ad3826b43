# SPDX-License-Identifier: GPL-2.0-or-later
"""The pictures and the report: what is drawn, what is left when something is missing, no code."""

import io
import json
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from analysis.reading.load import load_campaign
from analysis.reading.words import safe_line, short_label
from analysis.verdicts.choice import SHOWN, extremes, median_run
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import (
    line_log,
    make_campaign,
    make_run,
    meta,
    table,
    write_run,
)
from errors import UserError
from graphs.__main__ import main
from graphs.pictures import classical, comparison
from graphs.pictures.classical import quoted
from graphs.pictures.style import OKABE_ITO, OPEN, VERDICTS, fitted, fitted_label, text_width
from graphs.report import Part, timeline_runs

needs_gnuplot = pytest.mark.skipif(shutil.which("gnuplot") is None, reason="no gnuplot")
HOSTILE = "`touch owned` $x^{_ @print \"'\\n';system('touch owned')\n\x1b<script>&%d \ud800{/=50 W}"
VERDICT_FILES = {
    *("compare.txt", "compare.csv", "compare.json", "junit.xml"),
    *("comparison.png", "index.html"),
}


def size(picture: Path) -> tuple[int, int]:
    raw = picture.read_bytes()
    assert raw.startswith(b"\x89PNG") and len(raw) > 4000
    width, height = struct.unpack(">II", raw[16:24])
    return width, height


def names(folder: Path) -> set[str]:
    """What a user sees in the folder."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def short_run(run: Path, stall: float, state: str = "completed", label: str = "") -> Path:
    """A run of one gitk with one stall of so many seconds."""
    facts = meta(label or run.parent.name, parameters={"gitk": 1})
    log = line_log([(0.1, "x"), (stall, "x"), (0.1, "x")], 0.1)
    return write_run(run, {"meta.json": json.dumps(facts), "latency-gitk-1.log": log}, state)


def short_campaign(folder: Path, variants: int, runs: int) -> Path:
    """Variant v01 stalls for 2 s a run and a little more each run, v02 for 4 s, and so on."""
    for index in range(1, variants + 1):
        for n in range(1, runs + 1):
            short_run(folder / f"v{index:02d}" / str(n), 2 * index + 0.1 * n)
    return folder


def has_colour(pixels: np.ndarray, colour: str) -> int:
    """How many of the picture's pixels are of that colour."""
    near = np.abs(pixels[..., :3] - np.array(to_rgb(colour))).max(axis=-1) < 0.02
    return int(near.sum())


@needs_gnuplot
def test_a_run_gives_every_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path / "c", 1)
    assert main([str(tmp_path / "c")]) == 0
    report = tmp_path / "c" / "report"
    printed = capsys.readouterr().out.splitlines()
    assert {Path(path).name for path in printed} == names(report)
    assert names(report) > VERDICT_FILES | {"summary.txt", "bug-report.tar.gz"}
    assert "details.txt" not in names(report)  # summary.txt is all that there is of one run
    for picture in report.glob("*.png"):
        assert size(picture)[0] == 1100
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
    for picture in (tmp_path / "out").glob("*.png"):
        assert size(picture)[0] == 1100


def test_no_glyph_that_gnuplots_font_may_lack_gets_there() -> None:
    assert quoted("größer 日本\u0301") == "'größer ???'"


@needs_gnuplot
@pytest.mark.parametrize("text", [HOSTILE, "it's", "a\\", "''", "`id`", "@x", "%s"])
def test_gnuplot_prints_a_quoted_text_as_it_is(text: str, tmp_path: Path) -> None:
    script = f"x = 'macro'\nset print '-'\nprint {quoted(text)}\n"
    done = subprocess.run(
        ["gnuplot", "-"], input=script, capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout == safe_line(text, 400).replace("'", "\u2019") + "\n"
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
    assert "Incomplete, left out: cut/1" in said
    made = sorted(path.name for path in (tmp_path / "report").glob("timeline-*.png"))
    assert made == ["timeline-once-1.png", "timeline-silent-1.png", "timeline-zero-1.png"]
    assert size(tmp_path / "report" / "gitk-latency.png")
    assert size(tmp_path / "report" / "comparison.png")
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
    states = ((9, "completed"), (2, "hung"), (5, "completed"))
    for n, (stall, state) in enumerate(states, 1):
        short_run(tmp_path / "k" / str(n), stall, state)
    campaign = load_campaign(tmp_path)
    chosen = median_run(campaign.runs)
    assert chosen is not None and chosen.number == 1  # 5 s, then 9 s, then the hang
    assert median_run([]) is None
    sources = classical.write(campaign, ["k"], tmp_path, [])
    script = sources[0].read_text()
    assert "'k, run 1 of 3 (median)'" in script and "worst gap 9.0 s; completed" in script
    assert "of each variant the run with the median stalled seconds" in script
    assert "9.100 9.000\n" in (tmp_path / "gitk-latency-01.dat").read_text()
    short_run(tmp_path / "k" / "4", 99, "aborted")
    short_run(tmp_path / "k" / "5", 99, "aborted")
    again = median_run(load_campaign(tmp_path).runs)
    assert again is not None and again.number == 1  # what somebody stopped says nothing


@needs_gnuplot
def test_of_many_variants_the_extremes_are_drawn_and_the_picture_says_so(tmp_path: Path) -> None:
    campaign = load_campaign(short_campaign(tmp_path / "c", 20, 1))
    order = [f"v{n:02d}" for n in (10, *range(1, 10), *range(11, 21))]
    medians = {one: campaign.variants()[one][0] for one in order}
    shown = extremes(medians)
    assert shown == ["v10", "v01", "v02", "v03", "v04", "v05", *(f"v{n}" for n in range(15, 21))]
    sources = classical.write(campaign, order, tmp_path, [])
    assert len([path for path in sources if path.suffix == ".dat"]) == SHOWN == 12
    for script in sources[:2]:
        text = script.read_text()
        assert "12 of 20 variants shown: the baseline, the 5 that stalled least" in text
    styles = {line.split("lw 2.5 ")[1].split(" title")[0] for line in _curves(sources[1])}
    assert len(styles) == SHOWN  # no two alike
    for picture in classical.draw(sources):
        assert size(picture)[1] < 1200
    compared = compare(campaign, baseline="v10")
    width, height = size(comparison.draw(compared, tmp_path / "comparison.png"))
    assert (width, height) < (1101, 800)


def _curves(script: Path) -> list[str]:
    last = script.read_text().rsplit("\nplot ", 1)[1]
    return [line for line in last.split(", \\\n") if "smooth bezier" in line or "lw 2.5" in line]


@pytest.mark.parametrize("text", ["W" * 200, "i" * 200, "größer " * 20, "\u202e" * 90])
def test_a_text_that_is_too_wide_is_cut(text: str) -> None:
    cut = fitted(text, 200, 9, 100)
    assert text_width(cut, 9, 100) <= 200
    assert len(cut) > 10 and cut.endswith("..")
    assert fitted("6.12", 200, 9, 100) == "6.12"
    assert fitted("6.1", -20, 9, 100) == fitted_label("6.1", 1, 9, 100) == "6.1"
    label = fitted_label(text, 200, 9, 100)
    assert text_width(label, 9, 100) <= 200 and len(label) > 10 and ".." in label


def test_labels_that_are_cut_keep_what_tells_them_apart() -> None:
    labels = [f"6.12.118-zram-{name}" for name in ("swappiness-10", "swappiness-180", "memory-low")]
    for cut in (
        [short_label(label, 22) for label in labels],
        [fitted_label(label, 130, 9, 100) for label in labels],
    ):
        assert len(set(cut)) == 3 and all(".." in label for label in cut)
        assert all(label.startswith("6.12.118") for label in cut)
    assert [len(short_label(labels[0], limit)) for limit in (5, 22, 23, 99)] == [5, 22, 23, 27]
    assert short_label("6.12.118-zram", 13) == "6.12.118-zram"


@needs_gnuplot
def test_long_labels_cover_nothing(tmp_path: Path) -> None:
    for n in range(1, 8):
        short_run(tmp_path / f"v{n}" / "1", n, label=f"{n}" + "W" * 300)
    assert main([str(tmp_path)]) == 0
    for name in ("gitk-latency.png", "gitk-latency-smooth.png", "comparison.png"):
        pixels = imread(tmp_path / "report" / name)[..., :3]
        # 6 pixels at each side: a text that was cut off there would leave some of them dark.
        edges = np.concatenate((pixels[:, :6], pixels[:, -6:]), axis=1)
        assert edges.min() > 0.9, name
    # Between the titles of the sawtooth's two columns as well.
    titles = imread(tmp_path / "report" / "gitk-latency.png")[46:80, :, :3]
    assert titles[:, 552:572].min() > 0.9 > titles[:, 572:].min()


def test_the_comparison_shows_runs_failures_and_verdicts(tmp_path: Path) -> None:
    for n in range(1, 8):
        short_run(tmp_path / "old" / str(n), 100 + n)
        short_run(tmp_path / "new" / str(n), 50 + n)
        short_run(tmp_path / "odd" / str(n), 80, "hung" if n < 3 else "completed")
    compared = compare(load_campaign(tmp_path), baseline="old")
    assert compared.variants == ["old", "new", "odd"]
    assert compared.primary["new"].verdict == "improved"
    picture = comparison.draw(compared, tmp_path / "comparison.png")
    width, height = size(picture)
    assert width == 1100 and 300 < height < 620
    pixels = imread(picture)
    top, row = comparison.HEAD, 70
    for index in range(3):
        rows = pixels[top + index * row : top + (index + 1) * row]
        seconds = rows[:, comparison.SECONDS[0] : comparison.SECONDS[1]]
        for other, colour in enumerate(OKABE_ITO[:3]):
            assert (has_colour(seconds, colour) > 25) == (other == index)
        failed = rows[:, slice(*comparison.FAILED)]
        assert (has_colour(failed, OPEN) > 30) == (index == 2)  # '✕ 2 hung'
        words = rows[:, comparison.WORDS[0] :]
        assert (has_colour(words, VERDICTS["improved"][0]) > 30) == (index == 1)
    twelve = compare(load_campaign(short_campaign(tmp_path / "c", 12, 1)))
    assert size(comparison.draw(twelve, tmp_path / "twelve.png")) == (1100, 592)


def two_machines(folder: Path) -> Path:
    for label, cpus in (("a", 2), ("b", 4)):
        facts = json.dumps(meta(label, cpus=cpus, parameters={"gitk": 1}))
        (short_run(folder / label / "1", 3) / "meta.json").write_text(facts)
    return folder


@needs_gnuplot
def test_what_cannot_be_compared_is_still_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    two_machines(tmp_path)
    assert main([str(tmp_path), "--force"]) == 0
    report = tmp_path / "report"
    forced = (report / "summary.txt").read_text()
    assert "FORCED" in forced and "not comparable" in " ".join(forced.split())
    assert names(report) > VERDICT_FILES
    with_facts = size(report / "comparison.png")[1]
    capsys.readouterr()
    with pytest.raises(UserError, match="--force") as refused:
        main([str(tmp_path)])
    assert "\n" not in str(refused.value)
    text = (report / "summary.txt").read_text()
    assert "Not compared:" in text and "FORCED" not in text
    # The forced verdicts of before are gone, the pictures of the runs are there and were printed.
    assert not names(report) & (VERDICT_FILES | {"bug-report.tar.gz"})
    left = {"summary.txt", "details.txt", "timeline-a-1.png", "timeline-b-1.png"}
    assert names(report) > left | {"gitk-latency.png"}
    assert {Path(line).name for line in capsys.readouterr().out.splitlines()} == names(report)
    (tmp_path / "b" / "1" / "meta.json").write_text(
        json.dumps(meta("b", cpus=2, parameters={"gitk": 1}))
    )
    assert main([str(tmp_path)]) == 0
    assert size(report / "comparison.png")[1] == with_facts - 18  # no line that says FORCED


def test_an_unknown_baseline_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    short_campaign(tmp_path, 2, 1)
    with pytest.raises(UserError, match="--baseline v3: no such variant"):
        main([str(tmp_path), "--baseline", "v3"])
    assert not (tmp_path / "report").exists()


def test_without_gnuplot_everything_else_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_campaign(tmp_path / "c", 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="gnuplot is missing"):
        main([str(tmp_path / "c")])
    report = names(tmp_path / "c" / "report")
    assert report > VERDICT_FILES | {"bug-report.tar.gz", "timeline-6.1-1.png"}
    assert "gitk-latency.gp" in report and "gitk-latency.png" not in report


@needs_gnuplot
def test_only_what_an_earlier_report_made_is_removed(tmp_path: Path) -> None:
    short_campaign(tmp_path, 3, 1)
    assert main([str(tmp_path)]) == 0
    report = tmp_path / "report"
    assert "timeline-v03-1.png" in names(report) and "gitk-latency-03.dat" in names(report)
    for mine in ("timeline-mine-1.png", "notes.txt"):
        (report / mine).write_text("mine")
    with (report / ".made-by-graphs").open("a") as listed:
        listed.write("notes.txt\n../v01/1/status.json\n")  # as a stranger's results may say
    shutil.rmtree(tmp_path / "v03")
    assert main([str(tmp_path)]) == 0
    assert not names(report) & {"timeline-v03-1.png", "gitk-latency-03.dat"}
    assert (report / "timeline-mine-1.png").read_text() == "mine"
    assert (report / "notes.txt").exists() and (tmp_path / "v01" / "1" / "status.json").exists()


@needs_gnuplot
def test_nothing_is_written_through_a_link_in_the_report(tmp_path: Path) -> None:
    short_campaign(tmp_path / "c", 2, 1)
    report = tmp_path / "c" / "report"
    report.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("summary.txt", "comparison.png", "gitk-latency.gp", "index.html"):
        (report / name).symlink_to(victim)
    (report / ".made-by-graphs").symlink_to(victim)
    assert main([str(tmp_path / "c")]) == 0
    assert victim.read_text() == "precious"
    assert not any(path.is_symlink() for path in report.iterdir())


@needs_gnuplot
def test_a_bundle_gives_the_same_table_and_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short_campaign(tmp_path / "c", 2, 2)
    assert main([str(tmp_path / "c")]) == 0
    packed = tmp_path / "sent.tar.gz"
    shutil.copy(tmp_path / "c" / "report" / "bug-report.tar.gz", packed)
    capsys.readouterr()
    assert main([str(packed)]) == 0
    assert f"the report goes to {tmp_path / 'sent-report'}" in capsys.readouterr().err
    table_of = [tmp_path / "c" / "report" / "compare.csv", tmp_path / "sent-report" / "compare.csv"]
    assert table_of[0].read_text() == table_of[1].read_text()
    assert main(["--check", str(packed)]) == 0
    altered = tmp_path / "altered.tar.gz"
    with tarfile.open(packed) as old, tarfile.open(altered, "w:gz") as new:
        for member in old:
            content = b"" if (file := old.extractfile(member)) is None else file.read()
            if member.name.endswith("compare.csv"):
                content = content.replace(b"undecided", b"regressed")
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    capsys.readouterr()
    assert main(["--check", str(altered)]) == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "compare.csv" in lines[0]


def test_either_results_or_a_bundle_to_check(tmp_path: Path) -> None:
    for arguments in ([], [str(tmp_path), "--check", str(tmp_path)]):
        with pytest.raises(SystemExit) as refused:
            main(arguments)
        assert refused.value.code == 2


def test_of_many_runs_only_the_median_ones_have_a_timeline(tmp_path: Path) -> None:
    campaign = load_campaign(short_campaign(tmp_path, 13, 3))
    order = list(campaign.variants())
    few = timeline_runs(Part("", campaign, order), "few")
    assert len(few) == SHOWN and {run.number for run in few} == {2}
    assert len(timeline_runs(Part("", campaign, order), "all")) == 39
    some = load_campaign(tmp_path / "v01")
    assert [run.number for run in timeline_runs(Part("", some, ["v01"]), "few")] == [1, 2, 3]


@needs_gnuplot
def test_long_work_says_what_it_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short_campaign(tmp_path, 1, 37)
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().err
    assert "graphs: comparing 37 runs …" in said and "graphs: packing the bundle …" in said
    assert "timelines of 1 of 37 runs drawn (--timelines all: of each)" in said
    assert [path.name for path in tmp_path.glob("report/timeline-*")] == ["timeline-v01-19.png"]


def test_a_report_that_is_a_link_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = make_campaign(tmp_path / "c", 2, 1)
    (tmp_path / "target").mkdir()
    (campaign / "report").symlink_to(tmp_path / "target")
    with pytest.raises(UserError, match="report: is a link, not followed"):
        main([str(campaign)])
    assert list((tmp_path / "target").iterdir()) == []
    assert capsys.readouterr().out == ""
