# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that was copied is one run; runs of a few lines may be alike by chance."""

import shutil
from pathlib import Path

from analysis.reading.copies import DISTINCT, identity
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import make_campaign


def test_a_run_copied_five_times_is_one_run(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 2, 5)
    whole = load_campaign(folder)
    a, b = whole.variants()
    assert all(identity(run) for run in whole.runs) and not whole.problems
    for number in range(2, 6):
        shutil.rmtree(folder / b / str(number))
        shutil.copytree(folder / b / "1", folder / b / str(number))
    found = load_campaign(folder)
    assert {name: len(runs) for name, runs in found.variants().items()} == {a: 5, b: 1}
    (problem,) = found.problems
    assert (
        problem.startswith(f"the same run as {b}/1 ") and f"{b}/2, {b}/3, {b}/4, {b}/5" in problem
    )
    compared = compare(found)
    assert compared.primary[b].verdict == "undecided"
    assert f"the same run as {b}/1" in " ".join(compare_text.text(compared).split())


def test_another_seed_another_end_or_a_few_lines_is_another_run(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1, 3)
    (variant,) = load_campaign(folder).variants()
    for number in (2, 3):
        shutil.rmtree(folder / variant / str(number))
        shutil.copytree(folder / variant / "1", folder / variant / str(number))
    meta, status = folder / variant / "2/meta.json", folder / variant / "3/status.json"
    meta.write_text(meta.read_text().replace("{", '{"seed": 77,', 1))
    status.write_text(status.read_text().replace("completed", "hung"))
    assert len(load_campaign(folder).runs) == 3
    for log in (folder / variant).glob("*/latency-*.log"):
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[: DISTINCT // 20]))
    told = [identity(run) for run in load_campaign(folder).runs]
    assert told[0] == told[2] == "" and told[1].startswith("completed ")
