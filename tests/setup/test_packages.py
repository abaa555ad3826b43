# SPDX-License-Identifier: GPL-2.0-or-later
"""setup/packages.sh: what it says when something is missing; nothing is installed here."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "setup/packages.sh"


def run(script: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": path}
    command = ["/bin/bash", str(script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder of the few tools that the script starts, to be used alone as PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "cut", "dirname", "grep", "python3", "sed", "sha256sum", "flock"):
        (folder / name).symlink_to(f"/usr/bin/{name}")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    (root / "setup").mkdir(parents=True)
    (root / "setup/packages.sh").write_text(SCRIPT.read_text())
    for name in ("requirements.txt", "requirements-dev.txt"):
        (root / name).write_text("")
    return root / "setup/packages.sh"


def test_list(tools: Path) -> None:
    done = run(SCRIPT, "--list", path=str(tools))
    assert done.returncode == 0
    assert {"mmdebstrap", "debian-archive-keyring", "uidmap"} <= set(done.stdout.split())


def test_unknown_option(tools: Path) -> None:
    assert run(SCRIPT, "--nonsense", path=str(tools)).returncode == 2


def test_on_another_distribution(tools: Path) -> None:
    done = run(SCRIPT, path=str(tools))
    assert done.returncode == 3
    assert done.stderr == (
        "setup/packages.sh: this system has no apt: run the suite in a container, ./container.sh "
        "and the options of run_test.sh ('Other distributions' in README.md)\n"
    )


def test_what_is_missing_is_named(tools: Path, copy: Path) -> None:
    (tools / "apt-get").symlink_to("/bin/false")
    query = tools / "dpkg-query"
    query.write_text(
        '#!/bin/bash\nfor name in "${@:4}"; do\n'
        '[[ $name == mmdebstrap || $name == rsync ]] || echo "ii  $name"\ndone\n'
        "echo 'rc  rsync'; exit 1\n"
    )
    query.chmod(0o755)
    done = run(copy, "--no-install", path=str(tools))
    assert done.returncode == 3
    assert "missing: mmdebstrap rsync" in done.stderr
    assert done.stderr.count("\n") == 1
    done = run(copy, "--no-install", "--device", path=str(tools))
    assert "(install with: setup/packages.sh --device, or apt-get install" in done.stderr


def test_an_environment_is_missing_or_old(tools: Path, copy: Path) -> None:
    (tools / "apt-get").symlink_to("/bin/false")
    query = tools / "dpkg-query"
    query.write_text('#!/bin/bash\nfor name in "${@:3}"; do echo "ii  $name"; done\n')
    query.chmod(0o755)
    done = run(copy, "--no-install", path=str(tools))
    assert done.returncode == 3
    assert ".venv is missing" in done.stderr
    assert not (copy.parent.parent / ".venv").exists()


@pytest.fixture
def installing(tools: Path, copy: Path) -> Path:
    """Two programs that wait for each other: an apt-get, whose install ends with the status of the
    file `apt`, and the pip of an environment, which ends with that of the file `pip`."""
    root = copy.parent.parent
    meet = (
        f'touch "{root}/$1.began"; for _ in {{1..500}}; do [[ ! -e {root}/$2.began ]] || break; '
        f"sleep 0.02; done; [[ -e {root}/$2.began ]] || exit 9"
    )
    end = f'touch "{root}/$1.ended"; exit "$(cat {root}/$1)"'
    programs = {
        tools / "dpkg-query": "exit 1",
        tools / "sudo": 'exec "$@"',
        tools / "apt-get": f'[[ " $* " == *" install "* ]] || exit 0; set apt pip; {meet}; {end}',
        root / ".venv/bin/python": f"[[ $* == *install* ]] || exit 0; set pip apt; {meet}; {end}",
    }
    for program, text in programs.items():
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/bash\n{text}\n")
        program.chmod(0o755)
    for name in ("env", "mktemp", "rm", "sleep", "touch"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    return root


@pytest.mark.parametrize(("apt", "pip"), [(0, 0), (100, 0), (0, 1)])
def test_pip_works_while_packages_are_installed(
    tools: Path, copy: Path, installing: Path, apt: int, pip: int
) -> None:
    (installing / "apt").write_text(str(apt))
    (installing / "pip").write_text(str(pip))
    done = run(copy, path=str(tools))
    assert done.returncode == (3 if apt or pip else 0), done.stderr
    assert (installing / "apt.ended").exists()
    assert ("apt-get failed" in done.stderr, "pip could not" in done.stderr) == (apt > 0, pip > 0)
