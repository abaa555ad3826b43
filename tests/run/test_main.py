# SPDX-License-Identifier: GPL-2.0-or-later
"""What run_test.sh says when its report cannot be written, and the runs are there."""

from pathlib import Path

import pytest

from errors import Exit
from run.main import report
from tests.make_results import make_campaign


def test_a_summary_in_whose_way_something_is_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_campaign(tmp_path, 1)
    (folder / "report").write_text("a file")
    assert report(folder) == Exit.MISSING
    said = capsys.readouterr()
    assert "report/summary.txt: Not a directory" in said.out + said.err
    assert "Traceback" not in said.out + said.err
