# SPDX-License-Identifier: GPL-2.0-or-later
"""Variants with workloads of their own in one plan: asked for, stored, gone on with, grown."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.options import Options
from contract.plan import parse_plan
from contract.variant import Variant
from errors import Exit, UserError
from run.arguments import parse
from run.campaign import remaining
from run.dry_run import lines
from run.measure_command import guest_command, guest_job
from tests.run.test_campaign import finish, opened, plan
from workloads.mixed import MORE_MEMORY

MIXED = """
runs = 2
[parameters]
profile = "quick"
commits = 3000
[[variant]]
kernel = "debian:6.1"
[[variant]]
kernel = "debian:6.12"
[[variant]]
kernel = "debian:6.1"
workload = "memcg-dirty"
load = "size=64M"
[[variant]]
kernel = "debian:6.12"
workload = "memcg-dirty"
load = "size=64M"
"""
LABELS = ["6.1", "6.12", "6.1-memcg-dirty", "6.12-memcg-dirty"]
WHOLE = "limit=100M,size=64M,version=any,writers=2"
ONE_MORE = """
[[variant]]
kernel = "debian:7.2"
workload = "memcg-dirty"
load = "size=64M"
"""


def asked(folder: Path, text: str = MIXED, *argv: str) -> Options:
    path = folder / "asked.toml"
    path.write_text(text)
    return parse(["--plan", str(path), *argv])


def test_each_variant_has_its_workloads_load_and_memory(tmp_path: Path) -> None:
    options = asked(tmp_path)
    assert options.workloads == ("desktop", "memcg-dirty")
    assert options.variants[0] == Variant("debian:6.1")
    own = Variant("debian:6.1", workload="memcg-dirty", load=WHOLE, memory=1 << 30)
    assert options.variants[2] == own
    assert (options.memory, options.most_memory) == (230 << 20, 1 << 30)
    assert options.gitks and options.parameters["commits"] == 3000
    # Of each variant the runs are those of a campaign of its workload alone.
    first, other = (options.of(options.variants[place]) for place in (0, 2))
    same = parse(["--profile", "quick", "--commits", "3000"])
    assert (first.parameters, first.memory) == (same.parameters, same.memory)
    alone = parse(["--profile", "quick", "--workload", "memcg-dirty", "--load", "size=64M"])
    assert (other.parameters, other.memory) == (alone.parameters, 1 << 30)
    assert not other.gitks and "commits" not in other.parameters
    guests = guest_command(options, own)
    assert guests == guest_command(alone, Variant("debian:6.1"))
    assert guest_job(options, own).files == guest_job(alone, alone.variants[0]).files
    assert "gitk-4" in str(guest_job(options, options.variants[0]).files)


def test_memory_that_is_said_is_every_workloads_or_the_variants(tmp_path: Path) -> None:
    assert asked(tmp_path, MIXED, "--memory", "512M").most_memory == 512 << 20
    said = MIXED.replace('load = "size=64M"', 'load = "size=64M"\nmemory = "2G"')
    options = asked(tmp_path, said)
    assert (options.memory, options.variants[3].memory) == (230 << 20, 2 << 30)


def test_a_campaign_of_another_workload_may_have_a_desktop_in_it(tmp_path: Path) -> None:
    text = '[parameters]\nprofile = "quick"\nworkload = "memcg-dirty"\n[[variant]]\n'
    text += '[[variant]]\nworkload = "desktop"\n[[variant]]\nworkload = "mixed"\n'
    options = asked(tmp_path, text, "--gitk", "2")
    assert (options.memory, options.variants[1].memory) == (1 << 30, 230 << 20)
    assert options.variants[2].memory == (230 << 20) + MORE_MEMORY
    assert options.most_memory == 1 << 30
    assert options.of(options.variants[1]).parameters["gitk"] == 2
    assert "gitk" not in options.of(options.variants[0]).parameters


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"memcg-dirty"\nload', '"nothing"\nload'), "unknown workload 'nothing'"),
        (('load = "size=64M"', 'load = "nothing=1"'), "no parameter 'nothing'"),
        ((ONE_MORE, ONE_MORE.replace("64M", "65M")), "differ in load: limit=100M,size=64M"),
        ((ONE_MORE, ONE_MORE + 'memory = "2G"'), "differ in memory: 1073741824 and 2147483648"),
        (('workload = "memcg-dirty"\n', ""), "desktop has no parameter 'size'"),
    ],
)
def test_what_could_not_be_compared_is_refused(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    with pytest.raises(UserError, match=said) as refused:
        asked(tmp_path, (MIXED + ONE_MORE).replace(*change))
    assert refused.value.status == 2 and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workload = 3", "not a workload"),
        ('workload = "memcg-dirty"\nload = "size"', "not parameters"),
        ('memory = "1"', "at least 128M"),
        ("memory = true", "variant.memory"),
    ],
)
def test_a_bad_value_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    with pytest.raises(SystemExit):
        asked(tmp_path, f"[[variant]]\n{text}\n")
    assert said in capsys.readouterr().err


def test_an_option_that_no_variants_workload_heeds_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = '[[variant]]\nworkload = "memcg-dirty"\n' * 2
    assert asked(tmp_path, both).workloads == ("memcg-dirty",)
    with pytest.raises(SystemExit):
        asked(tmp_path, both, "--gitk", "2")
    assert "--gitk is for a workload with gitk's, not for memcg-dirty" in capsys.readouterr().err


SHRINKER, DESKTOP = '[[variant]]\nworkload = "shrinker"\n', "[[variant]]\n"


def test_workloads_about_two_file_systems_are_asked_which(tmp_path: Path) -> None:
    both = DESKTOP + SHRINKER
    with pytest.raises(UserError, match="desktop is about ext4, shrinker is about xfs") as raised:
        asked(tmp_path, both)
    assert raised.value.status == Exit.USAGE
    with pytest.raises(UserError, match="about xfs, desktop is about ext4"):
        asked(
            tmp_path,
            '[parameters]\nworkload = "shrinker"\n[[variant]]\n'
            + both.replace(DESKTOP, '[[variant]]\nworkload = "desktop"\n', 1),
        )
    assert asked(tmp_path, both, "--fs", "xfs").fs == "xfs"
    assert asked(tmp_path, SHRINKER).fs == "xfs" and asked(tmp_path, DESKTOP).fs == "ext4"


def test_a_workload_that_comes_to_a_campaign_takes_its_file_system(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    (campaign / "plan.toml").write_text(
        '[parameters]\nfs = "ext4"\nprofile = "quick"\n[[variant]]\nlabel = "a"\n'
    )
    more = tmp_path / "more.toml"
    more.write_text('[[variant]]\nlabel = "b"\nworkload = "shrinker"\n')
    argv = ["--resume", str(campaign), "--runs", "2", "--plan", str(more)]
    with pytest.raises(UserError, match="desktop is about ext4, shrinker is about xfs"):
        parse(argv)
    assert parse([*argv, "--fs", "ext4"]).fs == "ext4"
    more.write_text('[[variant]]\nlabel = "b"\nworkload = "memcg-dirty"\n')
    assert parse(argv).fs == "ext4"


def test_a_dry_run_says_each_vm(tmp_path: Path) -> None:
    text = "\n".join(
        lines(
            asked(tmp_path, DESKTOP + SHRINKER + '[[variant]]\nworkload = "seqio"\n', "--fs", "xfs")
        )
    )
    assert "512 MiB, 1 CPU of 500 MIPS, a throw-away disk" in text
    assert "256 MiB, 1 CPU of 500 MIPS, 5 throw-away disks" in text
    assert "slab xfs_inode" in text


def test_looks_allow_for_the_comparisons_of_all_workloads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    looks = asked(tmp_path, MIXED.replace("runs = 2", "stop_when_sure = 20")).looks
    three = parse([*(["--kernel", "debian:6.1"] * 3), "--stop-when-sure", "20"]).looks
    assert looks == three  # two comparisons each
    with pytest.raises(SystemExit):
        asked(
            tmp_path,
            '[[variant]]\n[[variant]]\nworkload = "memcg-dirty"\n',
            *("--stop-when-sure", "20"),
        )
    assert "--stop-when-sure compares" in capsys.readouterr().err


def test_a_mixed_campaign_is_stored_resumed_and_grown(tmp_path: Path) -> None:
    named, out = tmp_path / "asked.toml", tmp_path / "mine"
    named.write_text(MIXED)
    campaign = opened(out, "--out", str(out), "--plan", str(named))
    assert campaign.left()[:4] == [(label, 1) for label in LABELS]
    campaign.begin(*campaign.left()[0])
    left = [(label, 1) for label in LABELS] + [(label, 2) for label in LABELS]
    for argv in (["--resume", str(out)], ["--resume", str(out), "--plan", str(named)]):
        assert opened(out, *argv).left() == left  # the cut run is to be repeated
        assert remaining(parse(argv)) == left
    finish(opened(out, "--resume", str(out)))
    stored = plan(out)
    assert stored["variant"][0].keys().isdisjoint({"workload", "load", "memory"})
    own = {key: stored["variant"][2][key] for key in ("workload", "load", "memory")}
    assert own == {"workload": "memcg-dirty", "load": WHOLE, "memory": 1 << 30}
    assert stored["parameters"]["workload"] == "desktop"
    assert stored["parameters"]["commits"] == 3000
    # A variant more takes the memory of the others of its workload, not the desktop's.
    named.write_text(MIXED + ONE_MORE)
    more = ["--resume", str(out), "--plan", str(named)]
    assert opened(out, *more).left() == [("7.2-memcg-dirty", 1), ("7.2-memcg-dirty", 2)]
    # So many more of one, of which the desktop's parameters are none: they stay in the plan.
    one = ONE_MORE.replace("[[variant]]", f'[[variant]]\nlabel = "{LABELS[2]}"')
    named.write_text("[parameters]\nprofile = 'quick'\n" + one.replace("7.2", "6.1"))
    added = ["--out", str(out), "--plan", str(named)]
    assert parse(added).workloads == ("memcg-dirty",)
    assert opened(out, *added).left() == [(LABELS[2], 3)]
    assert plan(out)["parameters"]["commits"] == 3000


def test_a_finished_campaign_may_grow_by_another_workload(tmp_path: Path) -> None:
    named, out = tmp_path / "asked.toml", tmp_path / "mine"
    argv = ["--workload", "memcg-dirty", "--profile", "quick", "--kernel", "debian:6.1"]
    finish(opened(out, "--out", str(out), *argv))
    named.write_text('[[variant]]\nkernel = "debian:6.1"\nworkload = "desktop"\n')
    more = ["--resume", str(out), "--plan", str(named)]
    assert opened(out, *more).left() == [("6.1-desktop", 1)]
    found = plan(out)
    assert found["parameters"]["workload"] == "memcg-dirty" and found["parameters"]["step"] == 512
    assert found["variant"][1]["memory"] == 230 << 20
    assert opened(out, "--resume", str(out)).left() == [("6.1-desktop", 1)]


def test_another_load_of_a_stored_variant_is_refused(tmp_path: Path) -> None:
    named, out = tmp_path / "asked.toml", tmp_path / "mine"
    named.write_text(MIXED)
    finish(opened(out, "--out", str(out), "--plan", str(named)))
    labelled = MIXED.replace("64M", "32M")
    for label in LABELS:
        labelled = labelled.replace(
            "[[variant]]\nkernel", f'[[variant]]\nlabel="{label}"\nkernel', 1
        )
    named.write_text(labelled)
    with pytest.raises(UserError, match=r"6\.1-memcg-dirty: its runs in .* have another load"):
        opened(out, "--out", str(out), "--plan", str(named))


def test_a_desktop_is_not_added_to_runs_of_another_workload(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    argv = ["--out", str(out), "--profile", "quick", "--kernel", "debian:6.1"]
    finish(opened(out, *argv, "--workload", "memcg-dirty"))
    with pytest.raises(UserError, match="holds runs with workload memcg-dirty, and this asks for"):
        opened(out, *argv, "--memory", "1G")


def test_an_extension_is_counted_within_the_workloads(tmp_path: Path) -> None:
    """Five runs of each can decide; two variants of one workload each compare nothing."""
    named, out = tmp_path / "asked.toml", tmp_path / "mine"
    named.write_text(MIXED)
    finish(opened(out, "--out", str(out), "--plan", str(named), "--runs", "5"))
    opened(out, "--resume", str(out), "--runs", "6")
    assert plan(out)["extended"] == [5]
    apart = tmp_path / "apart"
    named.write_text("[[variant]]\nkernel = 'a'\n[[variant]]\nkernel = 'a'\nworkload='memcg-dirty'")
    finish(opened(apart, "--out", str(apart), "--plan", str(named), "--runs", "5"))
    opened(apart, "--resume", str(apart), "--runs", "6")
    assert "extended" not in plan(apart)


def test_a_dry_run_says_each_workload(tmp_path: Path) -> None:
    said = "\n".join(lines(asked(tmp_path)))
    assert said.count("\nworkload: ") == 2 and said.count("\ninside: ") == 2
    assert "; workload: memcg-dirty, with 1024 MiB" in said
    order = ", ".join(f"debian:{label} 1" for label in LABELS)
    assert f"order: {order}" in said


@given(st.one_of(st.none(), st.text(), st.integers(), st.booleans(), st.lists(st.text())))
def test_no_damage_to_a_variants_workload_is_an_error(value: object) -> None:
    import tomli_w

    if value is None:
        return
    for key in ("workload", "load", "memory"):
        text = tomli_w.dumps({"variant": [{"label": "a", key: value}]})
        found, problems = parse_plan(text.encode("utf-8", "surrogatepass"))
        [one] = found.variants or (Variant(),)
        assert isinstance(getattr(one, key), type(getattr(Variant(), key))) or problems
