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
# The packages that read results, and never a machine.
JUDGING = {"analysis", "graphs"}
# The modules that both sides read.
COMMON = {"contract", "errors"}
# The program that run_test.sh starts in the guest, and the one for other uses (README.md).
GUEST_PROGRAMS = {"measure.one_run", "latency_output"}
# Only imported where the observers' sources are.
COMPILES = "setup.compile_observers"
IN_THE_GUEST_TOO = {"pexpect", "ptyprocess"}


def _name(path: Path) -> str:
    parts = path.relative_to(SUITE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def modules() -> dict[str, Path]:
    """The suite's modules without tests and benchmarks: dotted name -> file."""
    paths = SUITE.glob("**/*.py")
    inside = (path.relative_to(SUITE).parts for path in paths)
    kept = [p for p in inside if p[0] not in NOT_THE_SUITE and not p[0].startswith(".")]
    return {_name(SUITE.joinpath(*parts)): SUITE.joinpath(*parts) for parts in kept}


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


@functools.cache
def imports(module: str) -> frozenset[str]:
    """All that a module imports anywhere: the suite's modules, and top-level names of others."""
    names: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & modules().keys()
            names |= inner or {node.module}
    known = modules()
    return frozenset(name if name in known else name.split(".")[0] for name in names)


def starts(module: str) -> set[str]:
    """The suite's programs that a module starts: the modules that its strings name.

    A name is a whole string (`fake_gitk`), or in one (`from monitors.sampler.main import main`).
    """
    if module == "workloads.registry":  # imports each module beside it by its name
        return {name for name in modules() if name.startswith("workloads.")}
    words: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words |= {node.value, *re.findall(r"\bfrom ([\w.]+) import\b", node.value)}
    named = words & modules().keys()
    return named | {f"{name}.__main__" for name in named} & modules().keys()


def closure(begin: set[str]) -> set[str]:
    """These modules, and all modules that they need or start."""
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
    """The imports between packages (or modules) at that depth: importer -> imported ones."""
    importers: dict[str, set[str]] = {}
    for module in modules():
        if not module.startswith(within):
            continue
        own = ".".join(module.split(".")[:depth])
        others = {o for o in imports(module) & modules().keys() if o.startswith(within)}
        importers.setdefault(own, set()).update(".".join(o.split(".")[:depth]) for o in others)
        importers[own].discard(own)
    return importers


def test_no_archive_is_unpacked_in_a_way_that_debian_12_lacks() -> None:
    """Its Python, 3.11.2, has no argument `filter`; 3.11.4 has."""
    calls = [
        node
        for parsed in [
            *map(tree, modules()),
            *(ast.parse(path.read_text()) for path in (SUITE / "tests").glob("**/*.py")),
        ]
        for node in ast.walk(parsed)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("extract", "extractall")
    ]
    assert len(calls) >= 4
    assert [call for call in calls if any(word.arg == "filter" for word in call.keywords)] == []


def test_nobody_else_imports_tests() -> None:
    own = [*modules().values(), *(SUITE / "benchmarks").glob("**/*.py")]
    assert SUITE / "benchmarks" / "report" / "__main__.py" in own
    importers = [
        path for path in own if re.search(r"^\s*(from|import) tests\b", path.read_text(), re.M)
    ]
    assert importers == []


@pytest.mark.parametrize(
    ("depth", "within"),
    [(1, ""), (2, "analysis."), (2, "graphs."), (9, "")],
)
def test_no_package_and_no_module_is_in_a_circle(depth: int, within: str) -> None:
    importers = arrows(depth, within)
    assert sum(map(len, importers.values())) > 5
    order = list(TopologicalSorter(importers).static_order())  # CycleError names a circle
    assert set(order) == importers.keys() | set().union(*importers.values())


def test_the_imports_are_as_in_the_table() -> None:
    table = (SUITE / "docs/developer/architecture.md").read_text().partition("| package |")[2]
    allowed: dict[str, set[str]] = {}
    for row in table.partition("\n\n")[0].splitlines()[2:]:
        names, _, may_import = row.strip("|").split("|")
        for name in re.findall(r"`(\w+)[/.]", names):
            allowed[name] = set(re.findall(r"`(\w+)`", may_import))
    importers = arrows(1)
    for package, others in importers.items():
        assert others <= allowed[package], package
    without_code = {"machines", "remedies"}
    assert allowed.keys() - importers.keys() == NOT_THE_SUITE - {"results"} | without_code


def test_data_flows_one_way() -> None:
    importers = arrows(1)
    assert importers.keys() >= COMMON | JUDGING and len(importers) > 12
    assert importers["errors"] == set()
    assert importers["graphs"] - COMMON == {"analysis"}
    assert importers["analysis"] <= COMMON
    assert importers["bisection"] == set()
    for package in importers.keys() - JUDGING:
        assert not importers[package] & JUDGING, package
    # measure/ knows nothing about campaigns and virtual machines, and vm/ nothing about what runs
    # in a machine.
    assert not importers["measure"] & {"run", "vm"}
    assert not importers["vm"] & {"run", "measure", "workloads", "monitors"}
    assert [package for package in importers if "run" in importers[package]] == []


def test_the_analysis_has_its_order() -> None:
    importers = arrows(2, "analysis.")
    packages = {name for name in importers if (SUITE / name.replace(".", "/")).is_dir()}
    assert packages == {
        f"analysis.{name}"
        for name in (
            *("reading", "kernel_log", "figures", "stall_causes", "verdicts", "trends", "text"),
        )
    }
    assert importers["analysis.reading"] == set()
    # The documented commands print, and no module imports them.
    doors = importers.keys() - packages - {"analysis"}
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
    # All programs that are started there, and what they need, are included.
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
    """A change of a file that is not needed there would change runs, as another seed does."""
    python = {path for path in guest_suite.files() if path.suffix == ".py"}
    assert python == {modules()[name] for name in closure({"measure.one_run"})}
    others = {str(path.relative_to(SUITE)) for path in {*guest_suite.files()} - python}
    assert others == {"run_test.sh", "vm/guest_init.sh", "workloads/gitk.tcl"}


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
    # A fresh host has only the packages of requirements.txt.
    code = "import sys; sys.modules['pytest'] = None; import tests.support.under_kvm"
    done = subprocess.run([sys.executable, "-c", code], cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
