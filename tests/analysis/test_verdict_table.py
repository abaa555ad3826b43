# SPDX-License-Identifier: GPL-2.0-or-later
"""The tables: every figure of one by hand, their width, and what strangers' labels do to them."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.figures.metrics import METRICS
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import make_campaign
from tests.support.verdicts import campaign, stalling_run

CAMPAIGN: dict[str, Sequence[float | str]] = {
    "6.1": [60.0, 62.0, 63.0, 64.0, 66.0],
    "7.2": [28.0, 30.0, 31.0, 33.0, 35.0],
    "7.3-rc7": [20.0, 21.0, 22.0, 23.0, "hung"],
}
# 6.1: mean 315 / 5, sd sqrt((9 + 1 + 0 + 1 + 9) / 4). 7.2: 157 / 5, sqrt(29.2 / 4),
# lowest ranks: p 2 / 252, Holm x 2. 7.3-rc7: 86 / 4, sqrt(5 / 3); ranks 1 to 4 and 10: sum
# 20, U 5: 2 x 19 of 252, delta 2 x 5 / 25 - 1. Each run has 5 s of gaps of 0.5 s beside its stall
# v, so the share is v / (v + 5), the wait (10 x 0.5^2 + v^2) / 2 / (v + 5), elapsed v + 5; the
# stall fills its windows of 10 s, but the first (5 s of it) and the last (v + 5 - 30, or - 20, s):
# v 28 has 5, 10, 10, 3, median 7.5; 30: 7.5, 31: 8, 33: 9, 35: 10. Of the 25 ratios of a run of 7.2
# to one of 6.1 the 13th is 30 / 60; at 0.025 the 2nd and the 24th bound the interval (U <= 1: 4 of
# 252). So of the others' ratios, 7.2 and 7.3-rc7: of v / (v + 5) 0.929 and 0.879, of the wait 0.465
# and 0.309, of v + 5 0.535 and 0.397, of 10 s windows 8 / 10 and 7 / 10. The p of the spread is not
# by hand. The smallest p of a family of 20 (10 metrics that are
# there, two variants) is 20 x 2 / 252: no exploratory difference can be established; 20 x 2 / 924
# could.
GOLDEN = """\
6.1 (the baseline): frozen for 93 % of the time, at worst for 66.0 s. All its stalls, in 68 s: 63.0
  s a run (sd 2.2 s, 5 runs).
7.2 stalls less than 6.1: frozen for 86 % of the time, at worst for 35.0 s (6.1: 93 %, 66.0 s). All
  its stalls, in 36 s against 68 s: 31.4 s a run against 63.0 s (0.50 times, interval 0.44 to 0.56),
  p = 0.016 after Holm, 5 runs each.
7.3-rc7 may be better or worse than 6.1: frozen for 81 % of the time in the runs that ended, at
  worst for 23.0 s (6.1: 93 %, 66.0 s). All its stalls, in 26 s against 68 s: 21.5 s a run against
  63.0 s of the runs that ended (0.35 times, interval 0.32 and more), p = 0.15 after Holm, 5 runs
  each; undecided; about 13 more runs of each would probably decide. 1 of its 5 runs failed, of
  6.1's 0 of 5 (p = 1 after Holm, Fisher's exact test): a failed run counts as the worst.

Stalled seconds per run, against 6.1:

variant  verdict    frozen  worst   stalled s  sd   ratio (interval)  p (Holm)  runs  failed
6.1      baseline   93 %    66.0 s  63.0       2.2                              5     0
7.2      improved   86 %    35.0 s  31.4       2.7  0.50 (0.44-0.56)  0.016     5     0
7.3-rc7  undecided  >=81 %  23.0 s  >=21.5     1.3  0.35 (0.32-inf)   0.15      5     1
Frozen: share of the time in gaps of 1 s or more; worst: the longest gap in any run; stalled: all
such gaps, mean of a run.

Spread between runs (of the runs that ended), and runs that failed:

variant   sd s  ratio  p (Holm)  spread     failed  p (Fisher)  failures
6.1       2.2                    baseline   0 of 5              baseline
7.2       2.7   1.21   0.40      undecided  0 of 5              none
7.3-rc7   1.3   0.58   0.40      undecided  1 of 5  1.00        undecided

All metrics (mean ±sd of the runs that ended, ratio to 6.1):

                              6.1          7.2                        7.3-rc7
stalled s per run              63.0 ±2.2    31.4 ±2.7  0.50x better    >=21.5 ±1.3  0.35x better?
worst stall s                  63.0 ±2.2    31.4 ±2.7  0.50x better?   >=21.5 ±1.3  0.35x better?
% of time in gaps >= 0.1 s    100.0 ±0.0   100.0 ±0.0  1.00x          >=100.0 ±0.0  1.00x
% of time in gaps >= 1 s       92.6 ±0.2    86.2 ±1.0  0.93x better?   >=81.1 ±0.9  0.88x better?
% of time in gaps >= 10 s      92.6 ±0.2    86.2 ±1.0  0.93x better?   >=81.1 ±0.9  0.88x better?
wait at a random moment s     29.20 ±1.11  13.58 ±1.32 0.47x better?   >=8.77 ±0.62 0.31x better?
p95 gap by time s             63.00 ±2.24  31.40 ±2.70 0.50x better?  >=21.50 ±1.29 0.35x better?
p99 gap by time s             63.00 ±2.24  31.40 ±2.70 0.50x better?  >=21.50 ±1.29 0.35x better?
10 s windows' p95, median s   10.00 ±0.00   8.40 ±1.08 0.80x better?   >=6.50 ±1.29 0.70x better?
% of 10 s windows p95 >= 1 s  100.0 ±0.0   100.0 ±0.0  1.00x          >=100.0 ±0.0  1.00x
all gitk's done after s        68.0 ±2.2    36.4 ±2.7  0.54x better?   >=26.5 ±1.3  0.40x better?
verdict                       baseline     improved                   undecided, 1 failed

- Failed, counted as the worst: 7.3-rc7/5 (hung).
- No evidence was recorded: why the programs stood still is not known.
- A verdict needs p (Holm) <= 0.05. The ratio is the median of a run over a run; its interval holds
  the ratios that the same test at the same level does not reject. equivalent: all of them are
  within 0.909 to 1.100.
- Only one metric was fixed in advance: stalled seconds per run. The spread and the failures are a
  family each, all other metrics one together: exploratory.
- Exploratory: 20 tests, 5 runs each: none of them can be established, whatever was measured; 6 runs
  of each could.
- Every change is a ratio to the baseline: the median of a run over a run, raw; lower is better for
  all metrics. A ? says that the difference is not established, which is not to say that there is
  none.
- 1 comparison undecided: about 13 more runs of each would probably decide all of them.
"""


def made(folder: Path, variants: dict[str, Sequence[float | str]] = CAMPAIGN) -> Compared:
    return compare(load_campaign(campaign(folder, variants)))


def test_the_text_by_hand(tmp_path: Path) -> None:
    assert compare_text.text(made(tmp_path)) == GOLDEN


def test_an_established_change_has_no_question_mark_and_no_ratio_is_invented(
    tmp_path: Path,
) -> None:
    zero: dict[str, Sequence[float | str]] = {"a": [0.0] * 5, "b": [4.0, 5.0, 6.0, 7.0, 8.0]}
    row = next(
        line
        for line in compare_text.text(made(tmp_path, zero)).splitlines()
        if "s per run  " in line
    )
    assert re.sub(" +", " ", row) == "stalled s per run 0.0 ±0.0 6.0 ±1.6 from 0 worse"


def test_colour_only_adds_to_the_words(tmp_path: Path) -> None:
    found = made(tmp_path)
    coloured = compare_text.text(found, colour=True)
    assert "\x1b[32mimproved\x1b[0m" in coloured and "\x1b[32mbetter\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == compare_text.text(found)


@pytest.mark.parametrize("variants", [1, 3, 12])
def test_it_fits_100_columns(tmp_path: Path, variants: int) -> None:
    text = compare_text.text(compare(load_campaign(make_campaign(tmp_path, variants, 2))))
    assert max(map(len, text.splitlines())) <= 100
    blocks = text.count("\nstalled s, four gitk's added up")
    assert blocks == 1 or (variants == 12 and 4 <= blocks <= 11)


def test_a_hundred_and_twenty_variants_with_huge_figures(tmp_path: Path) -> None:
    label = "2.6.32-rc6-revert-8aa7e847-and-a-label-that-does-not-end-{}"
    variants: dict[str, Sequence[float | str]] = {
        label.format(i): [123456.0 * i, 234567.0] for i in range(1, 121)
    }
    text = compare_text.text(made(tmp_path, variants))
    assert max(map(len, text.splitlines())) <= 100
    assert text.count("\nverdict ") >= 40


def test_labels_of_strangers(tmp_path: Path) -> None:
    for label in ("=cmd|' /C calc'!A0", "\x1b[31m\nevil", "x" * 300):
        folder = tmp_path / "c" / f"v{len(label)}"
        stalling_run(folder / "1", 5.0, label=label)
    found = compare(load_campaign(tmp_path / "c"))
    text = compare_text.text(found)
    assert "\x1b" not in text and max(map(len, text.splitlines())) <= 100
    rows = list(csv.DictReader(io.StringIO(export.csv_text(found))))
    assert not any(row["label"].startswith("=") for row in rows)


def test_csv_and_json_hold_every_figure_unrounded(tmp_path: Path) -> None:
    found = made(tmp_path)
    rows = list(csv.DictReader(io.StringIO(export.csv_text(found))))
    assert len(rows) == 3 * len(METRICS) + 2 * 2
    seven = next(r for r in rows if r["variant"] == "7.2" and r["family"] == "primary")
    assert float(seven["mean"]) == 31.4 and float(seven["p"]) == found.primary["7.2"].p
    assert (seven["verdict"], seven["values"]) == ("improved", "28.0 30.0 31.0 33.0 35.0")
    hung = next(r for r in rows if r["variant"] == "7.3-rc7" and r["family"] == "primary")
    assert hung["values"].endswith(" failed") and hung["failed"] == "1" and hung["runs"] == "5"
    assert {r["family"] for r in rows} == {"primary", "exploratory", "spread", "failures"}
    text = export.json_text(found)
    assert "NaN" not in text and "Infinity" not in text
    parsed = json.loads(text)
    assert parsed["sure"] is False and parsed["baseline"] == "6.1"
    last = parsed["variants"][2]
    assert last["samples"]["stalled"]["values"] == [20.0, 21.0, 22.0, 23.0, None]
    assert last["samples"]["stalled"]["failed"] == 1 and last["verdict"] == "undecided"
    assert last["primary"]["ratio"] == found.primary["7.3-rc7"].ratio
    assert parsed["variants"][1]["sentence"] == found.sentences["7.2"]
    assert parsed["variants"][0]["verdict"] is None


def test_forced_facts_and_runs_left_out_are_said(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": [5.0, "aborted"]})
    stalling_run(folder / "b" / "1", 5.0, cpus=64)
    text = compare_text.text(compare(load_campaign(folder), force=True))
    assert "FORCED (--force): these runs are not comparable: cpus differs: 2 in a/1" in text
    assert "a/2 (aborted)" in text
