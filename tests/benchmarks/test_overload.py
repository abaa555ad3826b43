# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the freeze begins, with known answers."""

import json
from pathlib import Path

import pytest

from benchmarks import overload
from errors import UserError
from tests.make_results import line_log, meta, write_run


def campaign(folder: Path, machine: str, mib: int, gaps: list[float], state: str) -> Path:
    """A campaign of one run of one gitk with these gaps (s) before its lines."""
    facts = meta("6.12", machine={"name": machine}, mem_total_kib=mib * 1024)
    facts["parameters"] |= {"gitk": 1}
    log = line_log([(gap, f"line {number}") for number, gap in enumerate(gaps)], 0.0)
    files: dict[str, str | bytes] = {"latency-gitk-1.log": log, "meta.json": json.dumps(facts)}
    write_run(folder / "6.12" / "1", files, state, why="known", elapsed_s=sum(gaps))
    return folder


@pytest.fixture
def campaigns(tmp_path: Path) -> list[str]:
    return [
        str(campaign(tmp_path / "a", "ssd", 200, [0.5] * 10, "completed")),
        str(campaign(tmp_path / "b", "ssd", 100, [0.5, 0.5, 9.0], "unfinished")),
        str(campaign(tmp_path / "c", "emmc", 100, [0.5, 0.5, 3.0], "completed")),
        str(campaign(tmp_path / "d", "emmc", 100, [0.5, 0.5, 1.0], "completed")),
        str(campaign(tmp_path / "e", "emmc", 90, [7.0], "aborted")),  # no result
    ]


def test_the_figures_of_each_machine_and_memory(
    campaigns: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "picture.png"
    assert overload.main([str(picture), *campaigns]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["emmc", "100", "MiB", "2", "2", "62", "%", "3.0", "s"],  # the mean of 3/4 and 1/2
        ["ssd", "200", "MiB", "1", "1", "0", "%", "0.5", "s"],
        ["ssd", "100", "MiB", "1", "0", "90", "%", "9.0", "s"],
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs_without_a_result_are_refused(campaigns: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of these runs"):
        overload.main([str(tmp_path / "picture.png"), campaigns[-1]])
    assert not (tmp_path / "picture.png").exists()
