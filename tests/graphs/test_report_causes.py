# SPDX-License-Identifier: GPL-2.0-or-later
"""Why it stalled, in all that a reader sees: the table, the blame, the texts."""

import csv
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.image import imread

from analysis.figures.stalls import stalls
from analysis.reading import archive
from analysis.reading.load import Campaign, load_campaign
from analysis.stall_causes.causes import Card, RunCauses
from analysis.text import causes as causes_text
from analysis.text import compare_text
from analysis.text.layout import WIDTH
from analysis.text.summary_files import details, summary
from analysis.verdicts import cause_table, export
from analysis.verdicts.cause_table import Causes
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import make_campaign
from graphs.bundle import bundle
from graphs.page import page
from graphs.pictures import stalled_by_cause
from graphs.pictures.style import CAUSES as LOOKS
from tests.support.verdicts import campaign, cut_at_the_limit

Shares = Mapping[str, float]  # cause -> part of every stall


def causes_in(loaded: Campaign, of_variant: Mapping[str, Shares]) -> Causes:
    """Causes made by hand: each stall of a variant's runs, in these parts; others: no evidence."""
    found = {}
    for run in loaded.runs:
        if run.variant not in of_variant:
            continue
        shares = of_variant[run.variant]
        each = sorted(
            (stall for gitk in run.subjects for stall in stalls(gitk)), key=lambda one: -one.length
        )
        cards = [Card(one, {k: part * one.length for k, part in shares.items()}) for one in each]
        whole = sum(one.length for one in each)
        found[run.path] = RunCauses(cards, {k: part * whole for k, part in shares.items()})
    return found


def judged(
    folder: Path, runs: Mapping[str, Sequence[float | str]], of_variant: Mapping[str, Shares]
) -> Compared:
    loaded = load_campaign(campaign(folder, runs))
    return compare(loaded, causes=causes_in(loaded, of_variant))


SIX = [20.0, 21.0, 22.0, 23.0, 24.0, 25.0]
WORSE = [one + 20 for one in SIX]
CALM = {"swap_in": 0.5, "dm_crypt": 0.49, "lock": 0.005, "unexplained": 0.005}


def grown(runs: Sequence[float], by: float) -> Shares:
    """The parts if only swap-in grew by so many seconds."""
    before, after = (sum(each) / len(each) for each in (runs, [one + by for one in runs]))
    parts = {key: part * before / after for key, part in CALM.items()}
    return parts | {"swap_in": parts["swap_in"] + by / after}


def test_a_regression_comes_from_the_cause_that_grew(tmp_path: Path) -> None:
    runs = {"a": SIX, "b": WORSE, "c": [20.5, 21.5, 22.5, 23.5, 24.5, 19.5]}
    found = judged(tmp_path, runs, {"a": CALM, "b": grown(SIX, 20), "c": CALM})
    assert found.primary["b"].verdict == "regressed"
    assert list(found.blame) == ["b"]  # an undecided variant gets no blame
    blamed = found.blame["b"]
    assert blamed.causes == ["swap_in"] and blamed.change == pytest.approx(20)
    assert set(blamed.tests) == {"swap_in", "dm_crypt"}  # the others are too small to matter
    named = "The regression comes from swap-in (20.0 s a run more, p = 0.0"
    assert blamed.sentence.startswith(named)
    assert found.sentences["b"].endswith(blamed.sentence)
    assert "comes from" not in found.sentences["c"] + found.sentences["a"]
    back = compare(found.campaign, baseline="b", causes=found.causes.runs)
    assert "The improvement comes from swap-in (20.0 s a run less" in back.sentences["a"]


def test_waits_for_the_disk_are_one_cause_where_not_all_tell_dm_crypt_apart(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path, {"a": SIX, "b": WORSE}))
    causes = dict(causes_in(loaded, {"a": CALM, "b": grown(SIX, 20)}))
    lacking = {path: replace(why, apart="b" not in path.parts[-2:]) for path, why in causes.items()}
    blamed = compare(loaded, causes=lacking).blame["b"]
    assert blamed.causes == ["disk"] and set(blamed.tests) == {"disk"}
    assert "comes from waits for the disk or dm-crypt (20.0 s a run more" in blamed.sentence
    assert "swap-in, file read, file write and dm-crypt are tested as one" in blamed.sentence
    assert export.csv_text(compare(loaded, causes=lacking)) and blamed.change == pytest.approx(20)
    nowhere = {path: replace(why, apart=False) for path, why in causes.items()}
    assert compare(loaded, causes=nowhere).blame["b"].causes == ["swap_in"]


def test_what_no_single_cause_explains_is_said(tmp_path: Path) -> None:
    many = ("swap_in", "dm_crypt", "file_read", "reclaim_scan", "cpu_starved", "lock", "compaction")
    even = dict.fromkeys(many, 1 / 7)
    # All of seven causes grew, and six runs of each cannot tell one of seven.
    four = judged(tmp_path / "four", {"a": SIX[:4], "b": WORSE[:4]}, {"a": even, "b": even})
    assert "4 runs each are too few to tell which of 7 causes it comes from" in four.sentences["b"]
    # In every run of b another cause grew.
    ten = [*SIX, 26.0, 27.0, 28.0, 29.0]
    loaded = load_campaign(campaign(tmp_path / "c", {"a": ten, "b": [one + 22 for one in ten]}))
    causes = {}
    for place, run in enumerate(loaded.runs):
        seconds = dict.fromkeys(("swap_in", "dm_crypt", "lock"), ten[place % 10] / 3)
        if run.variant == "b":
            seconds[list(seconds)[place % 3]] += 22
        causes[run.path] = RunCauses([], seconds)
    found = compare(loaded, causes=causes)
    assert found.blame["b"].causes == []
    assert (
        "No single cause explains the regression; the largest change is of"
        in (found.sentences["b"])
    )


def test_runs_cut_at_their_limit_tell_why_up_to_it(tmp_path: Path) -> None:
    campaign(tmp_path, {"a": SIX, "b": WORSE})
    cut_at_the_limit(tmp_path / "b")
    loaded = load_campaign(tmp_path)
    compared = compare(loaded, causes=causes_in(loaded, {"a": CALM, "b": grown(SIX, 20)}))
    assert (
        "The regression comes from swap-in (at least 20.0 s a run more" in compared.sentences["b"]
    )
    rows = dict(causes_text.table_rows(compared.causes))
    assert rows["runs"] == ["6", "6"] and rows["all"] == ["22.5", ">=42.5"]
    which = "that ended and have evidence; of b, where no run was done, up to the limit"
    assert which in " ".join(compare_text.text(compared).split())
    assert which in page.write(compared, tmp_path / "index.html").read_text(encoding="utf-8")
    exported = json.loads(export.json_text(compared))["variants"][1]["causes"]["swap_in"]
    assert exported["at_least"] == [True] * 6 and exported["unfinished"] == 6
    assert stalled_by_cause.draw(compared, tmp_path / "causes.png")
    figure = stalled_by_cause.figure_of(compared)
    label = figure.axes[0].get_xlabel()
    assert label.startswith("stalled seconds a run") and label.endswith("≥: up to the limit")
    assert [text.get_text() for text in figure.axes[0].texts][-1].strip() == "≥42.5 s"
    assert causes_text.total_words(compared.causes, "b") == ("≥42.5 s", "")


def test_a_run_that_ended_leaves_those_out_that_were_cut(tmp_path: Path) -> None:
    campaign(tmp_path, {"a": SIX, "b": [10.0, *WORSE]})
    for number in range(2, 8):
        cut_at_the_limit(tmp_path / "b" / str(number))
    loaded = load_campaign(tmp_path)
    compared = compare(loaded, causes=causes_in(loaded, {"a": CALM, "b": CALM}))
    rows = dict(causes_text.table_rows(compared.causes))
    assert rows["runs"] == ["6", "1 of 7"] and rows["all"] == ["22.5", "10.0"]
    assert causes_text.total_words(compared.causes, "b") == ("10.0 s", "(1 of 7 runs)")
    assert compared.causes.which_runs == "that ended and have evidence"
    without = dict(causes_in(loaded, {"a": CALM, "b": CALM}))
    del without[tmp_path / "b" / "1"]  # it ended, and has no evidence
    table = compare(loaded, causes=without).causes
    assert dict(causes_text.table_rows(table))["runs"] == ["6", "0 of 7"]
    assert causes_text.total_words(table, "b") == ("", "")


def test_no_evidence_is_said_and_is_no_zero(tmp_path: Path) -> None:
    found = judged(tmp_path, {"a": SIX, "b": WORSE, "c": SIX}, {"b": CALM})
    assert (
        "Where the regression comes from is not known: there is no evidence"
        in (found.sentences["b"])
    )
    text = compare_text.text(found)
    assert "No evidence in 12 of 18 runs" in text
    rows = dict(causes_text.table_rows(found.causes))
    assert rows["runs"] == ["0 of 6", "6", "0 of 6"]
    assert rows["swap-in"] == ["-", "21.2 (50 %)", "-"] and rows["all"][0] == "-"
    assert summary(found.campaign, found).count("No evidence in") == 1


def test_old_results_differ_by_one_line(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path, {"a": SIX, "b": WORSE}))
    found = compare(loaded)
    no = "No evidence was recorded"
    for text in (compare_text.text(found), summary(loaded, found)):
        assert text.count(no) == 1 and "by cause" not in text
    assert details(loaded).count("causes       no evidence was recorded") == 12
    assert "cause" not in export.csv_text(found) and '"causes"' not in export.json_text(found)


def test_the_table_folds_what_is_small_and_always_shows_what_is_unexplained(tmp_path: Path) -> None:
    runs: dict[str, Sequence[float | str]] = {"a": SIX, "b": [*WORSE, "hung"]}
    found = judged(tmp_path, runs, {"a": CALM, "b": grown(SIX, 20)})
    assert found.causes.shown == ["swap_in", "dm_crypt", "other", "unexplained"]
    rows = dict(causes_text.table_rows(found.causes))
    assert rows["runs"] == ["6", "6 of 7"]  # the hung run is in no mean
    assert rows["unexplained"] == ["0.1 (0 %)", "0.1 (0 %)"] and rows["other"][0] == "0.1 (0 %)"
    assert rows["all"] == ["22.5", "42.5"]
    for text in (compare_text.text(found), summary(found.campaign, found)):
        for row in (["runs", "6", "6 of 7"], ["swap-in", "11.2 (50 %)", "31.3 (74 %)"]):
            assert any(line.split() == " ".join(row).split() for line in text.splitlines())
    assert max(map(len, summary(found.campaign, found).splitlines())) <= WIDTH


def test_the_files_have_every_cause_of_every_run(tmp_path: Path) -> None:
    found = judged(tmp_path, {"a": SIX, "b": WORSE}, {"a": CALM, "b": grown(SIX, 20)})
    rows = [
        one
        for one in csv.DictReader(io.StringIO(export.csv_text(found)))
        if one["family"] == "cause"
    ]
    assert len(rows) == 2 * 15
    of_b = {row["metric"]: row for row in rows if row["variant"] == "b"}
    assert float(of_b["cause-swap_in"]["mean"]) == pytest.approx(31.25)
    assert float(of_b["cause-swap_in"]["p_adjusted"]) <= 0.05 and not of_b["cause-lock"]["p"]
    assert float(of_b["cause-file_read"]["mean"]) == 0
    data = json.loads(export.json_text(found))
    assert len(data["causes"]) == 15 and "blame" not in data["variants"][0]
    variant = data["variants"][1]
    assert (
        variant["blame"]["causes"] == ["swap_in"]
        and variant["blame"]["sentence"] in (variant["sentence"])
    )
    sums = zip(*(of["values"] for of in variant["causes"].values()), strict=True)
    assert [sum(one) for one in sums] == pytest.approx(WORSE)


def test_a_runs_line_of_causes(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path, {"a": [20.0, 0.0]}))
    causes: Causes = causes_in(loaded, {"a": CALM})
    assert causes_text.in_a_line(causes[loaded.runs[0].path]) == (
        "swap-in 10.0 s (50 %), dm-crypt 9.8 s (49 %), other 0.1 s (0 %), unexplained 0.1 s (0 %)"
    )
    lacks = "Delay accounting was off: waits for block devices have no clock."
    causes = {path: replace(one, notes=[lacks]) for path, one in causes.items()}
    text = " ".join(details(loaded, causes=causes).split())
    assert text.count(f"({lacks})") == 2
    assert "causes swap-in 10.0 s (50 %)" in text and "causes no stall" in text


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Three variants of two runs with files of evidence; the last run hangs."""
    folder = make_campaign(tmp_path_factory.mktemp("why") / "c", 3, 2, with_evidence=True)
    tasks = folder / "6.1" / "1" / "tasks.tsv"
    tasks.write_text(tasks.read_text().replace("python3", "jdoe-agent"))
    (folder / "6.1" / "1" / "kern.log").write_text(
        "[ 1.0] <6> sudo: jdoe-agent : x\n/home/jdoe-agent\n"
    )
    (folder / "6.1" / "2" / "allocfail.tsv").write_text(
        "elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack\n"
        "1.5\t30\t1\tgit\t2\t0xc2820\t__alloc_pages <- kmalloc_reserve <- __alloc_skb\n"
    )
    return compare(load_campaign(folder))


def test_one_run_has_the_card_of_its_worst_stall(real: Compared) -> None:
    run = load_campaign(real.campaign.path / "6.12" / "1")
    text = summary(run)
    assert max(map(len, text.splitlines())) <= WIDTH
    why = real.causes.of(real.campaign.variants()["6.12"][0])
    assert why is not None and len(why.cards) > 1
    card = text.partition("\nWhy the worst stall lasted\n")[2]
    assert f"{why.cards[0].stall.stream} was silent for {why.cards[0].stall.length:.1f} s" in card
    assert "unexplained" in card and "do_swap_page" in card
    assert real.causes.total["6.12"] == pytest.approx(real.samples["stalled"]["6.12"].mean)


def test_the_bundle_tells_why_to_the_digit_and_not_who(real: Compared, tmp_path: Path) -> None:
    stalled_by_cause.draw(real, tmp_path / "causes.png")
    path = bundle.write(real, tmp_path)
    files = {one.name: b"".join(one.chunks()) for one in archive.members(path)}
    again = compare(load_campaign(path))
    assert compare_text.text(again) == compare_text.text(real) and export.json_text(
        again
    ) == export.json_text(real)
    everything = b"".join(files.values())
    assert b"jdoe" not in everything and b"-agent" not in everything
    stacks = [
        [line.rpartition(b"\t")[2] for line in raw.splitlines()]
        for raw in (
            files["bug-report/6.1/1/blocked.tsv"],
            (real.campaign.path / "6.1" / "1" / "blocked.tsv").read_bytes(),
        )
    ]
    assert stacks[0] == stacks[1] and len(stacks[0]) > 10
    data = json.loads(files["bug-report/causes.json"])
    assert len(data["runs"]) == 6 and data["format"] == 1
    for run in data["runs"]:
        assert sum(run["seconds"].values()) == pytest.approx(run["total_s"], abs=0.01)
        assert run["cards"][0]["length_s"] == max(card["length_s"] for card in run["cards"])
        assert run["stalls"] >= len(run["cards"]) > 0
    report = files["bug-report/report.txt"].decode()
    assert max(map(len, report.splitlines())) <= WIDTH
    why = report.partition("\nWhy it stalled\n")[2].partition("\nSawtooth\n")[0]
    worst = max(card["length_s"] for run in data["runs"] for card in run["cards"])
    assert f" was silent for {worst:.1f} s (" in why and "unexplained" in why
    assert "bug-report/causes.png" in files


def test_what_the_observer_said_is_redacted_too(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 2, 2, with_evidence=True)
    for path in folder.glob("*/*/meta.json"):
        facts = json.loads(path.read_text())
        facts["evidence"] = {"asked": True, "problems": ["trace: /home/annabelle/x is not there"]}
        path.write_text(json.dumps(facts))
    found = compare(load_campaign(folder))
    assert "annabelle" in compare_text.text(found)
    for one in archive.members(bundle.write(found, tmp_path)):
        assert b"annabelle" not in b"".join(one.chunks()), one.name


def test_notes_that_differ_in_figures_are_told_once(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path, {"a": SIX, "b": WORSE}))
    causes = dict(causes_in(loaded, {"a": CALM, "b": CALM}))
    for place, (path, why) in enumerate(list(causes.items())):
        late = [f"The evidence was {2 + place / 10} s late: rough."] if place < 8 else []
        causes[path] = replace(why, notes=["Not available: irq.", *late])
    said = list(cause_table.notes(loaded, causes, {"a": "one", "b": "two"}))
    assert len(said) == 2 and "Causes of one, two: Not available: irq." in said
    (once,) = (one for one in said if "late" in one)
    assert once.startswith("Causes of a/1, a/2") and "b/2: The evidence was 2.0 s late" in once
    assert once.endswith("(these figures: a/1).")


def test_evidence_goes_before_runs_do(real: Compared, tmp_path: Path) -> None:
    whole = bundle.write(real, tmp_path).stat().st_size
    path = bundle.write(real, tmp_path, whole - 200_000)
    with tarfile.open(path) as packed:
        names = packed.getnames()
    assert not any(name.endswith("tasks.tsv") for name in names)
    assert "bug-report/6.1/2/allocfail.tsv" in names  # failed allocations are counted again
    assert sum(name.endswith("/status.json") for name in names) == 6
    again = compare(load_campaign(path))
    assert export.json_text(again) != export.json_text(real)
    assert again.causes.samples == real.causes.samples and again.blame == real.blame
    assert list(causes_text.table_lines(again.causes, 75)) == list(
        causes_text.table_lines(real.causes, 75)
    )
    assert any(
        note.startswith("Causes of 6 runs are those of the bundle's") for note in again.notes
    )
    assert again.samples["unlogged"]["6.1"].values == real.samples["unlogged"]["6.1"].values
    text = next(
        b"".join(one.chunks()) for one in archive.members(path) if one.name.endswith("report.txt")
    )
    assert b"it holds no evidence" in b" ".join(text.split())


def test_the_page_has_chart_table_and_cards(real: Compared, tmp_path: Path) -> None:
    text = page.write(real, tmp_path / "index.html").read_text(encoding="utf-8")
    head = text.partition('id="campaign-data"')[0]
    assert 'id="causes-chart"' in head and head.count("<details><summary><bdi>") == 6
    for name, cells in causes_text.table_rows(real.causes):
        assert f'<th scope="row">{name}</th>' in head
        assert all(f"<td>{cell}</td>" in head for cell in cells)
    assert "jdoe-agent" in head  # the page is the reader's own, the bundle is what is sent
    data = json.loads(text.partition('id="campaign-data">')[2].partition("</script>")[0])["causes"]
    assert [one["name"] for one in data["causes"]][-1] == "unexplained"
    part = json.loads(text.partition('id="run-data-0">')[2].partition("</script>")[0])
    why = real.causes.of(real.campaign.runs[0])
    told_of = [words for words in part["stalls"]["why"] if words]
    assert why is not None and len(told_of) == len(why.cards) + len(why.others)
    assert all("unexplained" in words for words in told_of)
    sums = [sum(one["seconds"][n] for one in data["causes"]) for n in range(3)]
    assert sums == pytest.approx(data["totals"], abs=0.1)
    assert data["words"][0] == [f"{data['totals'][0]:.1f} s", ""]
    assert data["words"][2] == [f"{data['totals'][2]:.1f} s", "(1 of 2 runs)"]


def test_without_evidence_there_is_no_chart(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path / "c", {"a": [20.0]}))
    compared = compare(loaded)
    assert stalled_by_cause.draw(compared, tmp_path / "causes.png") is None
    assert export.causes_json(compared) == ""
    text = page.write(compared, tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="causes-chart"' not in text and text.count("No evidence was recorded") == 1


def test_where_nobody_stalled_there_is_nothing_to_divide(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path / "c", {"a": [0.0, 0.0], "b": [0.0, "hung"]}))
    causes = causes_in(loaded, {"a": {"lock": 1.0}, "b": {"lock": 1.0}})
    compared = compare(loaded, causes=causes)
    assert compared.causes.total == {"a": 0.0, "b": 0.0}
    assert stalled_by_cause.draw(compared, tmp_path / "causes.png") is None
    html = page.write(compared, tmp_path / "index.html").read_text(encoding="utf-8")
    assert 'id="causes-chart"' not in html
    for text in (summary(loaded, compared, causes), compare_text.text(compared), html):
        told_once = " ".join(text.split())
        assert told_once.count("No gitk was silent for 1 s or more in the runs that ended") == 1
        assert "Stalled seconds by cause" not in told_once


def test_one_stall_of_many_runs_is_divided(tmp_path: Path) -> None:
    """Its mean is shown as 0.0."""
    runs = {"a": [0.0], "b": [*[0.0] * 24, 1.1]}
    compared = judged(tmp_path, runs, {"a": {"lock": 1.0}, "b": {"lock": 1.0}})
    shown = replace(compared.causes, variants=["a"])
    assert not compared.causes.no_stall and not shown.no_stall
    assert "Stalled seconds by cause" in compare_text.text(compared)


@pytest.mark.parametrize("variants", [1, 3, 12, 14])
def test_the_bars_are_as_long_as_the_causes(variants: int, tmp_path: Path) -> None:
    names = [f"v{n:02d}" for n in range(variants)]
    loaded = load_campaign(campaign(tmp_path / "c", {name: [40.0] for name in names}))
    half = {"dm_crypt": 0.5, "reclaim_scan": 0.25, "unexplained": 0.25}
    compared = compare(loaded, causes=causes_in(loaded, dict.fromkeys(names, half)))
    path = stalled_by_cause.draw(compared, tmp_path / "causes.png")
    assert path is not None
    pixels = imread(path)
    assert pixels.shape[1] == 1100
    counts = {
        key: int((abs(pixels[..., :3] - _rgb(LOOKS[key].colour)).max(axis=-1) < 0.02).sum())
        for key in half
    }
    # Its own half of each bar, less edges and the share that is written into it.
    assert 1.5 < counts["dm_crypt"] / counts["reclaim_scan"] < 2.5
    assert counts["unexplained"] > 0.3 * counts["reclaim_scan"]  # hatched, and never hidden


def _rgb(colour: str) -> list[float]:
    return [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def test_every_cause_looks_different() -> None:
    looks = [(look.colour, look.hatch) for look in LOOKS.values()]
    assert len(set(looks)) == len(looks) and set(LOOKS) == {*cause_table.SHORT}
