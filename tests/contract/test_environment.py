# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m …` as the documents say it, with a python3 that has none of the packages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract.environment import ENTERED, OWN

BASE = str(Path(sys.base_prefix) / "bin" / "python3")
SUITE = OWN.parent


def run(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """This Python, which is not the environment's, in a folder that is not the suite's."""
    return subprocess.run(
        [BASE, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SUITE), **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "module", ["graphs", "analysis.compare", "analysis.causes", "benchmarks.report"]
)
def test_any_python_will_do(module: str, tmp_path: Path) -> None:
    # One that has a part of the packages is no better.
    (tmp_path / "numpy").mkdir()
    done = run(tmp_path, "-m", module, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: "), done.stderr


@pytest.mark.parametrize("how", [["-S", "-m", "analysis.kernlog"], ["-m", "analysis.kernlog"]])
def test_it_is_entered_once_at_most(tmp_path: Path, how: list[str]) -> None:
    done = run(tmp_path, *how, "--help", **({} if "-S" in how else {ENTERED: "1"}))
    assert done.returncode == 0 and done.stdout.startswith("usage: "), done.stderr


def test_who_imports_a_package_stays_what_he_is(tmp_path: Path) -> None:
    script = "import analysis, sys; print(sys.executable, sys.argv)"
    done = run(tmp_path, "-c", script, "word")
    assert done.stdout.split()[1:] == ["['-c',", "'word']"], done.stderr
    assert Path(done.stdout.split()[0]).parent != OWN / "bin"
