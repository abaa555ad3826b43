# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload with figures and tables of its own, from its runs to every text, page and bundle."""

import json
import re
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.text import compare_text, workload_tables
from analysis.text.summary_files import details, summary, try_compare
from analysis.verdicts import export
from analysis.verdicts.choice import extremes, median_run
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.hostile import IMAGE, SCRIPT
from contract.workload import FigureTable, Late, TableRow
from graphs.bundle import manifest
from graphs.page import chart_data, page
from graphs.pictures import classical
from graphs.report import make_report
from tests.support.workloads import DEAD, DIRTY, figures_of, workload_campaign, workload_run

RUNS: dict[str, list[float | str]] = {
    "6.12": [40.0, 41.0, 42.0, 43.0, 44.0],
    "7.2": [DEAD, 50.0, 51.0, 52.0, 53.0, "hung"],
}
FORM = """\
Two dd of 256 MiB, inside and outside the cgroup (6.12, mean of 5 runs):
                 s   MB/s
inside, dd 1  41.0   6.25
inside, both  42.0  12.20
outside          -
"""
TURNED = """\
               inside, dd 1        inside, both         outside
variant  runs             s  MB/s             s   MB/s        s
6.12     5             41.0  6.25          42.0  12.20        -
7.2      4             50.5  5.07          51.5   9.95        -
"""


def narrow(text: str, width: int = 75) -> str:
    assert all(len(line) <= width for line in text.splitlines())
    return text


def test_one_run_has_its_table_and_its_figures(tmp_path: Path) -> None:
    workload_run(tmp_path / "6.12" / "1", figures_of(40.0))
    text = narrow(summary(load_campaign(tmp_path)))
    assert "inside, dd 1  39.0   6.56\ninside, both  40.0  12.80\noutside          -\n" in text
    told = " ".join(text.split())
    assert "measured both dd inside the cgroup: 40.0 s" in told
    assert "measured rate inside the cgroup: 12.80 MB/s" in told
    assert "% of the time, at worst for 3.0 s (heartbeat-inside). The stalls" in told
    assert "of two heartbeats add up to 5.0 s; each of them ran for" in told
    assert "workload two dd in a cgroup of 100 MiB, then the same two outside it" in told
    assert "heartbeat-inside 1 of 21 deadlines missed by more than 0.1 s" in told
    assert "audio" not in told
    (tmp_path / "6.12" / "2").mkdir()
    workload_run(tmp_path / "6.12" / "2", {})
    assert "both dd inside the cgroup: not available" in details(load_campaign(tmp_path))


def test_the_summary_has_the_table_of_each_variant(tmp_path: Path) -> None:
    campaign = load_campaign(workload_campaign(tmp_path, RUNS))
    text = narrow(summary(campaign, try_compare(campaign)))
    assert FORM in text and "(7.2, mean of 4 runs):" in text
    assert re.search(r"^variant +run +ended +frozen +worst +stalled +primary$", text, re.MULTILINE)
    assert re.search(r"^6\.12 +1 +completed +\d+ % +3\.0 s +5\.0 s +40\.0$", text, re.MULTILINE)
    assert re.search(r"^7\.2 +1 +panicked +- +- +- +-$", text, re.MULTILINE)
    assert "gitk" not in text
    assert "primary: both dd inside the cgroup s." in " ".join(text.split())


def test_compare_has_a_row_for_each_variant(tmp_path: Path) -> None:
    compared = compare(load_campaign(workload_campaign(tmp_path, RUNS)))
    text = narrow(compare_text.text(compared), 100)
    assert TURNED in text and "gitk" not in text
    assert "workload ended after s" in text and "heartbeat's done" not in text
    # Where the columns are too many, a column for each variant.
    lines = list(workload_tables.variant_lines(compared, compared.variants, 40))
    assert re.search(r"^inside, dd 1, MB/s +6\.25 +5\.07$", "\n".join(lines), re.MULTILINE)


def test_the_change_of_the_mean_is_a_ratio_and_a_word(tmp_path: Path) -> None:
    """Seconds and files/s of three kernels: 98.18 / 78.04 = 1.258, 90.9 / 78.04 = 1.165."""
    rows = (TableRow("del", ("del", "rate", "n")),)
    table = FigureTable("SeqCreate", ("s", "1/s", "n"), rows, ("lower", "higher", ""))
    told = replace(DIRTY, tables=(table,), primary="stalled").as_meta()
    seconds = {"revert": 78.04, "base": 98.18, "rik": 90.90}
    for variant, each in seconds.items():
        for number in (1, 2):
            figures = {"del": each, "rate": 1000.0 * each, "n": 5.0}
            workload_run(tmp_path / variant / str(number), figures, workload=told)
    text = compare_text.text(compare(load_campaign(tmp_path), baseline="revert"))
    changed = r"98\.2 \(1\.26x worse\) +98,180 \(1\.26x better\)"
    assert re.search(rf"^base +2 +{changed} +5$", text, re.MULTILINE)
    assert re.search(r"^revert +2 +78\.0 +78,040 +5$", text, re.MULTILINE)
    assert re.search(r"^rik +2 +90\.9 \(1\.16x worse\) ", text, re.MULTILINE)
    assert "(x): the ratio of the mean to revert's." in text
    alone = workload_tables.by_variant(compare(load_campaign(tmp_path / "base")), ["base"])
    assert alone[0].rows == [["base", "2", "98.2", "98,180", "5"]] and not alone[0].change


def test_a_kill_of_a_run_that_failed_by_it_is_in_the_table(tmp_path: Path) -> None:
    group = FigureTable("The cgroup", ("OOM kills",), (TableRow("inside", ("killed",)),))
    tables = (*DIRTY.tables, replace(group, of_failed=True))
    told = replace(DIRTY, tables=tables).as_meta()
    for number, state in enumerate(("completed", "oom", "completed"), 1):
        figures = figures_of(40.0) | {"killed": 2.0 * (state == "oom")}
        workload_run(tmp_path / "a" / str(number), figures, state, told)
        workload_run(tmp_path / "b" / str(number), figures_of(40.0) | {"killed": 0}, workload=told)
    campaign = load_campaign(tmp_path)
    text = summary(campaign, try_compare(campaign))
    assert "The cgroup (a, mean of 3 runs, and of those that failed):\n" in text
    assert re.search(r"^inside +0\.667$", text, re.MULTILINE)
    assert "outside the cgroup (a, mean of 2 runs):" in " ".join(text.split())
    text = compare_text.text(compare(campaign, baseline="b"))
    assert "The cgroup (means of the runs that ended, and of those that failed):" in text
    assert re.search(r"^a +3 +0\.667$", text, re.MULTILINE)
    assert re.search(r"^a +2 +39\.0 ", text, re.MULTILINE)


def test_how_late_each_heartbeat_was_is_in_a_table(tmp_path: Path) -> None:
    streams = {"inside": "heartbeat-inside", "outside": "heartbeat", "no": "heartbeat-none"}
    late = {
        row: (Late(f"late-{row}", name, "worst"), Late(f"missed-{row}", name, "missed"))
        for row, name in streams.items()
    }
    rows = tuple(TableRow(row, tuple(one.key for one in late[row])) for row in late)
    beats = FigureTable("Heartbeats", ("worst s", "missed"), rows)
    told = replace(DIRTY, tables=(beats,), late=tuple(one for two in late.values() for one in two))
    for number in (1, 2):
        workload_run(tmp_path / "a" / str(number), figures_of(40.0), workload=told.as_meta())
    campaign = load_campaign(tmp_path)
    text = summary(campaign, try_compare(campaign))
    assert re.search(r"^inside +2\.90 +1\noutside +1\.90 +1$", text, re.MULTILINE)
    assert re.search(r"^no +- +-$", text, re.MULTILINE)
    # What lost lines could hide is not known.
    (tmp_path / "a" / "2" / "latency-heartbeat.log").unlink()
    campaign = load_campaign(tmp_path)
    text = summary(campaign, try_compare(campaign))
    assert re.search(r"^outside +1\.90 \(1\) +1 \(1\)$", text, re.MULTILINE)


def test_a_mean_of_fewer_runs_says_so(tmp_path: Path) -> None:
    workload_campaign(tmp_path, {"a": [40.0, 42.0, 44.0]})
    lacking = {key: value for key, value in figures_of(44.0).items() if key != "rate-inside-1"}
    workload_run(tmp_path / "a" / "3", lacking | {"time-outside": 3.25})
    campaign = load_campaign(tmp_path)
    text = summary(campaign, try_compare(campaign))
    assert "inside, dd 1     41.0  6.40 (2)\n" in text
    assert "outside       3.2 (1)\n" in text
    assert text.count(workload_tables.FEWER) == 1


def test_columns_that_do_not_fit_stand_below(tmp_path: Path) -> None:
    heads = tuple(f"a column of number {n}" for n in range(9))
    keys = tuple(f"k{n}" for n in range(9))
    table = FigureTable("Many", heads, (TableRow("a row with a name", keys),))
    told = replace(DIRTY, tables=(table,), primary="stalled").as_meta()
    for variant in ("a", "b"):
        figures = {key: 1000.5 + n for n, key in enumerate(keys)}
        workload_run(tmp_path / variant / "1", figures, workload=told)
    campaign = load_campaign(tmp_path)
    text = narrow(summary(campaign, try_compare(campaign)))
    assert text.count("a row with a name") >= 4 and "1,008" in text.replace("1,009", "1,008")
    text = narrow(compare_text.text(compare(campaign)), 100)
    assert "a row with a name, a column of number" in text


@pytest.mark.parametrize("primary", ["time-inside", "rate-inside"])
def test_what_is_shown_is_chosen_by_the_primary_metric(tmp_path: Path, primary: str) -> None:
    # They all stall alike, and their order is not that of the figure.
    seconds = {f"v{n:02d}": 20.0 + n * 5 % 14 for n in range(14)}
    runs: dict[str, list[float | str]] = {
        one: [each, "hung", each - 0.1, each + 0.1] for one, each in seconds.items()
    }
    workload = replace(DIRTY, primary=primary).as_meta()
    campaign = load_campaign(workload_campaign(tmp_path, runs, workload))
    medians = {one: run for one in seconds if (run := median_run(campaign.variants()[one]))}
    assert [run.number for run in medians.values()] == [4] * 14
    ranked = sorted(list(seconds)[1:], key=seconds.__getitem__)
    assert set(seconds) - set(extremes(medians)) == {ranked[5], ranked[6]}
    words = "the baseline, the 5 best and the 6 worst by the primary metric"
    sources = classical.write(campaign, list(seconds), tmp_path, [])
    assert words in sources[0].read_text()
    assert "the run with the median primary metric" in sources[0].read_text()
    assert "the one with the median primary metric" in " ".join(details(campaign).split())
    html = page.write(compare(campaign), tmp_path / "index.html").read_text()
    assert words in html and "median run by primary metric" in html


def test_a_run_without_the_primary_figure_stands_for_no_variant(tmp_path: Path) -> None:
    workload_campaign(tmp_path, {"a": [40.0, 50.0]})
    workload_run(tmp_path / "a" / "3", {})
    chosen = median_run(load_campaign(tmp_path).runs)
    assert chosen is not None and chosen.number == 2
    only = median_run(load_campaign(tmp_path / "a" / "3").runs)
    assert only is not None and only.number == 3


@pytest.mark.parametrize("lines", [0, 1_000_000])
def test_the_page_says_that_lines_on_a_clock_are_thinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setattr(chart_data, "WHOLE_LINES", lines)
    compared = compare(load_campaign(workload_campaign(tmp_path, {"a": [40.0]})))
    html = page.write(compared, tmp_path / "index.html").read_text()
    assert "Every line of every" not in html and ("Thinned out" in html) == (lines == 0)
    thinned = "every gap" if lines == 0 else "the lines after"
    assert f"one line each 0.1 s {thinned}" in html


def test_the_page_has_the_tables_and_the_workloads_words(tmp_path: Path) -> None:
    hostile = replace(
        DIRTY, summary=SCRIPT, subject=IMAGE, tables=(replace(DIRTY.tables[0], title=SCRIPT),)
    ).as_meta()
    for name, workload in (("plain", DIRTY.as_meta()), ("hostile", hostile)):
        compared = compare(load_campaign(workload_campaign(tmp_path / name, RUNS, workload)))
        html = page.write(compared, tmp_path / f"{name}.html").read_text()
        data = re.search(r'id="campaign-data">(.*?)</script>', html, re.DOTALL)
        assert data is not None
        campaign = json.loads(data[1])
        assert campaign["metrics"][0]["key"] == "time-inside"
        assert campaign["values"]["time-inside"][:2] == [40, 41]
        assert "window.owned = 1</script>" not in html and "<img src=x" not in html
        assert "Both dd inside the cgroup (s, lower is better)" in html
        if name == "plain":
            assert campaign["words"]["subject"] == "a heartbeat"
            assert "the gap before each line of one heartbeat of each variant" in html
            body = html[: html.index("<script")]
            assert '<th scope="col"><bdi>inside, dd 1, MB/s</bdi></th>' in body
            assert "<td>6.25</td>" in body and "gitk" not in body


@pytest.mark.parametrize("hostile", [False, True])
def test_the_report_and_what_the_bundle_says_again(tmp_path: Path, hostile: bool) -> None:
    told = replace(DIRTY, subject=IMAGE, tables=(replace(DIRTY.tables[0], title=SCRIPT),))
    workload = (told if hostile else DIRTY).as_meta()
    campaign = load_campaign(workload_campaign(tmp_path / "c", RUNS, workload))
    found = make_report(campaign, tmp_path / "report", timelines="few")
    assert not found.errors
    names = {path.name for path in found.made}
    assert {"sawtooth.png", "sawtooth-smooth.gp", "sawtooth-01.dat"} <= names
    assert not any(name.startswith("gitk") for name in names)
    packed = tmp_path / "report" / "bug-report.tar.gz"
    assert not manifest.check(packed)
    with tarfile.open(packed) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
        member = archive.extractfile("bug-report/report.txt")
        assert member is not None
        text = narrow(member.read().decode())
    assert "sawtooth.png" in members
    assert TURNED in text and "gitk" not in text
    if not hostile:
        told_text = " ".join(text.split())
        assert "memcg-dirty: two dd in a cgroup of 100 MiB, then the same two outside" in told_text
        assert "# rises while a heartbeat is silent" in text
    again = compare(load_campaign(packed))
    assert export.csv_text(again) == export.csv_text(compare(campaign))
    assert compare_text.text(again) == compare_text.text(compare(campaign))


def test_a_secret_in_a_description_is_replaced_everywhere(tmp_path: Path) -> None:
    secret = "root@zebrafish-laptop.example.org"
    rows = (TableRow(f"on {secret}", ("time-inside", "rate-inside")),)
    told = replace(
        DIRTY,
        summary=f"run by {secret}",
        figures=(replace(DIRTY.figures[0], title=f"time for {secret}"), DIRTY.figures[1]),
        tables=(replace(DIRTY.tables[0], title=f"Of {secret}", rows=rows),),
    ).as_meta()
    campaign = load_campaign(workload_campaign(tmp_path / "c", RUNS, told))
    make_report(campaign, tmp_path / "report")
    with tarfile.open(tmp_path / "report" / "bug-report.tar.gz") as archive:
        for one in archive.getmembers():
            content = archive.extractfile(one)
            assert content is None or b"zebrafish" not in content.read(), one.name
        assert not any("comparison.png" in name for name in archive.getnames())
