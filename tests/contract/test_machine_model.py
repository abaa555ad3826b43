# SPDX-License-Identifier: GPL-2.0-or-later
"""Machines: what a file of one says, who has the last word, and what is refused in one line."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import machine_model
from contract.option_rows import PROFILES
from errors import UserError
from run.arguments import parse
from run.plans.stored import read_plan

SUITE = Path(__file__).resolve().parents[2]
PLANS = Path(__file__).parent / "plans"  # of real campaigns on --machine host
WHOLE = """\
cpus = 1
cpu_mips = 250
memory = "384M"
[disk]
kind = "flash"
iops = 9000
bps = 100_000_000
parallel = 4
depth = 64
queues = 2
"""


def test_those_that_come_with_the_suite() -> None:
    assert machine_model.named() == ["emmc", "host", "laptop", "ssd"]
    laptop = machine_model.read("laptop")
    # 12 ms of seek and half a revolution of 1/90 s.
    assert 1 / laptop["disk_iops"] == pytest.approx(0.012 + 1 / 180, rel=0.01)
    assert laptop["disk_bps"] == 58_000_000 and laptop["disk_kind"] == "rotating"
    for name in ("emmc", "ssd"):
        other = machine_model.read(name)
        assert {key for key in laptop if other[key] != laptop[key]} <= {
            key for key in laptop if key.startswith("disk_")
        }
    assert all(
        value is None for key, value in machine_model.read("host").items() if key[:4] == "disk"
    )


def test_the_option_comes_before_the_profile_and_that_before_the_machine(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(WHOLE)
    assert parse([]).machine == "laptop" and parse([]).memory == 512 << 20
    options = parse(["--machine", str(mine), "--disk-iops", "77"])
    assert (options.cpus, options.cpu_mips, options.memory) == (1, 250, 384 << 20)
    assert (options.disk_iops, options.disk_bps, options.disk_kind) == (77, 100_000_000, "flash")
    assert machine_model.name_of(options.machine) == "mine"
    assert machine_model.changed(options.machine, options.in_machine) == ("disk_iops",)
    quick = parse(["--machine", str(mine), "--profile", "quick"])
    assert quick.memory == PROFILES["quick"].memory
    assert parse(["--machine", str(mine), "--profile", "quick", "--memory", "1G"]).memory == 1 << 30


@pytest.mark.parametrize(
    "text",
    [
        'format = 1\n[machine]\naccel = "tcg"\ncpus = 2\n[[variant]]\nlabel = "a"\n',
        'format = 1\n[[run]]\nvariant = "6.12"\nnumber = 1\nkernel = "debian:6.12"\n',
    ],
)
@pytest.mark.parametrize("option", ["--plan", "--resume"])
def test_an_older_campaigns_plan_is_refused_in_one_line(
    tmp_path: Path, text: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(SystemExit) as ended:
        parse([option, str(path if option == "--plan" else tmp_path)])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said.count("\n") == 1
    assert f"{path}: a suite before version 0.1.0 wrote it" in said
    with pytest.raises(UserError, match=r"a suite before version 0\.1\.0 wrote it"):
        read_plan(tmp_path)


@pytest.mark.parametrize("name", ["quick", "standard", "twice", "mglru"])
def test_plans_of_real_campaigns_are_what_they_were(name: str) -> None:
    path = PLANS / f"{name}.toml"
    kept = tomllib.loads(path.read_text())
    old = parse(["--plan", str(path)])
    assert (old.machine, old.clock, old.cpus, old.evidence) == ("host", "host", 2, False)
    assert (old.step, old.touch, old.timeout) == (12288, 0.25, kept["machine"]["timeout"])
    said = [old.memory, old.commits]
    assert said == [kept["parameters"][key] for key in ("memory", "commits")]
    assert old.disk_kind is None and old.atomic_order == 0 and old.swap == ()


def test_the_plan_of_the_guide_is_a_quick_campaign_on_the_guests_clock() -> None:
    asked = parse(["--plan", str(SUITE / "docs" / "example" / "mglru" / "plan.toml")])
    quick = parse(["--profile", "quick", "--runs", "5"])
    assert replace(asked, plan=None, baseline=None, variants=quick.variants) == quick
    assert [dict(variant.knobs) for variant in asked.variants] == [
        {},
        {"/sys/kernel/mm/lru_gen/enabled": "0"},
    ]


def test_a_test_of_this_machine_is_none_of_them() -> None:
    options = parse(["--device", "/dev/x"])
    assert not options.cpus and not options.disk_iops and not options.memory


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpus = ", "Invalid value"),
        (WHOLE + "speed = 1", "no key 'speed'"),
        ("ram = 1\n" + WHOLE, "no key 'ram'"),
        (WHOLE.replace("iops = 9000\n", ""), "disk.iops: not said"),
        (WHOLE.replace("cpus = 1\n", ""), "cpus: not said"),
        (WHOLE.replace("250", "300"), "cpu_mips: 1000, 500, 250, 125, not 300"),
        (WHOLE.replace("flash", "tape"), "rotating or flash, not 'tape'"),
        (WHOLE.replace("384M", "much"), "not a size: 'much'"),
        (WHOLE.replace("iops = 9000", "iops = -1"), "disk.iops: not a number of 1 or more: '-1'"),
        (WHOLE.replace("iops = 9000", 'iops = "9000"'), "disk.iops: not '9000'"),
        (WHOLE.replace("cpus = 1", "cpus = true"), "cpus: not True"),
        (WHOLE.replace("384M", "64M"), "memory: at least 128M"),
        (WHOLE.replace("flash", "rotating"), "disk.parallel: a rotating disk does one at a time"),
        (WHOLE.replace("parallel = 4", "parallel = 300"), "disk.parallel: at most 256"),
        (WHOLE.replace("depth = 64", "depth = 33"), "disk.depth: not a power of two"),
        ("disk = 3\n" + WHOLE.partition("[disk]")[0], r"\[disk\] is no table"),
    ],
)
def test_what_will_not_do_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=said) as error:
        machine_model.read(str(path))
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["--machine", "host", "--disk-depth", "32"],
            "a modelled disk also needs --disk-kind, --disk-iops",
        ),
        (["--disk-parallel", "2"], "a rotating disk does one at a time"),
        (["--clock", "host", "--cpu-mips", "250"], "this run uses the host's"),
        (["--accel", "kvm", "--cpu-mips", "250"], "this run uses the host's"),
        (["--memory", "64M"], "at least 128M"),
    ],
)
def test_what_no_machine_would_heed_is_a_usage_error(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("machine", ["netbook", "/nonesuch/mine.toml"])
def test_no_such_machine_is_a_usage_error(machine: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--machine", machine])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert machine in said and said.count("\n") == 1


@given(st.text(max_size=200))
def test_no_text_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("machine") / "any.toml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(ValueError):
        machine_model.read(str(path))
