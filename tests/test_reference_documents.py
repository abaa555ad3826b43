# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages about machines and results agree with the machines' files and with results."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from benchmarks.synthetic_results.make import make_campaign
from contract import machine_model
from contract.run_files import STATES
from run.arguments import parse
from workloads.registry import every

DOCS = Path(__file__).resolve().parent.parent / "docs"
FORMAT = (DOCS / "reference" / "results-format.md").read_text()
MACHINES = (DOCS / "explain" / "machines-and-clocks.md").read_text()
PROSE = re.sub(r"^```.*?^```", "", FORMAT, flags=re.MULTILINE | re.DOTALL)
CODE = re.findall(r"`([^`\n]+)`", PROSE)
NAMED = set(re.findall(r"[A-Za-z0-9_-]+", " ".join(CODE)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("c"), 1, 1, with_evidence=True) / "6.1" / "1"


@pytest.mark.parametrize("name", ["meta.json", "status.json"])
def test_each_key_is_named(run: Path, name: str) -> None:
    facts = json.loads((run / name).read_text())
    assert set(facts) <= NAMED, set(facts) - NAMED
    for key in ("kernel", "clock", "machine", "disk", "swap", "evidence"):
        if isinstance(inner := facts.get(key), dict):
            assert set(inner) <= NAMED, (key, set(inner) - NAMED)


@pytest.mark.parametrize("name", ["tasks.tsv", "blocked.tsv", "psi.tsv"])
def test_each_column_is_named(run: Path, name: str) -> None:
    columns = (run / name).read_text().split("\n", 1)[0].split("\t")
    assert len(columns) > 2 and set(columns) <= NAMED, set(columns) - NAMED


@pytest.mark.parametrize("name", sorted(every()))
def test_each_key_of_a_description_is_named(name: str) -> None:
    described = every()[name].describe(parse(["--workload", name])).as_meta()
    keys = set(described)
    for key in ("figures", "tables", "recorded", "late", "panels"):
        for item in described.get(key, []):
            keys |= set(item)
            keys |= {word for inner in item.get("curves", []) for word in inner}
    assert len(keys) > 5 and keys <= NAMED, keys - NAMED


def test_each_state_has_its_line() -> None:
    for state in STATES:
        assert f"- `{state}`: " in FORMAT


def test_each_column_of_the_trace_is_named() -> None:
    page = (DOCS / "developer" / "tracing.md").read_text()
    listed = " ".join(line for line in page.splitlines() if line.startswith("- `"))
    patterns = re.findall(r"`([a-z_]+\*?)`", listed)
    source = (DOCS.parent / "monitors" / "trace" / "columns.c").read_text()
    columns = re.findall(r'\{ "([a-z_]+)", SUM_', source)
    columns += re.findall(r'(?:WAITED|DEVICE)\("([a-z_]+)"', source)
    assert len(columns) > 15
    for name in columns:
        assert any(fnmatch(text, p) for p in patterns for text in (name, f"{name}_")), name


@pytest.mark.parametrize("name", machine_model.named())
def test_a_machines_figures_are_its_files(name: str) -> None:
    (line,) = [line for line in MACHINES.splitlines() if line.startswith(f"- `{name}`")]
    model = machine_model.read(name)
    if name == "host":
        assert model["cpus"] == 2 and "two CPUs" in line
        return
    assert f"{model['disk_iops']:,} accesses a second" in line
    assert f"{model['disk_bps'] // 10**6} MB/s" in line
    if model["disk_kind"] == "flash":
        assert {2: "two", 3: "three"}[model["disk_parallel"]] + " at a time" in line
    else:
        assert f"a queue of {model['disk_depth']}" in line
        assert f"{model['cpu_mips']} MIPS, {model['memory'] >> 20} MiB" in line
