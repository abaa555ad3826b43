# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of a campaign of two workloads: pictures, page, bundle of each, and its own words."""

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from graphs.bundle import bundle, manifest
from graphs.page import page
from graphs.pictures.names import OWN, of_campaign
from graphs.report import Report, make_report
from tests.graphs.test_page import Page
from tests.support.mixed import DESKTOP, GROUP, mixed_campaign
from tests.support.workloads import DIRTY, figures_of, workload_campaign, workload_run

TWO_RUNS = (
    {label: runs[:2] for label, runs in DESKTOP.items()},
    {label: GROUP[label][:2] for label in "cd"},
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Report]]:
    folder = mixed_campaign(tmp_path_factory.mktemp("mixed") / "both", *TWO_RUNS)
    yield folder, make_report(load_campaign(folder), folder / "report")


def test_each_workload_has_its_pictures(made: tuple[Path, Report]) -> None:
    folder, report = made
    assert not report.errors
    names = {path.name for path in report.made}
    assert {"comparison-desktop.png", "comparison-memcg-dirty.png"} <= names
    assert {"gitk-latency.png", "sawtooth-memcg-dirty.png", "sawtooth-memcg-dirty-02.dat"} <= names
    assert not names & {"comparison.png", "sawtooth.png"}
    assert len([name for name in names if name.startswith("timeline-")]) == 8
    assert "gitk-1" in (folder / "report" / "gitk-latency.gp").read_text()
    assert "gitk" not in (folder / "report" / "sawtooth-memcg-dirty.gp").read_text()


def test_what_an_earlier_report_made_of_two_goes_with_one(tmp_path: Path) -> None:
    folder = mixed_campaign(tmp_path, {"a": (1.5,)}, {"c": (4.0,)})
    make_report(load_campaign(folder), tmp_path / "report")
    alone = load_campaign(workload_campaign(tmp_path / "x", {"c": (4.0,)}))
    make_report(alone, tmp_path / "report")
    there = {path.name for path in (tmp_path / "report").iterdir()}
    assert "comparison.png" in there and "sawtooth.png" in there
    assert not any("memcg-dirty" in name or "gitk" in name for name in there)


def test_the_page_has_both_in_one_file(made: tuple[Path, Report]) -> None:
    found = Page(made[0] / "report" / "index.html")
    templates = [attributes for tag, attributes in found.elements if tag == "template"]
    assert [one["class"] for one in templates] == ["workload", "workload"]
    links = [one for tag, one in found.elements if tag == "a" and "data-workload" in one]
    assert [one["href"] for one in links] == ["?workload=0", "?workload=1"]
    html = (made[0] / "report" / "index.html").read_text()
    head, first, second = html[html.index("<body>") :].split('<template class="workload">')
    assert "Stalled seconds per run: lower is better" in head and "b: undecided" in head
    assert "Both dd inside the cgroup (s, lower is better)" in head and "d: undecided" in head
    for one, metric in ((first, "stalled"), (second, "time-inside")):
        [data] = re.findall(r'id="campaign-data">(.*?)</script>', one)
        assert f'"metrics":[{{"key":"{metric}"' in data
        assert len(re.findall(r'id="run-data-[0-9]+">', one)) == 4
    assert "Two dd of 256 MiB" in second and "Two dd of 256 MiB" not in head + first


def test_the_bundle_is_read_as_the_campaign_was(made: tuple[Path, Report]) -> None:
    packed = made[0] / "report" / "bug-report.tar.gz"
    assert not manifest.check(packed)
    with tarfile.open(packed) as archive:
        members = {name.partition("/")[2] for name in archive.getnames()}
        member = archive.extractfile("bug-report/report.txt")
        assert member is not None
        text = member.read().decode()
    assert {"a/1/status.json", "d/2/meta.json", "comparison-memcg-dirty.png"} <= members
    assert max(map(len, text.splitlines())) <= 75
    desktop, group, both = (
        text.index(f"\n{name}\n{'=' * len(name)}\n")
        for name in ("desktop", "memcg-dirty", "All workloads")
    )
    assert "stalled s" in text[desktop:group] and "Two dd" not in text[desktop:group]
    assert "What the workload measured" in text[group:both]
    assert text.count("How to reproduce it") == text.count("This bundle") == 1
    reproduced = " ".join(text[both:].split())
    assert "./run_test.sh --plan plan.toml" in reproduced and "The same without" not in reproduced
    assert "workload: memcg-dirty: size=256M; memory 512M" in reproduced
    whole = load_campaign(made[0])
    again, first = compare(load_campaign(packed)), compare(whole)
    assert compare_text.text(again) == compare_text.text(first)
    assert export.csv_text(again) == export.csv_text(first)


def test_a_secret_in_one_is_replaced_and_the_other_stays(tmp_path: Path) -> None:
    folder = mixed_campaign(tmp_path / "c", *TWO_RUNS)
    secret = "root@zebrafish-laptop.example.org"
    (folder / "d" / "2" / "status.json").write_text(
        f'{{"format": 1, "state": "hung", "why": "no word of {secret}"}}'
    )
    (folder / "d").rename(folder / "mail-root@zebrafish.example.org")
    judged = compare(load_campaign(folder), baseline="mail-root@zebrafish.example.org")
    packed = bundle.write(judged, tmp_path)
    with tarfile.open(packed) as archive:
        for one in archive.getmembers():
            content = archive.extractfile(one)
            assert "zebrafish" not in one.name
            assert content is None or b"zebrafish" not in content.read(), one.name
    again = compare(load_campaign(packed))
    assert [len(one.variants) for one in again.each] == [2, 2]


def test_a_page_of_one_has_no_choice(tmp_path: Path) -> None:
    campaign = load_campaign(workload_campaign(tmp_path, {"c": (4.0,)}))
    html = page.write(compare(campaign), tmp_path / "index.html").read_text()
    assert "<template" not in html and "data-workload" not in html


def test_a_bundles_workload_cannot_name_a_file(tmp_path: Path) -> None:
    told = DIRTY.as_meta() | {"name": "../../x y"}
    mixed_campaign(tmp_path, group={})
    for label in "cd":
        workload_run(tmp_path / label / "1", figures_of(40.0), workload=told)
    found = of_campaign(compare(load_campaign(tmp_path)))
    assert "comparison-.._.._x_y.png" in found and not any("/" in name for name in found)
    assert all(OWN.fullmatch(name) for name in found)
