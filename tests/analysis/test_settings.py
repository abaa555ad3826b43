# SPDX-License-Identifier: GPL-2.0-or-later
"""What was set otherwise than profile and machine have it, and the memory of a VM in words."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.reading.load import Run, load_campaign
from analysis.reading.settings import as_set, changed
from analysis.text.machine import memory, workload
from benchmarks.synthetic_results.make import meta, write_run
from contract.option_rows import PROFILES
from contract.option_table import ROWS
from run.arguments import parse

MIB = 1 << 20


def run_of(folder: Path, parameters: Any, **facts: Any) -> Run:
    facts = {"parameters": parameters, "machine": {"name": "laptop"}, **facts}
    write_run(folder / "k" / "1", {"meta.json": json.dumps(meta("k", **facts))})
    return load_campaign(folder).runs[0]


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("machine", ["laptop", "emmc", "ssd", "host"])
def test_nothing_is_changed_where_nothing_was_asked_for(profile: str, machine: str) -> None:
    """What a command line without further options asks for, as plan.toml and meta.json have it."""
    options = parse(["--profile", profile, "--machine", machine, "--kernel", "debian:6.12"])
    usual = as_set(profile, machine)
    own = changed(options.parameters | options.in_machine, usual)
    assert own.keys() <= {"profile", "machine"}
    asked = parse(["--profile", profile, "--machine", machine, "--gitk", "9", "--no-crypt"])
    assert changed(asked.parameters, usual).items() >= {"gitk": 9, "crypt": False}.items()


def test_the_workload_names_only_what_was_set(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"atomic_order": 0, "atomic_rate": 0, "crypt": False, "gitk": 4}
    asked |= {"profile": "quick", "memory": 230 * MIB, "commits": 6000, "history": "x"}
    run = run_of(tmp_path, asked)
    assert workload(run)[-4:] == ["profile quick", "--no-crypt", "--commits 6000", "history x"]
    assert not any(str(230 * MIB) in part for part in workload(run))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (
            {"profile": "quick", "memory": 230 * MIB},
            "230 MiB of memory (profile quick; the laptop has 512), MemTotal 181 MiB",
        ),
        (
            {"profile": "standard", "memory": 512 * MIB},
            "512 MiB of memory (as the laptop), MemTotal 181 MiB",
        ),
        (
            {"profile": "quick", "memory": 1024 * MIB},
            "1,024 MiB of memory (--memory), MemTotal 181 MiB",
        ),
        (
            {"profile": "quick", "memory": 294 * MIB, "workload": "gitk"},
            "294 MiB of memory (--memory, or the workload's own), MemTotal 181 MiB",
        ),
        ({}, "MemTotal 181 MiB"),
    ],
)
def test_three_memories_are_one_entry(
    tmp_path: Path, parameters: dict[str, Any], words: str
) -> None:
    assert memory([run_of(tmp_path, parameters, mem_total_kib=181 << 10)]) == words


@pytest.mark.parametrize(("mib", "words"), [(294, "the workload's own"), (1024, "--memory")])
def test_a_workload_can_have_its_own_memory(tmp_path: Path, mib: int, words: str) -> None:
    parameters = {"profile": "quick", "memory": mib * MIB, "workload": "gitk"}
    run = run_of(tmp_path, parameters, memory_of_workload=294 * MIB)
    assert memory([run]).startswith(f"{mib:,} MiB of memory ({words}), ")


def test_windows_that_get_keys_have_memory(tmp_path: Path) -> None:
    parameters = {"profile": "quick", "memory": 294 * MIB, "screen": True}
    run = run_of(tmp_path, parameters, memory_of_workload=294 * MIB)
    assert memory([run]).startswith("294 MiB of memory (with what --screen needs), ")


def test_kernels_that_leave_other_amounts_are_a_range(tmp_path: Path) -> None:
    quick = {"profile": "quick", "memory": 230 * MIB}
    sizes = (("a", 181.2), ("b", 198.0))
    runs = [run_of(tmp_path / n, quick, mem_total_kib=int(1024 * mib)) for n, mib in sizes]
    assert memory(runs).endswith(", MemTotal 181 to 198 MiB")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=3), each),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([*ROWS, "history", "else"]), ANYTHING), ANYTHING, ANYTHING)
def test_a_strangers_settings_are_compared_with_anything(
    table: dict[str, Any], profile: Any, machine: Any
) -> None:
    own = changed(table, as_set(profile, machine))
    assert own.keys() <= table.keys()
    assert "else" not in table or "else" in own
