# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the freeze begins, with known answers."""

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks import overload
from benchmarks.synthetic_results.make import line_log, meta, write_run
from errors import UserError
from graphs.pictures import png


def campaign(
    folder: Path, machine: str, mib: float, gaps: list[float], state: str, programs: int = 1
) -> Path:
    """A campaign of one run of gitk's with these gaps (s) before their lines."""
    facts = meta("6.12", machine={"name": machine}, mem_total_kib=int(mib * 1024))
    facts["parameters"] |= {"gitk": programs}
    log = line_log([(gap, f"line {number}") for number, gap in enumerate(gaps)], 0.0)
    files: dict[str, str | bytes] = {"meta.json": json.dumps(facts)}
    files |= {f"latency-gitk-{number}.log": log for number in range(1, programs + 1)}
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
        ["emmc", "100", "MiB", "1", "2", "2", "62", "%", "3.0", "s"],  # the mean of 3/4 and 1/2
        ["ssd", "200", "MiB", "1", "1", "1", "0", "%", "0.5", "s"],
        ["ssd", "100", "MiB", "1", "1", "0", "90", "%", "9.0", "s"],
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_programs_are_the_load_if_their_number_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(png, "write", lambda draw, path: drawn.append(draw()))
    folders = [  # one has 4 KiB less
        str(campaign(tmp_path / "a", "ssd", 100 - 4 / 1024, [0.5, 9.5], "completed", programs=3)),
        str(campaign(tmp_path / "b", "ssd", 100, [0.5, 0.5], "completed", programs=2)),
    ]
    assert overload.main([str(tmp_path / "picture.png"), *folders]) == 0
    assert [line.split()[1:4] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["100", "MiB", "2"],
        ["100", "MiB", "3"],
    ]
    shares = drawn[0].axes[0]
    assert shares.get_xlabel() == "programs" and not shares.xaxis_inverted()
    assert np.asarray(shares.lines[0].get_xydata()).tolist() == [[2, 0], [3, 95]]


def test_runs_without_a_result_are_refused(campaigns: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none of these runs"):
        overload.main([str(tmp_path / "picture.png"), campaigns[-1]])
    assert not (tmp_path / "picture.png").exists()
