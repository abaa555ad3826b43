# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt: 75 columns, the table's own figures, and what a reader needs to look further."""

import json
import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import line_log, make_campaign, meta, write_run
from contract.levels import looks
from graphs.bug_report.report import Contents, build
from graphs.bug_report.sawtooth import round_up, sawtooth
from run.arguments import parse
from tests.support.counters import campaign_of_counters


def report(folder: Path) -> tuple[Compared, str]:
    compared = compare(load_campaign(folder), force=True)
    runs = frozenset((run.variant, run.number) for run in compared.campaign.runs)
    return compared, build(compared, Contents(runs, len(runs)), lambda text: text)


def floats(*values: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array(values, dtype=np.float64)


def test_a_sawtooth_worked_out_by_hand() -> None:
    # 20 columns of 1 s, 4 rows of 1 s: silent 2-6 s (a line came), 10-12 s, and from 17 s on.
    drawn = sawtooth(
        floats(2.0, 6.0, 10.0, 12.0, 17.0),
        floats(0.0, 4.0, 0.0, 2.0, 0.0),
        last=17.0,
        open_gap=3.0,
        across=20,
        up=4,
        width=27,
        height=4,
    )
    assert drawn == [
        "      |     #",
        "      |    ##             ?",
        "      |   ###     #      ??",
        "    0 |  ####    ##     ???",
        "      ++------------------+",
        "       0                 20",
    ]


def test_what_the_kernel_did_differently_is_in_the_report(tmp_path: Path) -> None:
    """Two variants: eight separate counters, in 75 columns; overlapping ones are in compare.txt."""
    counters = [f"compact_{n}" for n in range(9)]
    runs = [
        [{name: side * n for name in counters} | {"pswpin": odd} for n, odd in pairs]
        for side, pairs in (
            (1_000, ((3, 10_000), (4, 10_001), (5, 10_002), (6, 10_003), (7, 11_500))),
            (9_000_000, ((3, 11_000), (4, 80_000), (5, 80_001), (6, 80_002), (7, 80_003))),
        )
    ]
    folder = campaign_of_counters(tmp_path, {"6.12.117": runs[0], "7.2.13": runs[1]})
    compared, text = report(folder)
    part = text.partition("What the kernel did differently\n---")[2].partition("Sawtooth\n---")[0]
    assert max(map(len, part.splitlines())) <= 75
    assert "7.2.13 against 6.12.117: 9 of 10 counters are separate (5 runs each;" in part
    assert re.search(r"\ncompact_0 +3,000-7,000 +27.00M-63.00M +9,000\n", part)
    assert part.count("\ncompact_") == 8 and "pswpin" not in part
    assert re.search(r"\npswpin +10,000-11,500 .* overlap ", compare_text.text(compared))
    assert "none of this is a verdict" in " ".join(part.split())
    without = report(make_campaign(tmp_path / "one", 1, 2, all_counters=True))[1]
    assert "What the kernel did differently" not in without


@pytest.mark.parametrize(("value", "scale"), [(0.0, 0.1), (0.37, 0.4), (11, 15), (20, 20)])
def test_scales_end_at_round_numbers(value: float, scale: float) -> None:
    assert round_up(value) == pytest.approx(scale)


@pytest.mark.parametrize(("variants", "runs"), [(1, 1), (3, 2), (12, 2)])
def test_it_fits_75_columns_and_its_figures_are_the_tables(
    tmp_path: Path, variants: int, runs: int
) -> None:
    compared, text = report(make_campaign(tmp_path, variants, runs))
    assert max(map(len, text.splitlines())) <= 75
    whole = compare_text.text(compared)
    body = text.partition("\nVerdicts\n")[2].partition("\nSawtooth\n")[0]
    figures = re.findall(r"[0-9]+\.[0-9]+", body.partition("\nAgainst ")[0])
    assert len(figures) >= (variants - 1) * 3
    for figure in figures:
        assert figure in whole
    for variant in compared.variants:
        assert " ".join(compared.sentences[variant].split()) in " ".join(text.split())


def test_one_variant_has_no_verdicts_and_every_other_section(tmp_path: Path) -> None:
    _, text = report(make_campaign(tmp_path, 1))
    headings = re.findall(r"^(.+)\n-+$", text, re.MULTILINE)
    assert headings == [
        *("Answer", "Sawtooth", "Where to look", "Failed allocations", "How to reproduce it"),
        *("Kernels", "Machine and workload", "How the runs ended", "Notes", "This bundle"),
    ]


def test_where_to_look_names_file_and_line(tmp_path: Path) -> None:
    for n, gap in ((1, 5.0), (2, 9.5)):
        write_run(
            tmp_path / "k" / str(n),
            {
                "meta.json": json.dumps(meta("k")),  # t0 is 12.5
                "latency-gitk-1.log": line_log([(0.5, "a"), (gap, "b"), (0.2, "c")], 0.1),
                "kern.log": "[    1.0] <6> early\n[   14.0] <4> reclaim is stuck\n"
                "[   15.0] <4> still\n[   99.0] <6> late\n",
            },
        )
    _, text = report(tmp_path)
    look = text.partition("Where to look")[2].partition("How to reproduce")[0]
    assert look.index("run 2: gitk-1 silent for 9.5 s from 0.5 s on") < look.index("run 1:")
    assert "k/2/latency-gitk-1.log, line 2\n" in look
    assert "k/2/kern.log, lines 2 to 3:\n      [ 14.0] <4> reclaim is stuck\n" in look


def test_a_hang_is_told_with_its_last_words_and_drawn_open(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 3, 1)
    (folder / "7.2" / "1" / "kern.log").write_text("[1.0] <4> x\n[2.0] <0> the last word\n")
    _, text = report(folder)
    ends = text.partition("How the runs ended\n")[2]
    assert ends.startswith("------------------\ncompleted: 2, hung: 1.\n\n7.2/1 hung after ")
    assert "    [2.0] <0> the last word\n" in ends
    assert "? is a silence that no line ended" in " ".join(text.split()) and "???" in text
    assert "no line ended it" in text


def pasted(text: str, begin: str) -> list[str]:
    """The words of the command that begins so, as a shell reads them."""
    lines = text.partition("How to reproduce it\n")[2].partition("\nKernels\n")[0].splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip().startswith(begin))
    last = next(i for i in range(first, len(lines)) if not lines[i].endswith("\\"))
    return shlex.split("\n".join(lines[first : last + 1]).replace("\\\n", " "))


def changed(folder: Path, **keys: Any) -> dict[str, Any]:
    """The campaign's plan.toml, written again with these keys."""
    plan = tomllib.loads((folder / "plan.toml").read_text()) | keys
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    return plan


def test_the_command_is_that_of_the_whole_plan_and_is_understood(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 3, 2)  # grown: it began with one kernel and three runs
    changed(
        folder,
        runs=7,
        command="./run_test.sh --kernel debian:6.1 --runs 3 --out /data/mine --plan x.toml",
        parameters={
            **{"profile": "quick", "memory": 384 << 20, "touch": 0.0, "step": 12288},
            "crypt": False,
        },
        machine={
            **{"accel": "kvm", "machine": "host", "clock": "host", "cpus": 3, "evidence": False},
            **{"disk_iops": 0, "disk_bps": 80 << 20, "timeout": 900},
        },
    )
    _, text = report(folder)
    assert max(map(len, text.splitlines())) <= 75
    assert pasted(text, "./run_test.sh --plan") == ["./run_test.sh", "--plan", "plan.toml"]
    words = pasted(text, "./run_test.sh --kernel")
    asked, planned = parse(words[1:]), parse(["--plan", str(folder / "plan.toml")])
    # The first variant is the baseline, and the margin 0.1, where nobody says otherwise.
    assert asked == replace(planned, baseline=None, margin=None)
    assert not {"--baseline", "--margin", "--gitk", "--profile=standard", "--fs"} & set(words)
    assert [one.kernel for one in asked.variants] == ["debian:6.1", "debian:6.12", "debian:7.2"]
    assert (asked.runs, asked.disk_bps, asked.memory) == (7, 80 << 20, 384 << 20)
    assert (asked.machine, asked.clock, asked.evidence, asked.step) == (
        "host",
        "host",
        False,
        12288,
    )
    first = "First asked for as: ./run_test.sh --kernel debian:6.1 --runs 3 --plan x.toml The "
    assert first in " ".join(text.split())
    assert "/data/mine" not in text


def test_looks_are_asked_for_by_their_limit(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2, 2)
    changed(folder, stop_when_sure={"looks": list(looks(20, 1))})
    words = pasted(report(folder)[1], "./run_test.sh --kernel")
    assert "--runs" not in words
    assert parse(words[1:]).looks == looks(20, 1)


@pytest.mark.parametrize(
    "variant",
    [
        {"knobs": {"/proc/sys/vm/swappiness": "10"}},
        {"append": "mitigations=off"},
        {"kernel": "--out=/"},
        {"kernel": "x\ny"},
    ],
)
def test_what_a_command_line_cannot_say_is_left_to_the_plan(
    tmp_path: Path, variant: dict[str, Any]
) -> None:
    folder = make_campaign(tmp_path, 2)
    plan = changed(folder)
    plan["variant"][1] |= variant
    changed(folder, variant=plan["variant"], command="")
    section = report(folder)[1].partition("How to reproduce it\n")[2].partition("\nKernels\n")[0]
    assert "./run_test.sh --plan plan.toml\n" in section
    assert section.count("run_test.sh") == 1


def test_what_the_plan_needs_elsewhere_is_said(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2)
    plan = changed(folder)
    plan["variant"][0] |= {"label": "6.1-<host-1>", "kernel": "<home-1>/linux"}
    changed(folder, variant=plan["variant"])
    text = " ".join(report(folder)[1].split())
    assert "Give other labels in it first: 6.1-<host-1> cannot be one." in text
    assert "not in this bundle: <home-1>/linux." in text


def test_without_a_plan_no_plan_is_named(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2)
    (folder / "plan.toml").unlink()
    assert "No plan was recorded" in report(folder)[1] and "--plan" not in report(folder)[1]


def test_the_exact_version_of_a_kernel_is_named(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2)
    path = folder / "6.1" / "1" / "meta.json"
    facts = json.loads(path.read_text())
    facts["kernel"]["version"] = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)"
    path.write_text(json.dumps(facts))
    section = report(folder)[1].partition("How to reproduce it\n")[2].partition("\nKernels\n")[0]
    assert "    exactly that one: --kernel debian:6.1.192-2\n" in section
    facts["kernel"]["spec"] = "debian:6.1/rt-amd64"
    path.write_text(json.dumps(facts))
    assert "    exactly that one: --kernel debian:6.1.192-2/rt-amd64\n" in report(folder)[1]
    assert "    exactly that one: --kernel debian:6.12-cloud-amd64" in section


def test_configs_differ_by_name(tmp_path: Path) -> None:
    _, text = report(make_campaign(tmp_path, 2))
    assert "CONFIG_LRU_GEN: n -> y" in text
    assert "2 options of 6.12 differ from 6.1's:" in text  # and CONFIG_LOCALVERSION


def test_a_campaign_of_strangers_is_plain_text(tmp_path: Path) -> None:
    _, text = report(make_campaign(tmp_path, 4, 2, is_hostile=True))
    assert max(map(len, text.splitlines())) <= 75
    assert all(char.isprintable() or char == "\n" for char in text)


def test_a_part_says_so(tmp_path: Path) -> None:
    compared = compare(load_campaign(make_campaign(tmp_path, 2)))
    contents = Contents(frozenset({("6.1", 1)}), 2, ["THIS IS A PART."], ["comparison.png"])
    text = build(compared, contents, lambda text: text)
    assert (
        "1 of 2 runs" in " ".join(text.split())
        and "- THIS IS A PART.\n" in text
        and "comparison.png" in text
    )
    assert "(this run is not in the bundle)" in text
    assert "6.12/1/latency" not in text
    forced = build(replace(compared, forced=["cpus differs"]), contents, lambda text: text)
    assert "FORCED" in forced
