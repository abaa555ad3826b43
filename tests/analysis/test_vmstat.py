# SPDX-License-Identifier: GPL-2.0-or-later
"""Counters of /proc/vmstat: a run's figure of each, and what differs between made-up kernels."""

import csv
import io
import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures import vmstat
from analysis.reading.counter_tables import parse_table
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.text import vmstat as vmstat_text
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.vmstat import FLOOR, Differences
from benchmarks.synthetic_results.make import meta, table
from benchmarks.synthetic_results.streams import columns_of
from contract.run_files import STAMP
from tests.support.counters import Cells, campaign_of_counters
from tests.support.loading import one_run
from tests.support.verdicts import stalling_run

Runs = Sequence[Mapping[str, float | Cells] | str]
# 10.4 times as many refaults, about as many faults: each of the five below is one run.
FEW = (5_900, 6_100, 6_223, 6_300, 6_500)
MANY = (55_437, 61_000, 64_761, 70_012, 71_900)
SAME = (10_000, 10_400, 10_100, 10_300, 10_200)


def judged(folder: Path, **variants: Runs) -> Compared:
    return compare(load_campaign(campaign_of_counters(folder, variants)))


def of_b(folder: Path, a: Runs, b: Runs) -> Differences:
    return judged(folder, a=a, b=b).counters.differences["b"]


def refaults(values: Sequence[float], **others: float) -> Runs:
    return [{"workingset_refault_file": value, **others} for value in values]


def text_of(compared: Compared) -> str:
    return " ".join(compare_text.text(compared).split())


def test_a_growth_a_level_and_what_is_not_available(tmp_path: Path) -> None:
    """By hand: the level is 10 for 1 s, climbs to 30 in 1 s and stays for 2 s: 10 + 20 + 60 / 4."""
    columns: dict[str, list[float | int | None]] = {
        "elapsed_s": [0.0, 1.0, 2.0, 4.0],
        "late_s": [0.0] * 4,
        "pswpin": [500, 510, 510, 620],
        "nr_anon_pages": [10, 10, 30, 30],
        "nr_dirtied": [7, 8, 9, 10],  # page dirtyings since bootup
        "workingset_nodes": [4, 0, 4, 4],  # 2 + 2 + 8 / 4
        "allocstall_normal": [100, 200, 90, 300],  # wrapped, or reset
        "pgfree": [None, 3, None, 9],
        "pgfault": [None, 3, None, None],
        "oom_kill": [None] * 4,
    }
    run = one_run(tmp_path, {"vmstat.tsv": table(columns)})
    assert vmstat.figures(run) == {
        "pswpin": 120.0,
        "nr_anon_pages": 22.5,
        "nr_dirtied": 3.0,
        "workingset_nodes": 3.0,
        "allocstall_normal": None,
        "pgfree": 6.0,
    }
    assert vmstat.figures(one_run(tmp_path / "none", {})) == {}


def test_the_levels_of_a_real_kernel_are_those_of_its_source() -> None:
    names = columns_of("vmstat")
    assert len(names) > 180 and all(vmstat.NAME.fullmatch(name) for name in names)
    growing = {name for name in names if name.startswith("nr_") and not vmstat.is_level(name)}
    assert growing == {
        *("nr_vmscan_write", "nr_vmscan_immediate_reclaim", "nr_dirtied", "nr_written"),
        *("nr_throttled_written", "nr_foll_pin_acquired", "nr_foll_pin_released"),
    }
    levels = {name for name in names if vmstat.is_level(name)}
    assert {name for name in levels if not name.startswith("nr_")} == {"workingset_nodes"}


def test_what_is_no_name_of_a_counter_is_none(tmp_path: Path) -> None:
    header = "elapsed_s\tlate_s\t<script>\tpswpin\tpswpin\t\x1b[31m\tA b\n"
    run = one_run(tmp_path, {"vmstat.tsv": f"{header}0\t0\t1\t1\t9\t1\t1\n1\t0\t2\t2\t9\t5\t5\n"})
    assert vmstat.figures(run) == {"pswpin": 1.0}


STEPS = st.lists(
    st.tuples(st.integers(1, 5_000), st.integers(0, 2**40), st.integers(0, 2**40), st.booleans()),
    min_size=2,
    max_size=30,
)


@given(STEPS, st.integers(0, 2**40), st.randoms(use_true_random=False))
def test_a_figure_depends_on_neither_the_order_of_rows_nor_on_gaps(
    steps: list[tuple[int, int, int, bool]], first: int, chance: random.Random
) -> None:
    """Growth: the sum of the steps, whichever cells between are empty. A level is within them."""
    rows, at, grown, growth = [], 0, first, 0
    for place, (milliseconds, more, level, empty) in enumerate(steps):
        at += milliseconds
        grown += more if place else 0
        growth += more if place else 0
        inside = 0 < place < len(steps) - 1
        cell = "" if inside and empty else str(grown)
        rows.append(f"{at // 1000}.{at % 1000:03d}\t{cell}\t{level}\t{first}\n")
    chance.shuffle(rows)
    text = f"{STAMP}\tpgscan_direct\tnr_mapped\tnr_memmap_pages\n" + "".join(rows)
    parsed = parse_table(text.encode())
    assert parsed is not None
    columns = parsed.columns
    good = np.isfinite(columns["pgscan_direct"])
    kept = {name: column[good] for name, column in columns.items()}
    assert vmstat.figures_of(("pgscan_direct",), kept[STAMP], kept) == {"pgscan_direct": growth}
    # What never changes is that in every run, or it would look like a difference.
    found = vmstat.figures_of(("nr_mapped", "nr_memmap_pages"), columns[STAMP], columns)
    levels = [level for _, _, level, _ in steps]
    mean = found["nr_mapped"]
    assert mean is not None and min(levels) - 0.001 <= mean <= max(levels) + 0.001
    assert found["nr_memmap_pages"] == first


def test_ten_times_as_many_refaults(tmp_path: Path) -> None:
    """By hand: 2 of 252 divisions are as far apart; Holm over the two counters that differ."""
    before = [{"pgfault": f, "workingset_refault_file": n, "nr_unstable": 0, "thp_split_pmd": 7}
              for f, n in zip(SAME, FEW, strict=True)]  # fmt: skip
    after = [{"pgfault": f, "workingset_refault_file": n, "nr_unstable": 0, "thp_split_pmd": 7}
             for f, n in zip(reversed(SAME), MANY, strict=True)]  # fmt: skip
    compared = judged(tmp_path, a=before, b=after)
    found = compared.counters.differences["b"]
    assert [one.counter for one in found.tested] == ["workingset_refault_file", "pgfault"]
    first, second = found.tested
    assert first.separate and first.delta == 1 and first.p == pytest.approx(2 / 252)
    assert first.p_adjusted == pytest.approx(4 / 252) and second.p_adjusted == second.p == 1
    assert first.ratio == pytest.approx(sum(MANY) / sum(FEW)) and not second.separate
    assert first.effect == pytest.approx((sum(MANY) / 5 + FLOOR) / (sum(FEW) / 5 + FLOOR))
    assert found.notable == [first] and found.established == 1 and not found.too_few
    assert found.by_chance == pytest.approx(2 * 2 / 252) and found.runs == (5, 5)
    # What has one figure in all runs, in which nothing can differ.
    assert compared.counters.alike == {"nr_unstable": 0, "thp_split_pmd": 7}
    text = text_of(compared)
    assert (
        "b against a: 1 of 2 counters is separate (5 runs each; chance alone would separate 0.016 "
        "on the average). 1 reached p 0.05 after Holm over 2 counters." in text
    )
    assert (
        "counter a b ratio runs p p (Holm) "
        "workingset_refault_file 5,900-6,500 55,437-71,900 10.4 separate 0.0079 0.016 All metrics"
        in text
    )


def test_the_other_way_round_the_ratio_is_below_one(tmp_path: Path) -> None:
    found = of_b(tmp_path, refaults(MANY), refaults(FEW))
    assert found.notable[0].ratio == pytest.approx(sum(FEW) / sum(MANY))
    assert found.notable[0].delta == -1 and vmstat_text.ratio_cell(found.notable[0]) == "0.096"


def test_runs_that_do_the_same_have_nothing_to_tell(tmp_path: Path) -> None:
    compared = judged(tmp_path, a=refaults(FEW), b=refaults([FEW[0]] * 5))
    assert compared.counters.differences["b"].notable == []
    alike = judged(tmp_path / "alike", a=refaults([7] * 3), b=refaults([7] * 3))
    assert alike.counters.differences["b"].tested == []
    assert "b against a: no counter differs between any two runs (3 runs each)." in text_of(alike)
    assert "p (Holm) All metrics" not in text_of(alike)


def test_a_sure_difference_of_a_hundredth_is_not_told(tmp_path: Path) -> None:
    runs = [refaults([base + n for n in range(5)]) for base in (100_000, 101_000)]
    compared = judged(tmp_path, a=runs[0], b=runs[1])
    assert compared.counters.differences["b"].separate
    assert "1 of 1 counter is separate" in text_of(compared)
    assert "None differs by 10 % or more." in text_of(compared)


def test_counters_that_few_runs_cannot_establish(tmp_path: Path) -> None:
    """Three runs each: p = 0.1 at the least, and one counter in ten is separate by chance."""
    names = [f"thp_{n}" for n in range(20)]
    runs = [[{name: n + 100 * side for name in names} for n in (1, 2, 3)] for side in (0, 9)]
    compared = judged(tmp_path, a=runs[0], b=runs[1])
    found = compared.counters.differences["b"]
    assert len(found.notable) == 20 and found.by_chance == pytest.approx(2) and found.too_few
    assert {one.p_adjusted for one in found.tested} == {1.0}
    assert (
        "20 of 20 counters are separate (3 runs each; chance alone would separate 2.0 on the "
        "average). None can reach p 0.05 after Holm over 20 counters, whatever was counted; 6 runs "
        "of each could. The 12 separate ones that differ most:" in text_of(compared)
    )
    assert sum(line.startswith("thp_") for line in compare_text.text(compared).splitlines()) == 12


def test_so_many_are_separate_by_chance_alone() -> None:
    values = range(6)
    apart = [max(some) < 3 or min(some) > 2 for some in itertools.combinations(values, 3)]
    assert sum(apart) / len(apart) == pytest.approx(2 / math.comb(6, 3))


def test_one_run_each_is_a_sign(tmp_path: Path) -> None:
    compared = judged(tmp_path, a=refaults(FEW[:1]), b=refaults(MANY[:1]))
    assert "b against a: 1 counter differs, by 1 run each: a sign, not a finding." in text_of(
        compared
    )
    assert "workingset_refault_file 5,900 55,437 9.40 separate 1.00 1.00" in text_of(compared)


def test_small_counts_do_not_top_the_table(tmp_path: Path) -> None:
    """0 against 3 is an infinite ratio, and nothing; 0 against 50,000 is the largest of all."""
    before = {"oom_kill": 0, "drop_slab": 0, "pgscan_direct": 1_000, "pswpin": 900, "pswpout": 0}
    after = {"oom_kill": 3, "drop_slab": 5, "pgscan_direct": 9_000, "pswpin": 0, "pswpout": 50_000}
    found = of_b(tmp_path, [before] * 3, [after] * 3)
    assert [one.counter for one in found.notable] == ["pswpout", "pswpin", "pgscan_direct"]
    cells = [vmstat_text.ratio_cell(one) for one in found.notable]
    assert cells == ["from 0", "to 0", "9.00"]
    assert {"oom_kill", "drop_slab"} <= {one.counter for one in found.separate}


def test_an_overlapping_counter_is_told_behind_the_separate_ones(tmp_path: Path) -> None:
    """One of 25 pairs of runs is the other way round: p = 4 / 252."""
    before = [{"pswpin": n, "pgfree": n} for n in (100, 110, 120, 130, 500)]
    after = [{"pswpin": 100 * n, "pgfree": n + 401} for n in (4, 50, 60, 70, 80)]
    found = of_b(tmp_path, before, [dict(one) for one in after])
    assert [(one.counter, one.separate) for one in found.notable][-1] == ("pswpin", False)
    assert found.notable[-1].p == pytest.approx(4 / 252)
    rows = vmstat_text.table_rows(judged(tmp_path, a=before, b=after), "b")
    assert rows[-1][0] == "pswpin" and rows[-1][4] == "overlap"


def test_a_counter_that_one_kernel_lacks_is_not_zero(tmp_path: Path) -> None:
    compared = judged(
        tmp_path,
        a=refaults(FEW, nr_unstable=5, pgskip_dma=90_000),
        b=refaults(MANY, pgscan_proactive=70_000),
    )
    found = compared.counters.differences["b"]
    assert [one.counter for one in found.tested] == ["workingset_refault_file"]
    assert found.only_base == ["nr_unstable", "pgskip_dma"]
    assert found.only_here == ["pgscan_proactive"] and not found.went_back
    assert compared.counters.samples["pgskip_dma"]["b"].missing == 5
    assert (
        "Not compared: only a has nr_unstable, pgskip_dma; only b has pgscan_proactive."
        in text_of(compared)
    )


def test_a_counter_that_went_back_is_not_available_and_said(tmp_path: Path) -> None:
    after = [dict(one) for one in refaults(MANY, pswpin=4)]  # type: ignore[arg-type]
    after[1]["workingset_refault_file"] = [2**32 - 9, 5, *range(10, 17)]
    for one in after:
        one["pgfree"] = [9, 8, *range(10, 17)]
    compared = judged(tmp_path, a=refaults(FEW, pswpin=4, pgfree=8), b=after)
    found = compared.counters.differences["b"]
    assert found.went_back == ["workingset_refault_file", "pgfree"] and not found.only_base
    first = found.notable[0]
    assert (len(first.sample.values), first.sample.missing, first.sample.runs) == (4, 1, 5)
    assert first.p == pytest.approx(2 / math.comb(9, 4)) and len(found.tested) == 1
    text = text_of(compared)
    assert (
        "A counter that only grows went back (it wrapped, or was reset): that run has no figure of "
        "workingset_refault_file, pgfree." in text
    )


def test_a_counter_of_some_runs_only_says_of_how_many(tmp_path: Path) -> None:
    after = [dict(one, pgfree=50 + n) for n, one in enumerate(refaults(MANY))]  # type: ignore[arg-type]
    after[1]["workingset_refault_file"] = [9, 5, *range(10, 17)]
    compared = judged(tmp_path, a=refaults(FEW, pgfree=1), b=after)
    assert compared.counters.differences["b"].runs == (5, 5)
    assert "workingset_refault_file 5,900-6,500 55,437-71,900 (4 of 5)" in text_of(compared)


def test_runs_that_failed_or_were_disturbed_are_in_no_figure(tmp_path: Path) -> None:
    folder = campaign_of_counters(
        tmp_path,
        {"a": refaults(FEW[:3]), "b": [*refaults(MANY[:3]), *refaults([10**6, 10**6]), "aborted"]},
    )
    hung = {"format": 1, "state": "hung", "why": "silent", "elapsed_s": 4.0}
    (folder / "b" / "4" / "status.json").write_text(json.dumps(hung))
    observers = [{"name": "recorder", "major_faults": 3}]
    (folder / "b" / "5" / "meta.json").write_text(json.dumps(meta("b", observers=observers) | {
        "parameters": {"gitk": 1, "memory": 2**29}}))  # fmt: skip
    compared = compare(load_campaign(folder))
    sample = compared.counters.samples["workingset_refault_file"]["b"]
    assert sample.values == MANY[:3] and sample.numbers == (1, 2, 3) and sample.missing == 1
    assert "(3 runs each; chance alone would separate 0.1 on" in text_of(compared)


def test_without_counters_there_is_no_table(tmp_path: Path) -> None:
    compared = judged(tmp_path, a=["completed", "completed"], b=["completed"])
    assert not compared.counters.figures and vmstat_text.TITLE not in text_of(compared)
    half = judged(tmp_path / "half", a=refaults(FEW), b=["completed", "hung"])
    assert "b: no counters to compare, for want of runs that ended with some." in text_of(half)


def test_many_variants_have_short_tables(tmp_path: Path) -> None:
    names = [f"compact_{n}" for n in range(20)]
    variants: dict[str, Runs] = {
        f"v{v:02d}": [{name: 1_000 * (v + 1) + n for name in names} for n in range(3)]
        for v in range(14)
    }
    text = compare_text.text(judged(tmp_path, **variants))
    assert text.count("The 3 separate ones that differ most:") == 11
    assert text.count("\ncompact_") == 11 * 3
    assert "12 of 14 variants shown" in text and "compare.csv and compare.json have all." in text
    assert max(map(len, text.splitlines())) <= 100
    assert vmstat_text.rows_each(1) == 12 and vmstat_text.rows_each(4) == 9


def test_a_real_kernels_longest_names_fit(tmp_path: Path) -> None:
    names = [name for name in columns_of("vmstat") if len(name) > 25 or name in ("nr_mapped",)]
    runs = [[{name: (n + 1) * scale for name in names} for n in range(5)] for scale in (9, 10**8)]
    text = compare_text.text(judged(tmp_path, a=runs[0], b=runs[1]))
    assert max(map(len, text.splitlines())) <= 100
    assert "compact_daemon_migrate_scanned" in text
    assert "100.00M-500.00M" in text


def test_every_figure_is_in_the_exports(tmp_path: Path) -> None:
    """Ranked as in the table; what is alike in all runs stands once, what is missing is null."""
    compared = judged(
        tmp_path,
        a=refaults(FEW, pgfault=1, nr_mapped=50, nr_unstable=0),
        b=refaults(MANY, pgfault=1, nr_mapped=90, pgskip_dma=2),
    )
    found = json.loads(export.json_text(compared))
    assert found["vmstat"] == {
        "floor": 100,
        "levels": ["nr_mapped", "nr_unstable"],
        "alike": {"pgfault": 1},
    }
    base, variant = (one["vmstat"] for one in found["variants"])
    assert list(base) == ["counters"] and base["counters"]["nr_mapped"] == {
        "missing": 0,
        "mean": 50,
        "values": [50] * 5,
        "numbers": [1, 2, 3, 4, 5],
    }
    assert (variant["tested"], variant["separate"]) == (2, 2)
    assert variant["by_chance"] == pytest.approx(4 / 252) and variant["went_back"] == []
    assert variant["only_baseline"] == ["nr_unstable"] and variant["only_here"] == ["pgskip_dma"]
    ranked = ["workingset_refault_file", "nr_mapped", "nr_unstable", "pgskip_dma"]
    assert list(variant["counters"]) == ranked
    first = variant["counters"]["workingset_refault_file"]
    assert first["values"] == list(MANY) and first["separate"] is True and first["delta"] == 1
    assert first["p_adjusted"] == pytest.approx(4 / 252)
    assert variant["counters"]["nr_unstable"] == {
        "missing": 5,
        "mean": None,
        "values": [],
        "numbers": [],
    }
    rows = [
        row
        for row in csv.DictReader(io.StringIO(export.csv_text(compared)))
        if row["family"] == "vmstat" and row["variant"] == "b"
    ]
    assert [row["metric"] for row in rows] == ranked
    assert [row["unit"] for row in rows] == ["growth", "level", "level", "growth"]
    assert rows[0]["values"].split() == [repr(float(value)) for value in MANY]
    assert float(rows[0]["ratio"]) == first["ratio"] and rows[2]["missing"] == "5"
    without = judged(tmp_path / "none", a=["completed"], b=["completed"])
    assert "vmstat" not in export.json_text(without) + export.csv_text(without)


def test_runs_that_took_longer_are_said_to(tmp_path: Path) -> None:
    """Ten gaps of 0.5 s and one of 5 s against one of 25 s: 10 s and 30 s."""
    folder = campaign_of_counters(tmp_path, {"a": refaults(FEW), "b": refaults(MANY)})
    assert "Its runs took" not in text_of(compare(load_campaign(folder)))
    for run in (folder / "b").iterdir():
        stalling_run(run, 25.0)
    assert (
        "Its runs took 30.0 s against 10.0 s (3.00 times): what happens at a steady pace differs "
        "by as much." in text_of(compare(load_campaign(folder)))
    )


def test_the_section_is_the_kept_one(tmp_path: Path) -> None:
    """Made up after two real kernels, of which 7.2 refaulted ten times the file pages of 6.12."""
    before = {
        "workingset_refault_file": FEW,
        "pgscan_direct": (71_320, 82_067, 75_410, 90_118, 79_004),
        "allocstall_normal": (1_204, 1_377, 1_190, 1_422, 1_266),
        "pswpin": (10_728, 13_719, 11_204, 12_877, 11_950),
        "pgskip_dma": (0, 0, 0, 0, 0),
        "nr_free_pages": (5_210, 5_377, 5_190, 5_402, 5_266),
        "oom_kill": (0, 0, 0, 0, 0),
        "pgfault": SAME,
    }
    after = {
        "workingset_refault_file": MANY,
        "pgscan_direct": (918_613, 1_012_400, 874_210, 990_008, 902_711),
        "allocstall_normal": (402, 377, 431, 390, 418),
        "pswpin": (50_014, 47_210, 52_900, 13_100, 49_377),
        "pgskip_dma": (12_107, 11_804, 12_650, 12_011, 11_377),
        "nr_free_pages": (3_449, 3_502, 3_390, 3_477, 3_420),
        "oom_kill": (0, 3, 0, 0, 1),
        "pgfault": (10_050, 10_350, 10_150, 10_250, 10_420),
        "pgdemote_khugepaged": (4, 4, 4, 4, 4),
    }
    campaign_of_counters(
        tmp_path,
        {
            label: [
                dict(zip(counters, run, strict=True))
                for run in zip(*counters.values(), strict=True)
            ]
            for label, counters in (("6.12", before), ("7.2", after))
        },
    )
    compared = compare(load_campaign(tmp_path))
    shown = "\n".join(vmstat_text.section(compared, 100)).strip()
    golden = Path(__file__).parents[1] / "golden" / "vmstat-section.txt"
    assert shown + "\n" == golden.read_text()


def test_levels_are_marked(tmp_path: Path) -> None:
    runs = [[{"nr_free_pages": n * 100} for n in values] for values in ((3, 4), (30, 40))]
    text = text_of(judged(tmp_path, a=runs[0], b=runs[1]))
    assert "nr_free_pages (level) 300-400 3,000-4,000 10.0 separate" in text
