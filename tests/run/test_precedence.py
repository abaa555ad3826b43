# SPDX-License-Identifier: GPL-2.0-or-later
"""Another machine or profile than a plan's own is that one, but for what the plan changed."""

from pathlib import Path

import pytest
import tomli_w

from contract import machine_model
from contract.options import Options
from errors import UserError
from run.arguments import parse


def stored(folder: Path, *argv: str, **more: object) -> str:
    """A plan as a campaign of this command line writes it: it holds every field."""
    options = parse(list(argv))
    tables = {"format": 1, "parameters": options.parameters, "machine": options.in_machine, **more}
    path = folder / "plan.toml"
    path.write_text(tomli_w.dumps(tables))
    return str(path)


def fields(options: Options) -> dict[str, object]:
    return options.parameters | options.in_machine


@pytest.mark.parametrize("machine", ["host", "ssd", "emmc"])
def test_another_machine_has_its_own_figures(tmp_path: Path, machine: str) -> None:
    path = stored(tmp_path, "--machine", "laptop")
    options = parse(["--plan", path, "--machine", machine])
    assert fields(options) == fields(parse(["--machine", machine]))
    assert machine_model.changed(machine, options.in_machine) == ()
    back = parse(["--plan", stored(tmp_path, "--machine", machine), "--machine", "laptop"])
    assert fields(back) == fields(parse([]))


def test_what_the_plan_changed_of_its_machine_stays(tmp_path: Path) -> None:
    path = stored(tmp_path, "--machine", "ssd", "--disk-iops", "5000", "--cpu-mips", "250")
    asked = ["--machine", "emmc", "--disk-iops", "5000", "--cpu-mips", "250"]
    assert fields(parse(["--plan", path, "--machine", "emmc"])) == fields(parse(asked))
    said = parse(["--plan", path, "--machine", "emmc", "--disk-iops", "70"])
    assert (said.disk_iops, said.cpu_mips, said.disk_parallel) == (70, 250, 2)


@pytest.mark.parametrize("profile", ["standard", "full"])
@pytest.mark.parametrize("load", [[], ["--workload", "seqio"], ["--workload", "mixed"]])
def test_another_profile_has_its_own_figures(tmp_path: Path, profile: str, load: list[str]) -> None:
    path = stored(tmp_path, *load, "--profile", "quick")
    assert fields(parse(["--plan", path, "--profile", profile])) == fields(
        parse([*load, "--profile", profile])
    )
    back = stored(tmp_path, *load, "--profile", profile)
    assert fields(parse(["--plan", back, "--profile", "quick"])) == fields(
        parse([*load, "--profile", "quick"])
    )


def test_what_the_plan_changed_of_its_profile_stays(tmp_path: Path) -> None:
    path = stored(tmp_path, "--profile", "quick", "--commits", "50000", "--timeout", "99")
    options = parse(["--plan", path, "--profile", "standard"])
    assert (options.commits, options.timeout, options.memory) == (50_000, 99, 512 << 20)


def test_a_variants_own_load_is_its_workloads(tmp_path: Path) -> None:
    def variants(profile: str) -> list[object]:
        path = tmp_path / "asked.toml"
        path.write_text(f"""
[parameters]
profile = "{profile}"
[[variant]]
label = "a"
[[variant]]
label = "b"
workload = "memcg-dirty"
load = "size=64M"
""")
        options = parse(["--plan", str(path)])
        kept = options.variants[1]
        own = {key: getattr(kept, key) for key in ("label", "workload", "load", "memory")}
        found = stored(tmp_path, "--profile", profile, variant=[{"label": "a"}, own])
        other = {"quick": "full", "full": "quick"}[profile]
        return [options.variants, parse(["--plan", found, "--profile", other]).variants]

    quick, to_full = variants("quick")
    full, to_quick = variants("full")
    assert (to_full, to_quick) == (full, quick)


def test_its_own_once_more_changes_nothing(tmp_path: Path) -> None:
    path = str(Path(__file__).resolve().parents[1] / "contract" / "plans" / "quick.toml")
    asked = ["--profile", "quick", "--machine", "host"]
    assert fields(parse(["--plan", path, *asked])) == fields(parse(["--plan", path]))
    # That profile's commits were others then: said, as it were.
    other = parse(["--plan", path, "--machine", "laptop"])
    assert (other.cpus, other.disk_iops, other.commits) == (1, 57, 60_000)


def test_a_campaign_goes_on_with_its_own_machine_alone(tmp_path: Path) -> None:
    stored(tmp_path, "--machine", "ssd", "--disk-iops", "5000")
    alone = parse(["--resume", str(tmp_path)])
    assert (alone.machine, alone.disk_iops, alone.disk_parallel) == ("ssd", 5000, 3)
    same = parse(["--resume", str(tmp_path), "--machine", "ssd"])
    assert fields(same) == fields(alone)


def test_a_workload_that_a_plan_names_is_given_also_if_it_is_the_default(tmp_path: Path) -> None:
    stored(tmp_path, "--workload", "memcg-dirty")
    named = tmp_path / "asked.toml"
    named.write_text('[parameters]\nworkload = "desktop"\nload = ""\n')
    assert parse(["--resume", str(tmp_path)]).workload == "memcg-dirty"
    with pytest.raises(UserError, match="desktop has no parameter"):  # the load is the campaign's
        parse(["--resume", str(tmp_path), "--plan", str(named)])
