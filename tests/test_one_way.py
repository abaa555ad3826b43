# SPDX-License-Identifier: GPL-2.0-or-later
"""Data flows one way: setup -> run -> results -> analysis -> graphs."""

import ast
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent
BEFORE = ["latency_output.py", "setup", "workloads", "fake_gitk", "fake_player", "echo_load"]
BEFORE += ["monitors", "vm"]
AFTER = ["analysis", "graphs"]
# What runs in the guest, where memory is the experiment.
IN_GUEST = [
    "latency_output.py",
    "fake_gitk",
    "fake_player",
    "echo_load",
    "monitors",
    "setup/crypt_lvm.py",
    "setup/device_check.py",
    "setup/errors.py",
    "workloads/desktop.py",
    "workloads/machine_facts.py",
    "workloads/measure.py",
    "workloads/options.py",
    "workloads/results.py",
]
OWN = {"setup", "workloads", "fake_gitk", "fake_player", "echo_load", "monitors"}
OWN |= {"latency_output", "vm"}


def files(names: list[str]) -> list[Path]:
    found: list[Path] = []
    for name in names:
        path = SUITE / name
        found += [path] if path.is_file() else sorted(path.glob("**/*.py"))
    return found


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_nothing_before_the_results_imports_what_comes_after() -> None:
    assert len(files(BEFORE)) > 20
    for path in files(BEFORE):
        assert not imports(path) & set(AFTER), path


def test_nothing_after_the_results_looks_at_a_machine() -> None:
    assert len(files(AFTER)) > 5
    for path in files(AFTER):
        assert not imports(path) & (OWN - {"setup"}), path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("/proc", "/sys")), path


def test_the_guest_needs_the_standard_library_and_pexpect_only() -> None:
    import sys

    allowed = sys.stdlib_module_names | OWN | {"pexpect", "ptyprocess"}
    for path in files([name for name in IN_GUEST if (SUITE / name).exists()]):
        assert imports(path) <= allowed, (path, imports(path) - allowed)


def test_every_source_file_names_its_licence() -> None:
    for path in SUITE.glob("**/*"):
        parts = path.relative_to(SUITE).parts
        if parts[0] in (".venv", ".git", "results") or path.suffix not in (".py", ".sh"):
            continue
        head = path.read_text().split("\n", 3)[:3]
        assert any("SPDX-License-Identifier: GPL-2.0-or-later" in line for line in head), path
