# SPDX-License-Identifier: GPL-2.0-or-later
"""Which host did which run, and a host whose runs differ: summary, page and bug report."""

import json
from pathlib import Path

import pytest

from analysis.figures.by_host import by_host
from analysis.reading.load import load_campaign
from analysis.text.summary_files import summary
from analysis.verdicts.compare import compare
from graphs.page.page import write
from tests.graphs.test_report_text import report
from tests.support.verdicts import campaign

RUNS = {
    "6.12": [100.0, 102.0, 98.0, 150.0, 152.0, 148.0],
    "7.2": [200.0, 205.0, 195.0, 300.0, 301.0, 299.0],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two hosts: the last three runs of each variant were done on beta, and stalled longer."""
    made = campaign(tmp_path / "c", RUNS, clock={"kind": "guest"})
    runs = {f"{one}/{n}": "alpha" if n <= 3 else "beta" for one in RUNS for n in range(1, 7)}
    (made / "hosts.json").write_text(json.dumps({"format": 1, "runs": runs}))
    return made


def test_a_hosts_mean_is_of_ratios_to_its_variants(folder: Path) -> None:
    alpha, beta = by_host(load_campaign(folder))
    assert (alpha.host, beta.host) == ("alpha", "beta")
    assert alpha.runs == [(one, n) for one in RUNS for n in (1, 2, 3)]
    assert alpha.ratio == pytest.approx(0.8) and beta.ratio == pytest.approx(1.2)
    assert alpha.is_far and beta.is_far


def test_hosts_that_agree_are_not_called_different(folder: Path) -> None:
    runs = {f"{one}/{n}": ("alpha", "beta")[n % 2] for one in RUNS for n in range(1, 7)}
    (folder / "hosts.json").write_text(json.dumps({"runs": runs}))
    found = by_host(load_campaign(folder))
    assert not [one.host for one in found if one.is_far]


def test_the_summary_and_the_page_name_hosts_and_the_bug_report_does_not(folder: Path) -> None:
    found = load_campaign(folder)
    text = summary(found)
    assert "beta" in text and "alpha: 6.12 1, 2, 3; 7.2 1, 2, 3" in text
    assert "WARNING: the runs of beta differ" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 75
    html = write(compare(found), folder / "index.html").read_text()
    assert "By host" in html and "<bdi>beta</bdi>" in html
    _, attached = report(folder)
    assert "host 2: 6.12 4, 5, 6; 7.2 4, 5, 6" in attached
    assert "alpha" not in attached and "beta" not in attached


def test_a_campaign_of_one_machine_says_nothing_of_hosts(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", RUNS)
    found = load_campaign(made)
    assert by_host(found) == [] and "host" not in summary(found)
    assert "By host" not in write(compare(found), made / "index.html").read_text()


@pytest.mark.parametrize("text", ["", "[]", '{"runs": 3}'])
def test_a_damaged_list_is_a_problem_and_no_error(folder: Path, text: str) -> None:
    (folder / "hosts.json").write_text(text)
    found = load_campaign(folder)
    assert by_host(found) == [] and "hosts.json: damaged" in found.problems[0]
