# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of the packages, computed from their imports (docs/developer/architecture.md)."""

import ast
import functools
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from setup import guest_suite

SUITE = Path(__file__).resolve().parent.parent
NOT_THE_SUITE = {"tests", "benchmarks", "results"}
# Judging: what reads results, and never a machine.
JUDGING = {"analysis", "graphs"}
# What both sides read.
COMMON = {"contract", "errors"}
# What run_test.sh starts in the guest, and the programs for other uses (README.md).
GUEST_PROGRAMS = {"measure.one_run", "latency_output"}
# Imported only where the observers' sources are.
COMPILES = "setup.compile_observers"
IN_THE_GUEST_TOO = {"pexpect", "ptyprocess"}


def _name(path: Path) -> str:
    parts = path.relative_to(SUITE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def modules() -> dict[str, Path]:
    """Each module of the suite, without tests and benchmarks: its dotted name, its file."""
    found = SUITE.glob("**/*.py")
    inside = (path.relative_to(SUITE).parts for path in found)
    kept = [p for p in inside if p[0] not in NOT_THE_SUITE and not p[0].startswith(".")]
    return {_name(SUITE.joinpath(*parts)): SUITE.joinpath(*parts) for parts in kept}


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


@functools.cache
def imports(module: str) -> frozenset[str]:
    """All that a module imports, wherever in it: the suite's modules, and others' top names."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & modules().keys()
            found |= inner or {node.module}
    known = modules()
    return frozenset(name if name in known else name.split(".")[0] for name in found)


def starts(module: str) -> set[str]:
    """The suite's programs that a module starts: modules that strings of its code name.

    `python3 -m fake_gitk` is a word of its own, `from monitors.sampler.main import main` is not.
    """
    if module == "workloads.registry":  # imports each module beside it by its name
        return {one for one in modules() if one.startswith("workloads.")}
    words: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value, *re.findall(r"\bfrom ([\w.]+) import\b", node.value)}
    named = words & modules().keys()
    return named | {f"{name}.__main__" for name in named} & modules().keys()


def closure(begin: set[str]) -> set[str]:
    """Modules that these need or start, they included."""
    reached: set[str] = set()
    left = set(begin)
    while left:
        module = left.pop()
        reached.add(module)
        packages = {module.rsplit(".", n)[0] for n in range(1, module.count(".") + 1)}
        left |= (imports(module) | starts(module) | packages) & modules().keys()
        left -= reached | {COMPILES}
    return reached


def arrows(depth: int, within: str = "") -> dict[str, set[str]]:
    """Who imports whom, of the packages (or modules) at that depth."""
    found: dict[str, set[str]] = {}
    for module in modules():
        if not module.startswith(within):
            continue
        own = ".".join(module.split(".")[:depth])
        others = {o for o in imports(module) & modules().keys() if o.startswith(within)}
        found.setdefault(own, set()).update(".".join(o.split(".")[:depth]) for o in others)
        found[own].discard(own)
    return found


@pytest.mark.parametrize(
    ("depth", "within"),
    [(1, ""), (2, "analysis."), (2, "graphs."), (9, "")],
)
def test_no_package_and_no_module_is_in_a_circle(depth: int, within: str) -> None:
    found = arrows(depth, within)
    assert sum(map(len, found.values())) > 5
    order = list(TopologicalSorter(found).static_order())  # CycleError names a circle
    assert set(order) == found.keys() | set().union(*found.values())


def test_the_house_is_as_its_table_says() -> None:
    table = (SUITE / "docs/developer/architecture.md").read_text().partition("| package |")[2]
    allowed: dict[str, set[str]] = {}
    for row in table.partition("\n\n")[0].splitlines()[2:]:
        names, _, may_import = row.strip("|").split("|")
        for name in re.findall(r"`(\w+)[/.]", names):
            allowed[name] = set(re.findall(r"`(\w+)`", may_import))
    found = arrows(1)
    for package, others in found.items():
        assert others <= allowed[package], package
    without_code = {"machines", "remedies"}
    assert allowed.keys() - found.keys() == NOT_THE_SUITE - {"results"} | without_code


def test_data_flows_one_way() -> None:
    found = arrows(1)
    assert found.keys() >= COMMON | JUDGING and len(found) > 12
    assert found["errors"] == set()
    assert found["graphs"] - COMMON == {"analysis"}
    assert found["analysis"] <= COMMON
    assert found["bisection"] == set()
    for package in found.keys() - JUDGING:
        assert not found[package] & JUDGING, package
    # One run on a machine knows nothing of campaigns and virtual machines, and a machine nothing
    # of what runs in it.
    assert not found["measure"] & {"run", "vm"}
    assert not found["vm"] & {"run", "measure", "workloads", "monitors"}
    assert [package for package in found if "run" in found[package]] == []


def test_the_analysis_has_its_order() -> None:
    found = arrows(2, "analysis.")
    packages = {name for name in found if (SUITE / name.replace(".", "/")).is_dir()}
    assert packages == {
        f"analysis.{name}"
        for name in (
            *("reading", "kernel_log", "figures", "stall_causes", "verdicts", "trends", "text"),
        )
    }
    assert found["analysis.reading"] == set()
    # The commands of the documents print, and nobody imports them.
    doors = found.keys() - packages - {"analysis"}
    assert {"analysis.compare", "analysis.summary", "analysis.causes"} <= doors
    for module in modules():
        assert not imports(module) & doors, module


def test_nothing_that_judges_looks_at_a_machine() -> None:
    judging = [module for module in modules() if module.split(".")[0] in JUDGING]
    assert len(judging) > 50
    for module in judging:
        for node in ast.walk(tree(module)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("/proc", "/sys")), module


def test_the_guest_needs_the_standard_library_and_pexpect_only() -> None:
    guest = closure(GUEST_PROGRAMS)
    # Each program that is started there has been found, and what it needs.
    assert {
        "workloads.desktop",
        "fake_gitk.__main__",
        "fake_player.__main__",
        "fake_player.heartbeat",
        "echo_load.__main__",
        "monitors.launch",
        "setup.crypt_lvm.ownership",
        "contract.run_record",
    } <= guest
    allowed = sys.stdlib_module_names | IN_THE_GUEST_TOO | modules().keys()
    for module in sorted(guest):
        assert imports(module) <= allowed, (module, imports(module) - allowed)
        assert module.split(".")[0] not in JUDGING | {"run", "vm"}, module


def test_a_guest_has_what_runs_there_and_nothing_else() -> None:
    """What is not needed there would be as good as another seed, whenever it changes."""
    there = {path for path in guest_suite.files() if path.suffix == ".py"}
    assert there == {modules()[name] for name in closure({"measure.one_run"})}
    others = {str(path.relative_to(SUITE)) for path in {*guest_suite.files()} - there}
    assert others == {"run_test.sh", "vm/guest_init.sh"}


def test_the_files_of_a_folder_can_be_overseen() -> None:
    folders: dict[Path, int] = {}
    for path in modules().values():
        folders[path.parent] = folders.get(path.parent, 0) + 1
    assert {str(f.relative_to(SUITE)): n for f, n in folders.items() if n > 21} == {}


def test_every_source_file_names_its_licence() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.py", "*.sh", "*.js", "*.css", "*.c", "*.h"],
        cwd=SUITE,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    assert len(listed) > 200
    for name in filter(None, listed):
        head = (SUITE / name).read_text().split("\n", 3)[:3]
        assert any("SPDX-License-Identifier: GPL-2.0-or-later" in line for line in head), name


def test_what_runs_under_kvm_needs_no_package_of_the_tests() -> None:
    # A fresh host has requirements.txt only.
    code = "import sys; sys.modules['pytest'] = None; import tests.support.under_kvm"
    done = subprocess.run([sys.executable, "-c", code], cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
