# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says of its workload: read as it was written, and whatever a stranger wrote."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.figures.metrics import METRICS, PRIMARY, lost, measure, metrics_of, primary_figure
from analysis.reading.load import load_campaign
from analysis.reading.workload import MOST_FIGURES, read_figures, read_workload
from analysis.text import compare_text
from analysis.text.summary_files import details, summary, try_compare
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.hostile import LABELS
from contract.workload import Description, Figure, Late, Recorded, TableRow
from errors import UserError
from tests.support.verdicts import stalling_run
from tests.support.workloads import (
    DEAD,
    DIRTY,
    dead_run,
    figures_of,
    workload_campaign,
    workload_run,
)

PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80)
WORDS = st.sampled_from([*LABELS, "s", "=1+1", "lower", "higher", "time-inside", "stalled"])
KEYS = (
    *("name", "summary", "subject", "subjects", "primary", "figures", "tables"),
    *("key", "title", "unit", "digits", "better", "columns", "rows", "of_failed"),
    *("recorded", "since", "until", "divisor", "share_of"),
    *("late", "settled", "of"),
    *("panels", "phases", "curves", "table", "stream", "column", "rate", "per"),
)
COUNTED = Recorded("k", ("x_*",)).as_meta()
LATE = Late("k", "heartbeat", "worst").as_meta()
ANYTHING = st.recursive(
    PLAIN | WORDS,
    lambda each: (
        st.lists(each, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=8), each, max_size=7)
    ),
    max_leaves=25,
)


def test_what_was_written_is_read() -> None:
    warnings: list[str] = []
    meta = json.loads(json.dumps({"workload": DIRTY.as_meta(), "figures": figures_of(40.0)}))
    assert read_workload(meta, [], warnings) == DIRTY
    assert read_figures(meta, warnings) == figures_of(40.0)
    assert warnings == []


def test_without_a_description_it_is_the_desktops_gitks() -> None:
    warnings: list[str] = []
    found = read_workload({}, ["player", "gitk-1", "gitk-2", "gitk-x"], warnings)
    assert found == Description("desktop", "", "gitk", ("gitk-1", "gitk-2"))
    asked = read_workload({"parameters": {"gitk": 3}}, ["gitk-1"], warnings)
    assert asked.subjects == ("gitk-1", "gitk-2", "gitk-3") and warnings == []
    stalled, *others = metrics_of(found)
    assert others == list(METRICS[1:]) and read_figures({}, warnings) == {}
    assert stalled.title == "stalled seconds per run, two gitk's added up" and stalled.primary
    assert metrics_of(replace(found, subjects=("gitk-1",))) == METRICS


@pytest.mark.parametrize(
    ("change", "warned", "field", "left"),
    [
        ({"subjects": "heartbeat"}, "subjects", "subjects", ()),
        ({"subjects": ["a", 3, "a", "b"]}, "subjects[1]", "subjects", ("a", "b")),
        ({"primary": ["x"]}, "primary", "primary", "stalled"),
        ({"name": 5}, "name", "name", "unnamed"),
        ({"figures": [{"key": "k", "title": "t", "unit": "s", "digits": 1}]}, "figures[0]",
         "figures", ()),
        ({"figures": [DIRTY.figures[0].as_meta() | {"better": "more"}]}, "figures[0]",
         "figures", ()),
        ({"figures": [DIRTY.figures[0].as_meta() | {"digits": True}]}, "figures[0]", "figures", ()),
        ({"figures": [DIRTY.figures[0].as_meta() | {"key": "=1"}]}, "figures[0]", "figures", ()),
        ({"figures": [DIRTY.figures[0].as_meta()] * 2}, "", "figures", DIRTY.figures[:1]),
        ({"tables": [{"title": "t", "columns": [], "rows": []}]}, "tables[0]", "tables", ()),
        ({"recorded": [COUNTED | {"columns": []}]}, "recorded[0]", "recorded", ()),
        ({"recorded": [COUNTED | {"columns": ["[a]"]}]}, "recorded[0]", "recorded", ()),
        ({"recorded": [COUNTED | {"share_of": ["x"] * 17}]}, "recorded[0]", "recorded", ()),
        ({"recorded": [COUNTED | {"divisor": 0}]}, "recorded[0]", "recorded", ()),
        ({"recorded": [COUNTED | {"until": "=1"}]}, "recorded[0]", "recorded", ()),
        ({"late": [LATE | {"of": "mean"}]}, "late[0]", "late", ()),
        ({"late": [LATE | {"stream": ""}]}, "late[0]", "late", ()),
        ({"late": [LATE]}, "", "late", (Late("k", "heartbeat", "worst"),)),
        ({"settled": 5}, "settled", "settled", ""),
        ({"recorded": [COUNTED]}, "", "recorded", (Recorded("k", ("x_*",)),)),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named_and_left_out(
    change: dict[str, Any], warned: str, field: str, left: object
) -> None:
    warnings: list[str] = []
    found = read_workload({"workload": DIRTY.as_meta() | change}, [], warnings)
    assert getattr(found, field) == left
    assert [warned in one for one in warnings] == [True] * bool(warned)
    assert replace(found, **{field: getattr(DIRTY, field)}) == DIRTY


def test_a_row_has_a_cell_for_each_column() -> None:
    rows = [{"title": "r", "figures": ["a", 5, "b", "c"]}, {"title": "s", "figures": []}, 7]
    table = {"title": "t", "columns": ["x", "y", 3], "rows": rows}
    [found] = read_workload({"workload": {"tables": [table]}}, [], []).tables
    assert found.columns == ("x", "y", "3")
    assert found.rows == (TableRow("r", ("a", "", "b")), TableRow("s", ("", "", "")))


def test_a_table_says_whether_it_is_of_failed_runs_too() -> None:
    kills = replace(DIRTY.tables[0], of_failed=True)
    for told in (DIRTY, replace(DIRTY, tables=(kills,))):
        assert read_workload({"workload": json.loads(json.dumps(told.as_meta()))}, [], []) == told
    assert "of_failed" not in DIRTY.tables[0].as_meta()


def test_figures_are_numbers_or_not_available() -> None:
    warnings: list[str] = []
    told: dict[str, Any] = {"a": 1, "b": "2", "c": -1.0, "d": True, "e": float("nan"), "": 1}
    assert read_figures({"figures": told}, warnings) == {"a": 1.0}
    assert len(warnings) == 1 and "b, c, d, e and 1 more" in warnings[0]
    many = {f"k{n}": n for n in range(MOST_FIGURES + 5)}
    assert len(read_figures({"figures": many}, warnings)) == MOST_FIGURES
    assert read_figures({"figures": [1]}, warnings) == {} and len(warnings) == 3


@given(ANYTHING, ANYTHING)
@example({"figures": [], "tables": [[]], "subjects": [[]]}, {"x": 10**400})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_description_is_an_error(workload: Any, figures: Any) -> None:
    warnings: list[str] = []
    found = read_workload({"workload": workload, "figures": figures}, ["gitk-1"], warnings)
    assert all(one.isprintable() for one in (found.name, found.summary, found.subject, *warnings))
    assert all(value >= 0 for value in read_figures({"figures": figures}, warnings).values())
    first, *others = metrics_of(found)
    assert first.primary and not any(one.primary for one in others)
    assert len({one.key for one in (first, *others)}) == 1 + len(others)
    assert read_workload(json.loads(json.dumps({"workload": found.as_meta()})), [], []) == found


@given(ANYTHING, ANYTHING)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
def test_no_description_keeps_a_campaign_from_being_told(
    tmp_path: Path, workload: Any, figures: Any
) -> None:
    for number in (1, 2):
        for variant in ("a", "b"):
            workload_run(tmp_path / variant / str(number), figures, workload=workload)
    campaign = load_campaign(tmp_path)
    judged = try_compare(campaign)
    assert summary(campaign, judged) and details(campaign)
    if not isinstance(judged, UserError):
        assert compare_text.text(judged) and export.csv_text(judged) and export.json_text(judged)


def test_the_metrics_are_the_workloads_then_the_suites(tmp_path: Path) -> None:
    found = metrics_of(DIRTY)
    assert [one.key for one in found[:3]] == ["time-inside", "rate-inside", "stalled"]
    assert [one.key for one in found if one.primary] == ["time-inside"]
    assert found[1].better == "higher" and found[1].sign == -1
    elapsed = next(one for one in found if one.key == "elapsed")
    unpaced = metrics_of(replace(DIRTY, subject="editor", subjects=("editor-1",)))
    assert "all editors done after s" in [one.name for one in unpaced]
    # Each line of what prints every 0.1 s ends a gap of 0.1 s.
    assert "share-0.1" not in {one.key for one in found}
    # Nor is it ever done by itself.
    assert elapsed.title == "elapsed until the workload ended"
    assert elapsed.name == "workload ended after s"
    stalled = metrics_of(replace(DIRTY, primary="stalled"))
    assert stalled[0].key == PRIMARY.key and stalled[1].key == "time-inside"
    assert stalled[0].title == f"{PRIMARY.title}, two heartbeats added up" and stalled[0].primary
    odd = Figure("stalled", "mine", "m", 0, "higher")
    assert metrics_of(replace(DIRTY, figures=(odd,), primary="no-such"))[0] == stalled[0]
    run = load_campaign(workload_run(tmp_path / "k" / "1", figures_of(40.0))).runs[0]
    values = measure(run, found)
    assert values["time-inside"] == 40 and values["rate-inside"] == 12.8
    assert values["stalled"] == 5 and values["worst"] == 3 and primary_figure(run) == 40
    assert set(values) >= {one.key for one in found}


def test_a_failed_run_is_the_worst_in_either_direction(tmp_path: Path) -> None:
    run = load_campaign(workload_run(tmp_path / "k" / "1", figures_of(40.0), "hung")).runs[0]
    values = measure(run, metrics_of(DIRTY))
    assert values["time-inside"] == float("inf") and values["rate-inside"] == float("-inf")
    assert values["swap-in"] is None


def test_a_subject_without_a_log_is_named(tmp_path: Path) -> None:
    place = workload_run(tmp_path / "k" / "1", figures_of(40.0))
    (place / "latency-heartbeat-inside.log").unlink()
    run = load_campaign(tmp_path).runs[0]
    assert lost(run) == "no log of a heartbeat"
    assert "no latency log of heartbeat-inside" in run.warnings
    assert measure(run)["stalled"] is None
    text = " ".join(compare(load_campaign(tmp_path)).notes)
    assert "Lines of heartbeats are lost" in text


def test_a_variants_runs_of_two_workloads_are_refused(tmp_path: Path) -> None:
    workload_campaign(tmp_path, {"a": [40.0, 41.0]})
    other = replace(DIRTY, name="other").as_meta()
    workload_run(tmp_path / "a" / "3", figures_of(40.0), workload=other)
    with pytest.raises(UserError, match=r"workload\.name differs: memcg-dirty in .*, other in a/3"):
        compare(load_campaign(tmp_path))
    forced = compare(load_campaign(tmp_path), force=True)
    assert len(forced.forced) == 1 and forced.workload.name == "memcg-dirty"
    with pytest.raises(UserError, match=r"parameters\.workload differs"):
        changed = {"workload": "third", "memory": 2**29}
        workload_run(tmp_path / "a" / "3", figures_of(40.0), parameters=changed)
        compare(load_campaign(tmp_path))


def test_runs_of_which_the_machine_has_settled_another_thing_are_refused(tmp_path: Path) -> None:
    workload_campaign(tmp_path, {"a": [40.0, 41.0]})
    other = replace(DIRTY, settled="control groups of version 1").as_meta()
    workload_run(tmp_path / "b" / "1", figures_of(40.0), workload=other)
    said = r"workload\.settled differs: .* in a/1, a/2, control groups of version 1 in b/1"
    with pytest.raises(UserError, match=said):
        compare(load_campaign(tmp_path))


def test_what_died_before_it_said_its_workload_is_not_taken_for_the_desktop(
    tmp_path: Path,
) -> None:
    workload_campaign(tmp_path, {"a": [DEAD, 40.0, 41.0], "b": [DEAD, 50.0]})
    dead_run(tmp_path / "c" / "1")
    campaign = load_campaign(tmp_path)
    dead = campaign.runs[0]
    assert not dead.described and not dead.warnings
    assert dead.workload == Description("memcg-dirty", "", "program", ())
    assert campaign.subject == "heartbeat"
    for baseline in ("a", "c"):
        found = compare(campaign, baseline=baseline)
        assert found.workload == DIRTY and found.metric.key == "time-inside" and not found.forced
        assert "workload.name (3 runs)" in " ".join(found.notes)
    text = summary(campaign, try_compare(campaign))
    assert "(a, mean of 2 runs):" in text and "(b, mean of 1 run):" in text
    alone = load_campaign(tmp_path / "c" / "1")
    assert alone.subject == "program" and "gitk" not in summary(alone, try_compare(alone))
    warnings: list[str] = []
    told = {"workload": 3, "parameters": {"workload": "memcg-dirty"}}
    assert read_workload(told, ["gitk-1"], warnings) == dead.workload
    assert warnings == ["meta.json: workload is damaged, not known"]


def test_an_older_desktop_compares_with_one_that_says_so(tmp_path: Path) -> None:
    parameters = {"gitk": 1, "memory": 2**29}
    stalling_run(tmp_path / "a" / "1", 5.0, parameters=parameters)
    said = Description("desktop", "", "gitk", ("gitk-1",)).as_meta()
    newer = parameters | {"workload": "desktop"}
    stalling_run(tmp_path / "b" / "1", 6.0, parameters=newer, workload=said)
    found = compare(load_campaign(tmp_path))
    assert found.samples["stalled"]["b"].values == (6.0,) and not found.forced
    dirty = DIRTY.as_meta()
    stalling_run(tmp_path / "b" / "1", 6.0, parameters=parameters, workload=dirty)
    apart = compare(load_campaign(tmp_path))
    assert (apart.variants, [one.variants for one in apart.others]) == (["a"], [["b"]])
