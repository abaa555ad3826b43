# SPDX-License-Identifier: GPL-2.0-or-later
"""Workloads by their names, their parameters, and one more of them without another file touched."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from analysis.reading.workload import read_workload
from contract import swap
from contract.command_line import parse_measured
from contract.values import Refused, load
from errors import Exit, UserError
from run import clock, dry_run
from run.arguments import parse
from run.measure_command import measure_argv
from setup import image
from tests.support.suite_copy import SUITE, copied_to
from workloads import registry
from workloads.registry import every, find, resolved, stream_names

DIRTY = ["--workload", "memcg-dirty", "--profile", "quick"]
MORE = '''\
# SPDX-License-Identifier: GPL-2.0-or-later
"""Nothing but a silence."""

from contract.workload import Description
from workloads.companions import heartbeat
from workloads.workload import Workload

WORKLOAD = Workload(
    name="silence",
    describe=lambda options: Description("silence", "silence", "heartbeat", ("heartbeat",)),
    streams=lambda options: ["silent"],
    programs=lambda options, environment: [heartbeat("silent")],
    finite=lambda options: {"silent"},
    done="it was quiet",
    late="the silence",
)
'''


# Run where there is one more: what is there reads what it says of itself, and its command line.
ROUND = """
import json
from analysis.reading.workload import read_workload
from contract.command_line import parse_measured
from run.arguments import parse
from run.measure_command import measure_argv
from workloads.registry import find, resolved, with_gitks
options = parse(["--workload", "silence", "--swap", "zram"])
told, warnings = find("silence").describe(options), []
meta = json.loads(json.dumps({"workload": told.as_meta()}))
assert read_workload(meta, [], warnings) == told and not warnings, warnings
argv = measure_argv(options, options.variants[0], repo="/r", music="/m", run_dir="/o")
measured = resolved(parse_measured([*argv, "--device", "/dev/x"], with_gitks()))
assert (measured.workload, measured.load) == (options.workload, options.load)
"""


def test_there_are_these() -> None:
    assert set(every()) >= {"desktop", "memcg-dirty", "mixed", "seqio", "shrinker"}
    for name, one in every().items():
        options = parse(["--workload", name])
        described = one.describe(options)
        assert described.name == name == one.name
        assert set(described.subjects) <= set(stream_names(options))
        assert one.finite(options) <= set(one.streams(options))
        figures = {figure.key for figure in described.figures}
        assert described.primary in figures or described.primary == "stalled"
        warnings: list[str] = []
        meta = json.loads(json.dumps({"workload": described.as_meta()}))
        assert read_workload(meta, [], warnings) == described and warnings == []


@pytest.mark.parametrize("name", sorted(every()))
def test_each_goes_with_each_swap(name: str) -> None:
    asked = [word for kind in swap.KINDS for word in ("--swap", kind)]
    options = parse(["--workload", name, "--profile", "quick", *asked])
    assert [one.swap.kind for one in options.variants] == list(swap.KINDS)
    said = "\n".join(dry_run.lines(options))
    for kind in swap.KINDS[1:]:
        assert f"swap: {swap.read(kind).words}" in said
    for variant in options.variants:
        argv = measure_argv(options, variant, repo="/r", music="/m", run_dir="/o")
        measured = parse_measured([*argv, "--device", "/dev/x"], registry.with_gitks())
        assert resolved(measured).variants[0].swap == variant.swap


def test_one_that_is_not_there_is_refused_with_the_list() -> None:
    with pytest.raises(
        UserError, match=r"unknown workload 'x' \(choose from .*memcg-dirty"
    ) as raised:
        parse(["--workload", "x"])
    assert raised.value.status == Exit.USAGE


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([*DIRTY, "--load", "size=1G,colour=1"], "no parameter 'colour' (it has "),
        ([*DIRTY, "--load", "writers=9"], "--load writers: at most 8"),
        ([*DIRTY, "--load", "size=none"], "--load size: not a size"),
        (["--load", "limit=1M"], "desktop has no parameter 'limit' (it has none)"),
    ],
)
def test_parameters_that_will_not_do(argv: list[str], words: str) -> None:
    with pytest.raises(UserError) as raised:
        parse(argv)
    assert words in str(raised.value) and raised.value.status == Exit.USAGE


@pytest.mark.parametrize("words", ["--workload x", "--load limit=3"])
def test_what_will_not_do_is_one_line_and_status_2(words: str) -> None:
    command = [str(SUITE / "run_test.sh"), *words.split()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == Exit.USAGE
    assert done.stderr.startswith("run_test.sh: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("argv", [["--gitk", "2"], ["--commits", "9"], ["--repo", "/x"]])
def test_options_of_another_workload_are_usage_errors(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse([*DIRTY, *argv])
    assert ended.value.code == Exit.USAGE


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]*", fullmatch=True), st.integers(0)))
def test_parameters_are_sorted_and_none_is_twice(said: dict[str, int]) -> None:
    words = [f"{name}={value}" for name, value in said.items()]
    assert load(",".join(words)) == ",".join(sorted(words))
    if words:
        with pytest.raises(Refused, match="twice"):
            load(",".join([*words, f"{min(said)}=1"]))


def test_the_guest_is_told_all_of_it_and_nothing_of_another() -> None:
    options = parse([*DIRTY, "--load", "size=64M"])
    assert options.load == "limit=100M,size=64M,version=any,writers=2"
    assert options.memory == 1 << 30
    assert parse([*DIRTY, "--memory", "600M"]).memory == 600 << 20
    argv = measure_argv(options, options.variants[0], repo="/r", music="/m", run_dir="/o")
    measured = resolved(parse_measured([*argv, "--device", "/dev/x"], registry.with_gitks()))
    assert (measured.workload, measured.load) == (options.workload, options.load)
    assert not {"gitk", "commits", "touch", "history"} & options.parameters.keys()


def test_the_desktop_is_named_as_any_other_workload() -> None:
    options = parse(["--profile", "quick"])
    assert (options.parameters["workload"], options.parameters["load"]) == ("desktop", "")
    argv = measure_argv(options, options.variants[0], repo="/r", music="/m", run_dir="/o")
    assert argv[argv.index("--workload") + 1] == "desktop" and "--load" not in argv


def test_a_program_that_is_not_here_is_named_with_its_package() -> None:
    has = replace(find("desktop"), name="x", packages={"coreutils": "ls"})
    has.check_commands()
    lacks = replace(has, packages={"coreutils": "ls", "no-tools": "no-such-program"})
    with pytest.raises(
        UserError, match=r"x needs programs that are missing: no-such-program \(install no-"
    ):
        lacks.check_commands()


def test_disks_of_a_vm_are_not_a_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = replace(find("memcg-dirty"), more_disks=4, more_bytes=lambda options: 5 << 30)
    monkeypatch.setattr(registry, "every", lambda: {"memcg-dirty": wide})
    with pytest.raises(
        UserError, match=r"memcg-dirty needs 4 further disks: only a VM has them \(leave --dev"
    ):
        parse(["--workload", "memcg-dirty", "--device", "/dev/none"])
    assert clock.disk_bytes(parse(DIRTY)) == clock.DISK_BYTES + (5 << 30)
    assert any("5 throw-away disks, each of 8 GiB" in line for line in dry_run.lines(parse(DIRTY)))


def test_a_plan_keeps_its_workload(tmp_path: Path) -> None:
    # A version that was asked for stays, whatever the default is.
    asked = parse([*DIRTY, "--load", "limit=50M,version=2"])
    plan = tmp_path / "plan.toml"
    plan.write_text(tomli_w.dumps({"parameters": asked.parameters, "variant": []}))
    found = parse(["--resume", str(tmp_path), "--runs", "3"])
    assert found.parameters == asked.parameters and "version=2" in found.load


def test_one_more_is_one_more_file(tmp_path: Path) -> None:
    copied_to(tmp_path)
    more = 'packages={"silence-tools": "be-silent"},\n)'
    (tmp_path / "workloads" / "silence.py").write_text(MORE.rstrip().removesuffix(")") + more)
    command = [sys.executable, "-m", "run.dry_run", "--workload", "silence"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--workload silence" in done.stdout and "heartbeat, player, silence" in done.stdout
    has = len(image.PACKAGES)
    own = re.search(r"a guest image of Debian bookworm with (\d+) packages", done.stdout)
    assert own and int(own[1]) > has
    done = subprocess.run(
        [sys.executable, "-c", ROUND], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    command[-1] = "desktop"
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert f"with {has} packages" in done.stdout  # its image is as it was
    assert "silence" not in registry.every() and find("desktop")


def test_the_document_has_the_defaults_of_each() -> None:
    page = (SUITE / "docs" / "reference" / "workloads.md").read_text()
    rows = page.partition("## Defaults of the parameters\n")[2].splitlines()
    documented = {
        name: texts.split("; ")
        for name, texts in (row[2:].split(": ", 1) for row in rows if row.startswith("- "))
    }
    assert documented.keys() == {name for name, one in every().items() if one.parameters}
    for name, texts in documented.items():
        known: dict[str, str] = {}
        for profile, text in zip(("quick", "standard", "full"), texts, strict=True):
            known |= dict(word.split("=") for word in re.findall(r"[a-z]+=\w+", text))
            assert ",".join(f"{key}={known[key]}" for key in sorted(known)) == find(name).completed(
                "", profile
            )
