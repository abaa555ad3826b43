# SPDX-License-Identifier: GPL-2.0-or-later
"""summary.txt: its figures, its width, its verdicts, and that one run gets none."""

import json
from pathlib import Path

import pytest

from analysis.reading.load import Campaign, load_campaign
from analysis.summary import main
from analysis.text.summary_files import details, summary, try_compare
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import line_log, make_campaign, meta, table, write_run
from errors import UserError
from tests.support.loading import one_run

PARAMETERS = {"profile": "quick", "gitk": 2}
HOSTILE = "`touch x` $HOME @a \"'\n\x1b[31m<script>alert(1)</script> \ud800" + "W" * 300


def text_of(folder: Path) -> str:
    text = summary(load_campaign(folder))
    assert all(len(line) <= 75 for line in text.splitlines())
    return text


def page_of(folder: Path) -> str:
    """summary.txt of a campaign."""
    campaign = load_campaign(folder)
    text = summary(campaign, try_compare(campaign))
    assert all(len(line) <= 75 for line in text.splitlines())
    return text


def test_the_figures_of_a_run_made_by_hand(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("6.1", parameters=PARAMETERS, observer_problems=["x"])),
        "latency-gitk-1.log": line_log([(0.1, "x"), (31.2, "x")], 0.1),
        "latency-gitk-2.log": line_log([(2.0, "x"), (0.5, "x")], 0.0),
        "latency-player.log": line_log([(0.1, "chunk 1 late 0.000"), (2, "chunk 2 late 1.900")], 0),
        "latency-heartbeat.log": line_log([(0.1, "beat 1 late 0.000"), (9, "beat 2 late 8.9")], 0),
        "vmstat.tsv": table(
            {
                "elapsed_s": [0.0, 0.25, 0.5],
                "late_s": [0.0, 0.012, 0.0],
                "pswpin": [256, 300, 768],
                "pswpout": [512, 10, 600],
                "pgpgin": [1024, 1024, 4096],
                "nr_writeback": [0, 1234, 5],
            }
        ),
        "kern.log": "[    1.0] <4> gitk: page allocation failure: order:2\n",
    }
    write_run(tmp_path / "6.1" / "1", files)
    text = " ".join(text_of(tmp_path).split())
    # 31.2 and 2.0 s of 31.4 and 2.5 s.
    assert "Frozen for 98 % of the time, at worst for 31.2 s (gitk-1). The stalls" in text
    assert "of two gitk's add up to 33.2 s; each of them ran for 2 to 31 s." in text
    assert "gitk-1 31.4 3 31.4 1 31.2 1 31.2 31.2 0.1" in text
    assert "audio 1 skip, 1.9 s in all, the longest 1.9 s" in text
    assert "heartbeat 1 of 2 deadlines missed by more than 0.1 s, the worst by 8.900 s" in text
    assert "swap in 2.0 MiB, out not available" in text  # pswpout went back: no figure
    assert "page IO in 3.0 MiB, out not available" in text
    assert "nr_writeback 1,234 pages at the most" in text
    assert "1 page allocation failure, 0 OOM kills, 0 hung tasks" in text
    assert "16.6 MiB locked, 0.53 % of one CPU, latest sample 0.012 s late" in text
    assert "with care observer: x" in text
    assert "One run is a sign, not a finding." in text


def test_what_observing_took_of_the_memory_is_the_measured_figure(tmp_path: Path) -> None:
    observing = {"memory_kib": 6144, "locked_kib": 4096, "kernel_kib": 1536, "rest_kib": 512}
    facts = json.dumps(meta("6.1", parameters=PARAMETERS, observing=observing))
    write_run(tmp_path / "6.1" / "1", {"meta.json": facts})
    text = " ".join(text_of(tmp_path).split())
    assert "observers 6.0 MiB of memory (4.0 MiB locked, 1.5 MiB of the kernel's), " in text


def few_lines(run: Path, stall: float, state: str = "completed") -> Path:
    """A run of one gitk with one stall of so many seconds."""
    facts = meta(run.parent.name, parameters={"gitk": 1})
    log = line_log([(0.1, "x"), (stall, "x")], 0.1)
    return write_run(run, {"meta.json": json.dumps(facts), "latency-gitk-1.log": log}, state)


def test_a_campaign_begins_with_its_verdicts_and_fits_a_screen(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 3, 5)
    text = page_of(folder)
    lines = text.splitlines()
    assert len(lines) < 50
    compared = compare(load_campaign(folder))
    words = " ".join(text.split())
    at = [words.index(" ".join(compared.sentences[one].split())) for one in compared.variants]
    assert at == sorted(at)
    begin = lines.index(next(line for line in lines if line.split()[:2] == ["variant", "verdict"]))
    first = ["6.1", "baseline", "35", "%", "59.8", "s", "304.4", "±8.5"]
    assert lines[begin + 1].split() == first
    for line, variant in zip(lines[begin + 2 : begin + 4], ("6.12", "7.2"), strict=True):
        assert line.split()[:2] == [variant, compared.primary[variant].verdict]
    assert lines[begin + 3].split()[2:7] == [">=26", "%", "70.5", "s", ">=197.5"]
    runs = [line for line in lines if " completed " in line or " hung " in line]
    assert len(runs) == 15 and runs[-1].split()[:3] == ["7.2", "5", "hung"]
    assert "Failed, counted as the worst: 7.2/5 (hung)." in text
    assert "compare.txt" in text and "sign, not a finding" not in text
    each = details(load_campaign(folder))
    assert each.count("\nended        ") == 15 and "\n6.12, run 3 of 5\n" in each
    assert "still silent when the machine was last heard" in " ".join(each.split())


def test_the_runs_are_in_the_plans_order_and_single_ones_are_named(tmp_path: Path) -> None:
    for variant, runs in (("6.12", 1), ("6.1", 11), ("5.10", 1)):
        for n in range(1, runs + 1):
            few_lines(tmp_path / variant / str(n), 3 + n)
    plan = 'format = 1\nbaseline = "6.1"\n' + "".join(
        f'[[variant]]\nlabel = "{one}"\nkernel = "x"\n' for one in ("6.12", "6.1", "5.10")
    )
    (tmp_path / "plan.toml").write_text(plan)
    text = page_of(tmp_path)
    shown = [line.split()[:2] for line in text.splitlines() if " completed " in line]
    wanted = [["6.1", str(n)] for n in range(1, 12)] + [["6.12", "1"], ["5.10", "1"]]
    assert shown == wanted
    assert "One run is a sign, not a finding (5.10, 6.12)." in text


def test_of_many_runs_only_those_that_went_wrong_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for index in range(1, 14):
        for n in range(1, 4):
            failed = index == 5 and n == 2
            run = tmp_path / f"v{index:02d}" / str(n)
            few_lines(run, 9 * index + n, "panicked" if failed else "completed")
    text = page_of(tmp_path)
    assert "0 regressed, 0 improved, 0 equivalent, 12 undecided" in " ".join(text.split())
    assert "39 runs; 38 of them completed, the others:" in text
    listed = [line.split()[:3] for line in text.splitlines() if line.endswith("190.0 s")]
    assert listed == [["v05", "2", "panicked"]]
    some = details(load_campaign(tmp_path))
    assert some.startswith(f"Desktop freezes: {tmp_path.name}") and "14 of 39 runs:" in some
    shown = [line for line in some.splitlines() if ", run " in line]
    medians = {f"v{n:02d}, run 2 of 3" for n in range(1, 14)}
    assert set(shown) == medians | {"v05, run 3 of 3"} and len(shown) == 14
    assert main([str(tmp_path), "--all"]) == 0
    assert capsys.readouterr().out.count("\nended        ") == 39


def test_what_is_not_compared_says_why_and_judges_nothing(tmp_path: Path) -> None:
    for cpus in (2, 4):
        run = few_lines(tmp_path / f"on-{cpus}" / "1", 3)
        (run / "meta.json").write_text(json.dumps(meta(f"on-{cpus}", cpus=cpus)))
    text = page_of(tmp_path)
    assert text.split("\n\n")[1].startswith("Not compared: cpus differs: 2 in on-2/1")
    assert "compare.txt" not in text and "index.html" not in text
    for word in ("better", "regressed", "improved", "undecided", "baseline"):
        assert word not in text
    assert "One run is a sign, not a finding (on-2, on-4)." in text
    assert summary(*forced(tmp_path)).split("\n\n")[1].startswith("FORCED (--force): ")


def forced(folder: Path) -> tuple[Campaign, Compared | UserError]:
    campaign = load_campaign(folder)
    return campaign, try_compare(campaign, force=True)


def test_strangers_values_neither_break_a_line_nor_reach_the_terminal(tmp_path: Path) -> None:
    deep: dict[str, object] = {key: HOSTILE for key in ("cpu_model", "fs", "crypt", "label")}
    deep |= {"kernel": {"release": HOSTILE}, "parameters": {HOSTILE: HOSTILE, "n": 10**300}}
    deep |= {"cpus": 1e300, "mem_total_kib": float("nan"), "observers": [{"cpu_s": 1}, 3]}
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps({**meta("x"), **deep}),
        "latency-gitk-1.log": line_log([(9_999_999.0, "x")], None),
        f"latency-{'z' * 150}.log": line_log([(0.1, "\x1b[31m")], 0.0),
    }
    for n in ("1", "2"):
        alone = write_run(tmp_path / ("v" * 120) / n, files, "lost", why=HOSTILE)
    for text in (page_of(tmp_path), details(load_campaign(tmp_path)), text_of(alone)):
        assert "\x1b" not in text and text.encode("utf-8")
        assert all(len(line) <= 75 for line in text.splitlines())


def test_no_complete_run_is_an_error_of_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "k" / "1", {"meta.json": json.dumps(meta("k"))}, state=None)
    with pytest.raises(UserError, match=r"no run has a status.json: k/1"):
        summary(load_campaign(tmp_path))


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path / "c", 1)
    assert main([str(tmp_path / "c")]) == 0
    assert "gitk-4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("swap", "said"),
    [
        ({"kind": "none", "size_kib": 0}, ["no swap"]),
        (
            {
                **{"kind": "zram", "size_kib": 99_328, "algorithm": "lz4"},
                "mm_stat": {"orig_data_size": 3 << 20, "mem_used_max": 1 << 20},
                "io_stat": {"failed_writes": 2},
            },
            [
                "97 MiB of swap on zram (lz4)",
                "zram 1.0 MiB of memory at the most; 2 failed writes",
            ],
        ),
        (
            {"kind": "zswap", "size_kib": 2_097_152, "algorithm": "lzo", "pool": 20},
            [
                "2,048 MiB of swap behind zswap (lzo, at most 20 % of the memory)",
                "zswap in 2.0 MiB, out 4.0 MiB; written back not available",
            ],
        ),
    ],
)
def test_a_run_says_where_it_swapped_to(
    tmp_path: Path, swap: dict[str, object], said: list[str]
) -> None:
    vmstat = "elapsed_s\tlate_s\tzswpin\tzswpout\n0\t0\t0\t0\n1\t0\t512\t1024\n"
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("k", swap=swap)),
        "vmstat.tsv": vmstat,
    }
    one_run(tmp_path, files)
    text = " ".join(summary(load_campaign(tmp_path)).split())
    assert all(words in text for words in said), text
