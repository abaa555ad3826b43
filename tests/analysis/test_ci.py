# SPDX-License-Identifier: GPL-2.0-or-later
"""--fail-on and its status; junit.xml."""

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import get_args
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import tomli_w

from analysis.reading.load import load_campaign
from analysis.verdicts import junit
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.fail_on import unwanted
from analysis.verdicts.verdict import Word
from benchmarks.synthetic_results.make import make_campaign
from contract.values import FAIL_ON, VERDICTS
from errors import Exit, UserError
from tests.support.mixed import mixed_campaign
from tests.support.verdicts import campaign

SUITE = Path(__file__).resolve().parents[2]
BASE: list[float | str] = [60.0, 62.0, 63.0, 64.0, 66.0]
MORE: list[float | str] = [90.0, 92.0, 93.0, 94.0, "hung"]
LESS: list[float | str] = [28.0, 30.0, 31.0, 33.0, 35.0]
LIKE: list[float | str] = [50.0, 61.0, 65.0, 67.0, 78.0]
NUMBER = re.compile(r"\d+(\.\d+)?")
ENDS = {"failure", "error", "skipped"}


def judged(folder: Path) -> Compared:
    return compare(load_campaign(folder))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each verdict one but equivalent, and a run that hung."""
    place = tmp_path_factory.mktemp("four")
    plan = {
        "variant": [{"label": one, "kernel": one} for one in "abcd"],
        "run": [{"variant": "b", "number": 1, "date": "2026-11-25T04:25:21+0000"}],
    }
    return campaign(place, {"a": BASE, "b": MORE, "c": LESS, "d": LIKE}, tomli_w.dumps(plan))


def run_compare(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "analysis.compare", *map(str, arguments)]
    return subprocess.run(command, cwd=SUITE, capture_output=True, text=True)


def test_the_words_are_the_verdicts() -> None:
    assert get_args(Word) == VERDICTS and (*VERDICTS, "failed", "unfinished") == FAIL_ON


def test_each_word_finds_its_variants(folder: Path) -> None:
    found = judged(folder)
    assert {one: found.primary[one].verdict for one in "bcd"} == {
        "b": "regressed",
        "c": "improved",
        "d": "undecided",
    }
    assert unwanted(found, []) == unwanted(found, ["equivalent"]) == []
    assert unwanted(found, ["regressed"]) == ["b is regressed (stalled seconds per run)"]
    assert unwanted(found, ["improved"]) == ["c is improved (stalled seconds per run)"]
    assert unwanted(found, ["undecided"]) == ["d is undecided (stalled seconds per run)"]
    assert unwanted(found, ["failed"]) == ["b failed in 1 of 5 runs (hung)"]
    assert len(unwanted(found, FAIL_ON)) == 4


def test_the_baselines_failed_run_counts(tmp_path: Path) -> None:
    found = judged(campaign(tmp_path, {"a": [5.0, "panicked", "hung"], "b": [5.0, 6.0, 7.0]}))
    assert unwanted(found, ["failed"]) == ["a failed in 2 of 3 runs (panicked, hung)"]


def test_a_planned_variant_without_a_run_is_undecided(tmp_path: Path) -> None:
    found = judged(mixed_campaign(tmp_path, more=["gone"]))
    assert unwanted(found, ["undecided"]) == [
        "e is undecided (both dd inside the cgroup)",
        "gone is undecided: it has no run that counts",
    ]
    suite = suites(junit.text(found, ["undecided"]))["gone"]
    assert suite.get("failures") == suite.get("tests") == "1"
    assert suites(junit.text(found))["gone"].get("skipped") == "1"


def test_nothing_to_compare_is_never_a_pass(tmp_path: Path) -> None:
    found = judged(campaign(tmp_path, {"a": BASE}))
    with pytest.raises(UserError, match="nothing is compared") as refused:
        unwanted(found, ["regressed", "failed"])
    assert refused.value.status is Exit.MISSING
    assert unwanted(found, ["failed"]) == unwanted(found, []) == []


def test_the_status_of_the_command(folder: Path) -> None:
    assert run_compare(folder).returncode == Exit.OK
    assert run_compare(folder, "--fail-on", "equivalent").returncode == Exit.OK
    done = run_compare(folder, "--fail-on", "equivalent,regressed", "--json")
    assert done.returncode == 5 == int(Exit.FAILED_ON) and done.stdout.startswith("{")
    assert done.stderr == (
        "analysis.compare: --fail-on: b is regressed (stalled seconds per run)\n"
    )
    for words in ("worse", "", "regressed,", "regressed undecided"):
        assert run_compare(folder, "--fail-on", words).returncode == Exit.USAGE


@pytest.mark.parametrize("module", ["analysis.compare", "graphs"])
def test_a_wrong_baseline_is_usage(module: str, folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", module, str(folder), "--baseline", "z"]
    command += ["-o", str(tmp_path)] if module == "graphs" else []
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == Exit.USAGE and done.stderr == (
        f"{module}: --baseline z: no such variant with a run that counts (there are a, b, c, d)\n"
    )


def suites(text: str) -> dict[str, Element]:
    return {str(one.get("name")): one for one in ElementTree.fromstring(text)}


def assert_valid(text: str) -> None:
    """What the schemas of Ant's JUnit task and of Jenkins' xUnit (junit-10.xsd) both ask for."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites" and not root.attrib and len(root)
    for place, suite in enumerate(root):
        about, *cases, out, error = suite
        tags = [about.tag, *{case.tag for case in cases}, out.tag, error.tag]
        assert tags == ["properties", "testcase", "system-out", "system-err"]
        assert suite.tag == "testsuite" and set(suite.attrib) == {
            *("name", "package", "timestamp", "hostname", "time", "id"),
            *("tests", "failures", "errors", "skipped"),
        }
        assert suite.attrib["id"] == str(place) and suite.attrib["name"].strip()
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
        assert NUMBER.fullmatch(suite.attrib["time"])
        ends: list[str] = []
        for one in about:
            assert one.tag == "property" and set(one.attrib) == {"name", "value"}
            assert one.attrib["name"] and not len(one)
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert NUMBER.fullmatch(case.attrib["time"]) and case.attrib["name"]
            assert len(case) <= 1
            for end in case:
                assert end.tag in ENDS and set(end.attrib) == {"type", "message"} and not len(end)
                ends.append(end.tag)
        names = [(case.attrib["classname"], case.attrib["name"]) for case in cases]
        assert len(set(names)) == len(names)
        counts = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
        assert suite.attrib["tests"] == str(len(cases))
        assert all(suite.attrib[total] == str(ends.count(end)) for total, end in counts)


def test_junit_has_a_test_for_each_run_and_each_metric(folder: Path) -> None:
    found = judged(folder)
    text = junit.text(found, ["regressed"])
    assert_valid(text)
    assert run_compare(folder, "--junit", "--fail-on", "regressed").stdout == text
    by_label = suites(text)
    assert list(by_label) == ["a", "b", "c", "d"]
    runs = [f"run {number}" for number in range(1, 6)]
    metrics = [f"{one.key}: {one.title}" for one in found.metrics]
    names = {
        label: [case.get("name") for case in suite.iter("testcase")]
        for label, suite in by_label.items()
    }
    assert names["a"] == runs and names["b"] == names["c"] == names["d"] == [*runs, *metrics]
    assert [one.get("failures") for one in by_label.values()] == ["0", "1", "0", "0"]
    failure, error = by_label["b"].find(".//failure"), by_label["b"].find(".//error")
    assert failure is not None and failure.get("type") == "regressed"
    assert failure.get("message") == found.sentences["b"] == failure.text
    assert error is not None and error.get("type") == "hung"
    assert by_label["b"].get("timestamp") == "2026-11-25T04:25:21"
    about = {one.get("name"): one.get("value") for one in by_label["c"].iter("property")}
    assert about["stalled.verdict"] == "improved" and about["baseline"] == "a"
    assert about["stalled.ratio"] == str(found.primary["c"].ratio)
    first = by_label["d"].find("testcase[@name='stalled: stalled seconds per run']/skipped")
    assert first is not None and first.get("type") == "undecided"


def test_failures_and_the_status_are_one(folder: Path, tmp_path: Path) -> None:
    """Of every set of words; a failed run is an error in any case."""
    places = (folder, mixed_campaign(tmp_path, more=["gone"]))
    for found in map(judged, places):
        for count in range(len(VERDICTS) + 1):
            for words in combinations(VERDICTS, count):
                root = ElementTree.fromstring(junit.text(found, words))
                assert len(list(root.iter("failure"))) == len(unwanted(found, words))
        errors = list(ElementTree.fromstring(junit.text(found)).iter("error"))
        assert bool(errors) == bool(unwanted(found, ["failed"]))


def test_what_strangers_wrote_is_valid_too(tmp_path: Path) -> None:
    hostile = make_campaign(tmp_path / "h", 6, 2, is_hostile=True, with_evidence=True)
    plan = (hostile / "plan.toml").read_text()
    dates = ['"2026-13-01T00:00:00"', "2026-11-25T04:25:21.5Z", "[1]", "7"]
    for date in dates:
        changed = re.sub(r"^date = .*$", f"date = {date}", plan, flags=re.MULTILINE)
        (hostile / "plan.toml").write_text(changed)
        assert_valid(junit.text(judged(hostile), FAIL_ON))
    assert_valid(junit.text(judged(mixed_campaign(tmp_path / "m", more=["gone"])), FAIL_ON))


def test_a_disturbed_run_is_skipped(tmp_path: Path) -> None:
    place = campaign(tmp_path, {"a": [5.0, 6.0], "b": [7.0, 8.0]})
    meta = place / "b" / "1" / "meta.json"
    meta.write_text(
        meta.read_text().replace('"name": "sampler"', '"name": "sampler", "major_faults": 3')
    )
    suite = suites(junit.text(judged(place)))["b"]
    skipped = suite.find("testcase[@name='run 1']/skipped")
    assert skipped is not None and "sampler had 3 major faults" in str(skipped.get("message"))
