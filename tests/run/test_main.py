# SPDX-License-Identifier: GPL-2.0-or-later
"""What run_test.sh says when its report cannot be written, and the runs are there."""

import errno
from pathlib import Path

import pytest

from errors import Exit, run_command
from run.main import report
from tests.make_results import make_campaign


def test_a_file_of_somebody_else_s_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "/home/else/bzImage")

    assert run_command("x", main) == Exit.MISSING
    said = "x: /home/else/bzImage: Permission denied (not this user's to use)\n"
    assert capsys.readouterr().err == said


def test_a_summary_in_whose_way_something_is_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_campaign(tmp_path, 1)
    (folder / "report").write_text("a file")
    assert report(folder) == Exit.MISSING
    said = capsys.readouterr()
    assert "report/summary.txt: Not a directory" in said.out + said.err
    assert "Traceback" not in said.out + said.err
