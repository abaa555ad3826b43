# SPDX-License-Identifier: GPL-2.0-or-later
"""index.html without a browser: its data is the results', its texts are texts, its policy holds."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.reading.load import load_campaign
from analysis.reading.words import safe_line
from analysis.text import compare_text, vmstat
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results import hostile, make
from benchmarks.synthetic_results.make import line_log, make_campaign, meta
from errors import UserError
from graphs.page import chart_data, page, tables
from graphs.page.run_data import run_block
from tests.support.loading import one_run
from tests.support.verdicts import campaign


class Page(HTMLParser):
    """The elements and texts of a page as a browser's parser finds them."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif self.cdata_elem is None:
            self.text += data

    def data(self, name: str) -> Any:
        """The JSON of the data block with this id."""
        return json.loads(next(text for a, text in self.scripts if a.get("id") == name))


def judged(folder: Path, **how: Any) -> Compared:
    return compare(load_campaign(folder), **how)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Three variants, two runs each; the last one's last run hangs."""
    return judged(make_campaign(tmp_path_factory.mktemp("page") / "c", 3, 2))


def lines_of(stream: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Elapsed and gap in ms, as the page's script reads them."""
    at = np.cumsum(stream["t"], dtype=int).tolist()
    gaps = stream["gaps"] or [stream["t"][0] - stream["begin"], *stream["t"][1:]]
    return at, gaps


def test_every_line_and_stall_of_a_gitk_is_in_the_page(small: Compared, tmp_path: Path) -> None:
    parsed = Page(page.write(small, tmp_path / "index.html"))
    for index, run in enumerate(small.campaign.runs):
        part = parsed.data(f"run-data-{index}")
        assert [stream["name"] for stream in part["streams"]] == list(run.streams)
        for stream, there in zip(run.streams.values(), part["streams"], strict=True):
            assert there["open"] == round(1000 * stream.open_gap)
            if there["subject"]:
                at, gaps = lines_of(there)
                assert at == np.rint(1000 * stream.elapsed).astype(int).tolist()
                assert gaps == np.rint(1000 * stream.gap).astype(int).tolist()
        stalls = part["stalls"]
        long = sum(int((gitk.gap >= 1).sum()) + (gitk.open_gap >= 1) for gitk in run.subjects)
        of_gitks = [part["streams"][n]["subject"] for n in stalls["stream"]]
        assert sum(of_gitks) == long > 0
    hung = parsed.data("run-data-5")
    assert sum(hung["stalls"]["open"]) == 4 and not hung["streams"][0]["ended"]


def test_thinning_keeps_every_long_gap_and_says_so(
    small: Compared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page.write(small, tmp_path / "whole.html")
    monkeypatch.setattr(chart_data, "WHOLE_LINES", 0)
    thin = page.write(small, tmp_path / "thin.html")
    assert thin.stat().st_size < whole.stat().st_size
    assert "Thinned out" in Page(thin).text and "Thinned out" not in Page(whole).text
    run = small.campaign.runs[0]
    parts = [run_block(run, is_whole) for is_whole in (True, False)]
    for gitk, there in zip(run.subjects, parts[1]["streams"], strict=False):
        at, gaps = lines_of(there)
        long = gitk.gap >= 0.1
        wanted = set(
            zip(
                np.rint(1000 * gitk.elapsed[long]).astype(int).tolist(),
                np.rint(1000 * gitk.gap[long]).astype(int).tolist(),
                strict=True,
            )
        )
        assert len(wanted) > 100 and wanted <= set(zip(at, gaps, strict=True))
        assert len(at) < len(gitk.gap)
        # Where lines are left out the longest of each second stays.
        for second in {int(elapsed) for elapsed in gitk.elapsed}:
            inside = np.floor(gitk.elapsed) == second
            assert round(1000 * gitk.gap[inside].max()) in gaps
    for key in ("stream", "begin", "length", "line", "counters"):
        assert parts[0]["stalls"][key] == parts[1]["stalls"][key]
    rates = [part["panels"][1]["curves"][0]["y"] for part in parts]
    assert len(rates[1]) <= 180 < len(rates[0])
    assert np.mean(rates[1]) == pytest.approx(np.mean(rates[0]), rel=0.05)


def test_what_the_counters_did_during_a_stall(tmp_path: Path) -> None:
    """5 s of silence from 10 s on; 512 pages a second swapped in, out never, 256 KiB/s read."""
    samples: list[float | int | None] = [n * 0.5 for n in range(61)]
    rows = {
        "elapsed_s": samples,
        "late_s": [0.0] * 61,
        "pswpin": [100 + 256 * n for n in range(61)],
        "pswpout": [7] * 61,
        "pgpgin": [128 * n for n in range(61)],
        "nr_writeback": [3 * n for n in range(61)],
    }
    pressure = {
        "elapsed_s": samples,
        "late_s": [0.0] * 61,
        "memory_some_us": [125_000 * n for n in range(61)],
    }
    gaps = [(10.0, "pass 1 commits 100"), (5.0, "pass 1 commits 200"), (0.5, "<b>last</b>")]
    run = one_run(
        tmp_path,
        {
            "latency-gitk-1.log": line_log(gaps, 14.5),
            "vmstat.tsv": make.table(rows),  # type: ignore[arg-type]
            "psi.tsv": make.table(pressure),  # type: ignore[arg-type]
        },
    )
    part = run_block(run, True)
    stalls = part["stalls"]
    assert stalls["begin"] == [0, 10_000, 15_500] and stalls["length"] == [10_000, 5_000, 14_500]
    assert stalls["open"] == [0, 0, 1] and stalls["line"] == [1, 2, 4]
    assert stalls["before"] == [None, "pass 1 commits 100", "<b>last</b>"]
    assert stalls["after"] == ["pass 1 commits 100", "pass 1 commits 200", None]
    swap_in, swap_out, page_in, page_out, writeback, some, full = stalls["counters"][1]
    assert swap_in == [10.0, 2.0] and swap_out == [0.0, 0.0] and page_in == [1.2, 0.25]
    assert page_out is None and full is None  # not available is not zero
    assert writeback == 3 * 30 and some == 25.0
    assert part["averages"] == [2.0, 0.0, 0.25, None, 180, 25.0, None]
    assert part["freezes"] == [[0, 15_000], [15_500, 30_000]]
    missing = [
        curve["name"] for panel in part["panels"] for curve in panel["curves"] if "t" not in curve
    ]
    assert "page out" in missing and "swap in" not in missing


def test_a_gap_that_lines_before_it_do_not_explain_keeps_its_length(tmp_path: Path) -> None:
    log = "1.000 0.500 a\n9.000 2.000 b\n10.000 1.000 [end]\n"
    part = run_block(one_run(tmp_path, {"latency-gitk-1.log": log}), True)
    assert lines_of(part["streams"][0]) == ([1000, 9000], [500, 2000])
    assert part["stalls"]["begin"] == [7000, 9000]


def test_every_figure_of_the_tables_is_one_of_the_text_report(
    small: Compared, tmp_path: Path
) -> None:
    parsed = Page(page.write(small, tmp_path / "index.html"))
    text = re.sub(r"\s+", " ", compare_text.text(small, width=1000))
    cells = [cell for row in tables.verdicts(small).values() for cell in row]
    cells += [cell for row in tables.spread(small).values() for cell in row]
    metric_cells = [
        part for _, row in tables.metrics(small) for cell in row for part in cell.split()
    ]
    assert len(cells) > 50 and len(metric_cells) > 100
    for cell in [*cells, *metric_cells]:
        assert cell in text and cell in parsed.text, cell
    for sentence in small.sentences.values():
        assert re.sub(r"\s+", " ", sentence) in re.sub(r"\s+", " ", parsed.text)
    values = parsed.data("campaign-data")["values"]["stalled"]
    assert values[5] is None  # hung: no figure, and no zero
    for value, run in zip(values[:5], small.campaign.runs, strict=False):
        sample = small.samples["stalled"][run.variant]
        assert value == round(sample.values[sample.numbers.index(run.number)], 1)


def test_the_answer_begins_with_what_somebody_meets(small: Compared) -> None:
    for variant in small.variants:
        answer = page._answer(small, variant)
        assert re.search(
            r"frozen for \d+ % of the time, at worst for [^:]*\.$|s\)\.$", answer["head"]
        )
        assert answer["rest"].startswith(("All its stalls, in ", "Stalls of "))
        assert f"{answer['head']} {answer['rest']}" == small.sentences[variant]


def test_the_verdict_is_the_second_column_and_no_column_is_empty(
    small: Compared, tmp_path: Path
) -> None:
    assert tables.verdicts(small)[""][:3] == ["verdict", "frozen", "worst"]
    alone = judged(campaign(tmp_path / "c", {"a": [5.0]}))
    assert tables.verdicts(alone) == {
        "": ["frozen", "worst", "stalled s", "runs"],
        "a": ["50 %", "5.0 s", "5.0", "1"],
    }
    assert tables.spread(alone) == {}
    assert ("worst stall s", ["5.0"]) in tables.metrics(alone)
    heads = [name for name, _ in tables.variants(alone)]
    assert "kernel" in heads and "knobs" not in heads and "extra command line" not in heads
    text = Page(page.write(alone, tmp_path / "alone.html")).text
    assert "host busy with others" not in text and "ratio" not in text.partition("One run")[0]


def test_the_page_draws_the_gitk_with_the_longest_stall(small: Compared) -> None:
    for drawn in chart_data.campaign_part(small)["variants"]:
        run = small.campaign.runs[drawn["median"]["run"]]
        longest = max(run.subjects, key=lambda one: max(*one.gap, one.open_gap))
        assert drawn["median"]["name"] == longest.name


def test_the_page_has_the_counters_that_differ_most(tmp_path: Path) -> None:
    """One variant: none; some: open tables, as in compare.txt; many: one behind each sentence."""
    for variants, tables_of, hidden in ((1, 0, 0), (3, 2, 0), (5, 4, 4)):
        compared = judged(make_campaign(tmp_path / str(variants), variants, 2, all_counters=True))
        path = page.write(compared, tmp_path / "index.html")
        part = path.read_text().partition('<section id="kernel"')[2].partition("</section>")[0]
        assert bool(part) == (variants > 1) == ('href="#kernel"' in path.read_text())
        assert part.count("<table>") == tables_of and part.count("<details") == hidden
        text = re.sub(r"\s+", " ", compare_text.text(compared, width=1000))
        shown = re.sub(r"\s+", " ", Page(path).text)
        for variant in compared.variants[1:]:
            heads, *rows = vmstat.table_rows(compared, variant)
            assert len(rows) > 20 and heads[1] == compared.labels[compared.baseline]
            for cells in rows[:3]:
                assert " ".join(cells) in text and " ".join(cells) in shown
            assert " ".join(rows[11]) in shown and " ".join(rows[12]) not in shown
            assert next(vmstat.sentences(compared, variant)) in shown


def test_the_distribution_is_the_share_of_time_in_gaps_of_at_least_x(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c", {"a": [5.0, 15.0], "b": ["hung", "hung"]})
    data = chart_data.campaign_part(judged(folder))
    grid = np.array(data["grid"])
    # 10 gaps of 0.5 s and one of 5 s (15 s): half (three quarters) of the time above 0.5 s.
    for curve, long, share in zip(
        [r["curve"] for r in data["runs"]], (5, 15), (50, 75), strict=False
    ):
        assert curve[0] == 100 and curve[-1] == 0
        assert set(np.array(curve)[(grid > 0.51) & (grid < long)]) == {share}
    mean = np.array(data["variants"][0]["curve"])
    assert set(mean[(grid > 0.51) & (grid < 4.9)]) == {62.5}
    assert data["variants"][1]["curve"] is None and data["runs"][2]["curve"] is None


def test_what_strangers_wrote_is_text(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 7, is_hostile=True)
    compared = judged(folder, force=True)
    path = page.write(compared, tmp_path / "index.html")
    parsed, own = (
        Page(path),
        Page(page.write(judged(make_campaign(tmp_path / "d", 7)), tmp_path / "own.html")),
    )
    tags = {tag for tag, _ in parsed.elements}
    assert tags <= {tag for tag, _ in own.elements} | {"li"} and "img" not in tags
    assert len(parsed.scripts) == len(own.scripts) == 7 + 1 + 2
    for _, attributes in parsed.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert not (attributes.get("href") or "#").lower().startswith("javascript")
    for variant in compared.variants:
        assert compared.labels[variant] in parsed.text
    assert (
        safe_line(hostile.WHY, 300) in parsed.text
        and safe_line(hostile.FACTS["append"]) in parsed.text
    )
    for attributes, text in parsed.scripts[:-2]:
        assert attributes["type"] == "application/json"
        assert not re.search("[<>&\u2028\u2029]", text) and json.loads(text)
    assert hostile.SCRIPT in json.dumps(parsed.data("campaign-data"))
    raw = path.read_text(encoding="utf-8")
    assert not re.search(
        "[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00-\x08\x1b]", raw[: raw.index("<script")]
    )


def test_the_policy_allows_the_two_scripts_and_no_connection(
    small: Compared, tmp_path: Path
) -> None:
    parsed = Page(page.write(small, tmp_path / "index.html"))
    policies = [
        a["content"] or ""
        for _, a in parsed.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policies[0].split(";"))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    code = [text for attributes, text in parsed.scripts if "type" not in attributes]
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in code]
    assert rules["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert "Plotly" in code[0] and "campaign-data" in code[1]
    for tag, attributes in parsed.elements:
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), tag
    style = (Path(page.__file__).parent / "assets" / "page.css").read_text()
    assert "url(" not in style and "@import" not in style


def test_what_is_not_in_order_is_said(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "c",
        {"a": [5.0, 6.0, "aborted"], "b": [9.0, 8.0]},
        plan='baseline = "a"\n[stop_when_sure]\nlooks = [2, 4]\n',
    )
    (folder / "b" / "1" / "meta.json").write_text(json.dumps(meta("b", cpus=64)))
    (folder / "b" / "3").mkdir()
    (folder / "b" / "3" / "meta.json").write_text("{}")
    (folder / "b" / "2.cut-1").mkdir()
    with pytest.raises(UserError, match="cpus differs"):
        judged(folder)
    compared = judged(folder, force=True)
    text = Page(page.write(compared, tmp_path / "index.html")).text
    assert "FORCED: these runs are not comparable" in text and "cpus differs" in text
    assert "b/3 (no status.json)" in text and "b/2.cut-1" in text and "a/3 (aborted)" in text
    assert "Looked at after 2, 4 runs" in text
    assert "64 (b)" in re.sub(r"\s+", " ", text)  # the machine's table names who differs


def test_configs_are_compared_with_the_baselines(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c", {"a": [1.0], "b": [1.0], "c": [1.0], "d": [1.0]})
    same = "CONFIG_X86=y\n"
    (folder / "a" / "config").write_text(same + "# CONFIG_LRU_GEN is not set\nCONFIG_HZ=250\n")
    (folder / "b" / "config").write_text(same + "CONFIG_LRU_GEN=y\nCONFIG_NEW=m\n# comment\n")
    (folder / "c" / "config").write_text((folder / "a" / "config").read_text())
    found = tables.config_differences(judged(folder))
    assert found["rows"][1] == [
        ["CONFIG_HZ", "250", "n"],
        ["CONFIG_LRU_GEN", "n", "y"],
        ["CONFIG_NEW", "n", "m"],
    ]
    assert found["rows"][2] == [] and found["words"][2] == "No option differs."
    assert found["rows"][3] is None and "config of d is not in the results" in found["words"][3]


def test_runs_without_streams_or_figures_do_not_break_the_page(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "c", {"a": ["hung"], "b": ["lost"]})
    for log in folder.glob("*/*/latency-gitk-1.log"):
        log.unlink()
    compared = judged(folder)
    parsed = Page(page.write(compared, tmp_path / "index.html"))
    assert parsed.data("campaign-data")["variants"][0]["median"] is None
    assert parsed.data("run-data-0")["streams"] == []
    alone = judged(campaign(tmp_path / "d", {"only": [3.0]}))
    text = Page(page.write(alone, tmp_path / "alone.html")).text
    assert "One variant: nothing to compare with." in text and alone.sentences["only"] in text


def test_a_page_that_cannot_be_written_is_one_line(small: Compared, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        page.write(small, tmp_path / "missing" / "index.html")
