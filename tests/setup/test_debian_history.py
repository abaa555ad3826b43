# SPDX-License-Identifier: GPL-2.0-or-later
"""The history in which a bisect is tried (tests/make_debian_history.py), of small sources."""

import subprocess
from pathlib import Path

import pytest

from setup.trees import sources
from setup.trees.sources import Source
from tests.make_debian_history import REMOVAL, History, write

VMSCAN = "static bool isolate_folio(void)\n{\n\treturn true;\n}\n"
FIX = "".join(
    f"{line}\n"
    for line in (
        *("--- a/mm/vmscan.c", "+++ b/mm/vmscan.c", "@@ -3,3 +3,4 @@"),
        *(" static bool isolate_folio(void)", " {", "+\tcheck();", " \treturn true;"),
    )
)


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Source]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = []
    for number in range(3):
        place = tmp_path / f"7.2.{number}"
        files = {
            "Kbuild": "x\n",
            "Kconfig": "x\n",
            "MAINTAINERS": f"{number}\n",
            "mm/vmscan.c": f"/* {number} */\n\n{VMSCAN}",
            "mm/swap.c": f"swap {number}\n",
            "drivers/md/dm.c": f"dm {number}\n",
            f"fs/only-in-{number}.c": "here\n",
        }
        for name, text in files.items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(text)
        found.append(sources.from_folder(place))
    return found


def shown(repository: Path, what: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), "show", what], capture_output=True, text=True, check=True
    )
    return done.stdout


def check(repository: Path, made: History) -> None:
    """The check is there before the culprit, and nowhere from it on."""
    place = made.commits.index(made.culprit)
    assert 2 <= place <= len(made.commits) - 3
    for number, commit in enumerate(made.commits):
        assert ("check();" in shown(repository, f"{commit}:mm/vmscan.c")) == (number < place)
        broken = "#error" in shown(repository, f"{commit}:mm/swap.c")
        assert broken == (commit in made.broken)
    assert REMOVAL in shown(repository, made.culprit)


def test_it_ends_with_the_last_release(tmp_path: Path, releases: list[Source]) -> None:
    made = write(tmp_path / "h.git", releases, FIX.encode())
    check(tmp_path / "h.git", made)
    # Two releases: what is outside, three files, one that came and one that went; and the removal.
    assert len(made.commits) == 1 + 2 * 6 + 1
    tree = subprocess.run(
        ["git", "-C", str(tmp_path / "h.git"), "rev-parse", f"{made.bad}^{{tree}}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert tree.stdout.strip() == releases[-1].tree


def test_fewer_commits_and_a_stretch_that_does_not_compile(
    tmp_path: Path, releases: list[Source]
) -> None:
    made = write(tmp_path / "h.git", releases, FIX.encode(), commits=8, broken=3)
    assert len(made.commits) == 8
    check(tmp_path / "h.git", made)
    assert len(made.broken) == 3 and made.culprit in made.broken
    assert sources.from_git(tmp_path / "h.git", made.bad).tree == releases[-1].tree
