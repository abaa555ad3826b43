# SPDX-License-Identifier: GPL-2.0-or-later
"""The real gitk in a guest: it reads the history in windows of an X server, and is a stream."""

import pytest

from analysis.reading.load import Run, load_campaign
from tests.support.vms import one_small_run

RUN_S = 900  # with a guest image to make first
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
COMMITS, WINDOWS = 700, 2
# What a window keeps of a commit: 9.7 KiB were measured (docs/developer/fake-gitk.md).
LEAST_KIB, MOST_KIB = 5, 20


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with memory to spare, its report made."""
    out = tmp_path_factory.mktemp("gitk") / "out"
    more = ("--gitk", str(WINDOWS), "--commits", "1500", "--memory", "400M")
    one_small_run(out, "debian:6.12", "gitk", f"commits={COMMITS}", *more, within_s=RUN_S)
    (made,) = load_campaign(out).runs
    return made


def test_each_window_read_what_was_asked(run: Run) -> None:
    assert run.state == "completed"
    for number in range(1, WINDOWS + 1):
        lines = (run.path / f"latency-gitk-{number}.log").read_text().splitlines()
        counts = [int(line.rsplit(" ", 1)[1]) for line in lines if "pass 1 commits" in line]
        # gitk reads up to 500,000 bytes at a time.
        assert len(counts) >= 2 and counts == sorted(set(counts)), lines
        # Boundaries of what --max-count leaves out are rows, too.
        assert COMMITS <= counts[-1] <= 1.2 * COMMITS, lines


def test_its_windows_are_subjects_and_a_report_is_made(run: Run) -> None:
    assert run.workload.name == "gitk"
    assert run.workload.subjects == tuple(f"gitk-{n}" for n in range(1, WINDOWS + 1))
    summary = (run.path.parents[1] / "report" / "summary.txt").read_text()
    assert "real gitk's" in " ".join(summary.split())


def test_it_keeps_more_of_a_commit_than_fake_gitk(run: Run) -> None:
    header, *rows = (run.path / "meminfo.tsv").read_text().splitlines()
    columns = header.split("\t")
    anonymous = [int(row.split("\t")[columns.index("AnonPages")]) for row in rows]
    kept = (max(anonymous) - anonymous[0]) / (WINDOWS * COMMITS)
    assert LEAST_KIB < kept < MOST_KIB
