# SPDX-License-Identifier: GPL-2.0-or-later
"""A plan.toml is read as the command line is; runs interleave; looks can decide."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import remedy
from contract.levels import ALPHA, looks
from contract.variant import Variant
from run.arguments import parse
from run.dry_run import lines
from run.measure_command import guest_command
from run.plans.asked import merged
from run.run_folders import schedule

PLAN = """
baseline = "6.12"
runs = 5
margin = 0.2

[parameters]
profile = "quick"
memory = "300M"
crypt = false

[machine]
clock = "auto"
disk_iops = 150

[[variant]]
label = "6.12"
kernel = "debian:6.12"

[[variant]]
label = "6.12-mglru-off"
kernel = "debian:6.12"
append = "transparent_hugepage=never"
[variant.knobs]
"/sys/kernel/mm/lru_gen/enabled" = 0
"/proc/sys/vm/swappiness" = "10"
"""


def written(folder: Path, text: str) -> str:
    path = folder / "plan.toml"
    path.write_text(text)
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What the usage error says: one line."""
    with pytest.raises(SystemExit) as error:
        parse(list(argv))
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_plan_says_what_the_command_line_says(tmp_path: Path) -> None:
    options = parse(["--plan", written(tmp_path, PLAN)])
    assert (options.baseline, options.runs, options.margin) == ("6.12", 5, 0.2)
    same = parse(["--profile", "quick", "--memory", "300M", "--no-crypt"])
    assert options.parameters == same.parameters
    assert options.disk_iops == 150
    assert options.evidence
    assert options.variants == (
        Variant("debian:6.12", "6.12"),
        Variant(
            "debian:6.12",
            "6.12-mglru-off",
            "transparent_hugepage=never",
            (("/sys/kernel/mm/lru_gen/enabled", "0"), ("/proc/sys/vm/swappiness", "10")),
        ),
    )


def test_a_plan_keeps_that_there_was_no_evidence(tmp_path: Path) -> None:
    kept = parse(["--no-evidence"]).in_machine["evidence"]
    text = f"[machine]\nevidence = {str(kept).lower()}\n"
    assert not parse(["--plan", written(tmp_path, text)]).evidence
    assert parse([]).in_machine["evidence"]


def test_the_command_line_beats_the_plan(tmp_path: Path) -> None:
    options = parse(["--plan", written(tmp_path, PLAN), "--runs", "7", "--memory", "400M"])
    assert options.runs == 7 and options.memory == 400 << 20
    sure = PLAN.replace("runs = 5", "stop_when_sure = 20")
    options = parse(["--plan", written(tmp_path, sure), "--runs", "3"])
    assert options.runs == 3 and options.looks == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runs = [", "plan.toml: "),
        ("rums = 5", "the plan has no key 'rums'"),
        ('[parameters]\nprofil = "quick"', "[parameters] has no key 'profil'"),
        ('[parameters]\nprofile = "slow"', "plan.toml: argument --profile: invalid choice: 'slow'"),
        ("[parameters]\nmemory = true", "parameters.memory"),
        ("[parameters]\ncrypt = 1", "plan.toml: parameters.crypt"),
        ("[variant]\nlabel = 'a'", "two brackets"),
        ("[[variant]]\nlabel = '../a'", "not a label"),
        ("[[variant]]\nlabel = 'a'\n[[variant]]\nlabel = 'a'", "two variants with the label 'a'"),
        ('[[variant]]\nappend = "a\\nb"', "variant.append"),
        ("[[variant]]\n[variant.knobs]\n'/etc/passwd' = 1", "not a knob"),
        ("[[variant]]\n[variant.knobs]\n'/sys/../etc/passwd' = 1", "not a knob"),
        ("[[variant]]\n[variant.knobs]\n'/proc/sys/vm/swappiness' = true", "swappiness"),
        ("[stop_when_sure]\nlooks = []", "looks"),
        ("[stop_when_sure]\nlooks = [9, 3]", "looks"),
        ("alpha = 0.2", "alpha"),
        ("[parameters]\ngitk = 0", "argument --gitk"),
        ("baseline = '--device'", "baseline"),
        ("runs = 0", "argument --runs"),
    ],
)
def test_a_bad_plan_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    assert said in refused(capsys, "--plan", written(tmp_path, text))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("--plan /none/plan.toml", "/none/plan.toml: No such file"),
        ("--resume /none", "no campaign there"),
        ("--kernel a --kernel b --label x", "1 --label for 2 --kernel"),
        ("--stop-when-sure 20", "two variants"),
        ("--kernel a --kernel b --stop-when-sure 3", "up to 3 runs"),
        ("--kernel a --kernel b --stop-when-sure 20 --runs 3", "do not go together"),
        ("--knob /etc/passwd=1", "not a knob"),
        ("--knob /proc/sys/vm/swappiness", "not a knob"),
        ("--margin 1.5", "not a ratio"),
        ("--knob /proc/sys/a=1 --knob /proc/sys/a=2", "given twice: /proc/sys/a"),
        ("--device /dev/x --runs 3", "--runs is for VMs"),
        ("--device /dev/x --append quiet", "--append is for a VM"),
    ],
)
def test_a_bad_campaign_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], argv: str, said: str
) -> None:
    assert said in refused(capsys, *argv.split())


def test_a_stored_plan_goes_on_with_the_same_command(tmp_path: Path) -> None:
    text = PLAN + '[[run]]\nvariant = "6.12"\nnumber = 1\norder = 1\n'
    written(tmp_path, text.replace("baseline", 'format = 1\nalpha = 0.05\ncommand = "x"\nbaseline'))
    alone = parse(["--resume", str(tmp_path)])
    assert [variant.label for variant in alone.variants] == ["6.12", "6.12-mglru-off"]
    same = parse(["--resume", str(tmp_path), "--kernel", "debian:6.12"])
    assert same.variants == alone.variants
    more = parse(["--resume", str(tmp_path), "--kernel", "debian:7.2", "--runs", "9"])
    assert more.variants == (*alone.variants, Variant("debian:7.2"))
    assert more.runs == 9 and more.parameters == alone.parameters


def stored_plan(folder: Path, variants: str) -> str:
    plan = 'format = 1\nalpha = 0.05\ncommand = "x"\nruns = 5\n' + variants
    written(folder, plan + '[[run]]\nvariant = "a"\nnumber = 1\norder = 1\n')
    return str(folder)


def test_a_remedy_is_added_beside_the_untreated_variants_of_a_resumed_campaign(
    tmp_path: Path,
) -> None:
    plan = stored_plan(
        tmp_path,
        '[[variant]]\nlabel = "a"\nkernel = "debian:6.12"\nswap = "disk"\n'
        '[[variant]]\nlabel = "b"\nkernel = "debian:6.12"\nswap = "zram"\n'
        '[[variant]]\nlabel = "c"\nkernel = "debian:6.12"\nremedy = "min-ttl"\nversion = "1"\n',
    )
    stored = parse(["--resume", plan]).variants
    assert [variant.label for variant in stored] == ["a", "b", "c"]
    remedies = ["--remedy", "bfq", "--remedy", "zram-double"]
    grown = parse(["--resume", plan, *remedies]).variants
    assert grown[:3] == stored
    # zram-double sets the swap itself, so both untreated variants become the same with it.
    assert [(variant.remedy, variant.swap.kind, variant.label) for variant in grown[3:]] == [
        ("bfq", "disk", ""),
        ("zram-double", "zram", ""),
        ("bfq", "zram", ""),
    ]
    kernel_and_swaps = ["--kernel", "debian:6.12", "--swap", "disk", "--swap", "zram"]
    assert parse(["--resume", plan, *kernel_and_swaps, *remedies]).variants == grown
    with_all_remedies = parse(["--resume", plan, "--remedies"]).variants
    assert {variant.remedy for variant in with_all_remedies} == {"", *remedy.named()}


def test_a_remedy_needs_an_untreated_variant_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = stored_plan(tmp_path, '[[variant]]\nlabel = "a"\nremedy = "min-ttl"\nversion = "1"\n')
    assert "give the --kernel" in refused(capsys, "--resume", plan, "--remedy", "bfq")
    message = refused(capsys, "--resume", plan, "--remedy", "bfq", "--label", "mine")
    assert "--label needs the --kernel that it is for" in message


def test_the_same_kernel_twice_is_two_variants() -> None:
    twice = [Variant("debian:6.12"), Variant("debian:6.12")]
    assert merged([], twice) == tuple(twice)
    stored = [Variant("debian:6.12", "6.12"), Variant("debian:6.12", "6.12-2")]
    assert merged(stored, twice) == tuple(stored)
    assert merged(stored, [*twice, Variant("debian:6.12")])[2:] == (Variant("debian:6.12"),)
    assert merged(stored, [Variant("debian:6.12", "other")])[2:] == (
        Variant("debian:6.12", "other"),
    )


def test_runs_interleave() -> None:
    runs = {"a": 2, "b": 2, "c": 2}
    done: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
    assert schedule("abc", runs, done) == [
        *(("a", 1), ("b", 1), ("c", 1)),
        *(("a", 2), ("b", 2), ("c", 2)),
    ]
    done = {"a": {1, 2}, "b": {2}, "c": set()}
    assert schedule("abc", runs, done) == [("b", 1), ("c", 1), ("c", 2)]


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sets(st.integers(1, 9)), min_size=1),
    st.integers(1, 9),
)
def test_nothing_is_done_twice_and_nothing_is_forgotten(
    done: dict[str, set[int]], runs: int
) -> None:
    todo = schedule(sorted(done), dict.fromkeys(done, runs), done)
    assert len(set(todo)) == len(todo)
    wanted = {(label, n) for label in done for n in range(1, runs + 1)}
    had = {(label, n) for label, numbers in done.items() for n in numbers}
    assert set(todo) == wanted - had
    assert [number for _, number in todo] == sorted(number for _, number in todo)


@given(st.integers(1, 60), st.integers(1, 119))
def test_a_look_can_decide(limit: int, comparisons: int) -> None:
    try:
        found = looks(limit, comparisons)
    except ValueError:
        # Not even all runs at one look could.
        assert 2 / math.comb(2 * limit, limit) > ALPHA / comparisons
        return
    assert found[-1] == limit and list(found) == sorted(set(found))
    smallest_p = 2 / math.comb(2 * found[0], found[0])
    assert smallest_p * comparisons <= ALPHA / len(found)


def test_looks_worked_out_on_paper() -> None:
    # 5, 7, 10, 14, 20: five looks, level 0.01 each; 5 v 5 runs can give 2/252 = 0.0079.
    assert looks(20, 1) == (5, 7, 10, 14, 20)
    # 4 v 4 gives 2/70 = 0.029, 3 v 3 only 0.1.
    assert looks(4, 1) == (4,)
    with pytest.raises(ValueError, match="up to 3 runs"):
        looks(3, 1)


def test_a_stored_limit_stays_unless_another_is_given(tmp_path: Path) -> None:
    text = PLAN.replace("runs = 5", "").replace(
        "[parameters]", "[stop_when_sure]\nlooks = [4]\n[parameters]"
    )
    written(tmp_path, text)
    assert parse(["--resume", str(tmp_path)]).looks == (4,)
    raised = parse(["--resume", str(tmp_path), "--stop-when-sure", "10"])
    assert raised.looks == (5, 7, 10) and raised.runs == 10


def test_a_campaigns_own_plan_asks_for_another_that_stops_when_sure(tmp_path: Path) -> None:
    grown = "[stop_when_sure]\nlooks = [10, 14, 20]\n[parameters]"
    path = written(tmp_path, PLAN.replace("runs = 5", "runs = 20").replace("[parameters]", grown))
    again = parse(["--plan", path])
    assert again.looks == (5, 7, 10, 14, 20) and again.runs == 20
    fixed = parse(["--plan", path, "--runs", "3"])
    assert fixed.looks == () and fixed.runs == 3


def test_what_may_follow_a_knob_in_a_plan() -> None:
    assert parse(["--knob", "/sys/block/{disk}/queue/scheduler=none"]).variants[0].knobs == (
        ("/sys/block/{disk}/queue/scheduler", "none"),
    )


FOUR = ["--swap", "disk", "--swap", "zram", "--swap", "zswap,pool=30", "--swap", "none"]


def test_each_kernel_with_each_swap_is_a_variant(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = ["--kernel", "debian:6.1", "--kernel", "debian:6.12"]
    found = parse([*kernels, "--swap", "zram,size=96M", "--swap", "none"]).variants
    assert [(one.kernel, str(one.swap)) for one in found] == [
        ("debian:6.1", "zram,size=96M"),
        ("debian:6.1", "none"),
        ("debian:6.12", "zram,size=96M"),
        ("debian:6.12", "none"),
    ]
    labels = [word for label in "abcd" for word in ("--label", label)]
    assert [one.label for one in parse([*FOUR, *labels]).variants] == list("abcd")
    said = refused(capsys, *FOUR, "--label", "a")
    assert "1 --label for 1 --kernel with 4 --swap: as many, or none" in said


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--swap", "zram", "--swap", "zram"], "a swap is given twice: zram"),
        (["--swap", "tape"], "not a swap: 'tape'"),
        (["--device", "/dev/x", *FOUR], "--swap may be given once with --device"),
    ],
)
def test_a_swap_that_will_not_do(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert said in refused(capsys, *argv)


def test_without_swap_there_is_no_knob_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    knob = ["--knob", "/sys/block/{swap}/queue/read_ahead_kb=8"]
    assert len(parse([*FOUR[:-2], *knob]).variants) == 3
    said = "knob /sys/block/{swap}/queue/read_ahead_kb: with --swap none there is no {swap}"
    assert said in refused(capsys, *FOUR, *knob)
    assert said in refused(capsys, "--device", "/dev/x", "--swap", "none", *knob)
    text = '[[variant]]\nswap = "none"\n[variant.knobs]\n"/sys/block/{swap}/queue/x" = 8\n'
    assert "there is no {swap}" in refused(capsys, "--plan", written(tmp_path, text))


def test_a_plan_says_the_swap_of_each_variant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[[variant]]\n[[variant]]\nlabel = "z"\nswap = "zram,algorithm=lz4"\n'
    plan = written(tmp_path, text)
    assert [str(one.swap) for one in parse(["--plan", plan]).variants] == [
        "disk",
        "zram,algorithm=lz4",
    ]
    assert "--swap does not go with --plan" in refused(capsys, "--plan", plan, "--swap", "none")
    bad = written(tmp_path, '[[variant]]\nswap = "zswap,size=1G"\n')
    assert "zswap takes pool=, algorithm=" in refused(capsys, "--plan", bad)


def test_what_measures_is_told_the_swap() -> None:
    options = parse(FOUR)
    told = [guest_command(options, one).split() for one in options.variants]
    assert [words[words.index("--swap") + 1] for words in told] == [
        *("disk", "zram", "zswap,pool=30", "none")
    ]
    argv = ["--device", "/dev/x", "--swap", "zram,size=64M"]
    assert str(parse(argv).variants[0].swap) == "zram,size=64M"


def test_a_dry_run_says_the_swap() -> None:
    said = "\n".join(lines(parse([*FOUR, "--kernel", "debian:6.12"])))
    assert "variant debian:6.12-zram: " in said
    assert "swap: on zram, half of the memory (4 GiB at most), the kernel's own algorithm" in said
    assert "swap: on the disk behind zswap, at most 30 % of the memory" in said
    assert "order: debian:6.12-disk 1, debian:6.12-zram 1, debian:6.12-zswap-pool30 1, " in said
    assert "swap: none" in "\n".join(lines(parse(["--device", "/dev/nonesuch", "--swap", "none"])))
    assert "swap:" not in "\n".join(lines(parse(["--kernel", "debian:6.12"])))
