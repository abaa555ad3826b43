# SPDX-License-Identifier: GPL-2.0-or-later
"""run.run_folders: what in a campaign's folder is a run."""

from pathlib import Path

from run.run_folders import completed, numbered


def test_a_folder_that_is_no_number_of_a_run_is_none(tmp_path: Path) -> None:
    for name in ("1", "12", "²", "٣", "01", "0", "9" * 200, "1.cut-1"):
        (tmp_path / name).mkdir()
    assert sorted(numbered(tmp_path)) == [1, 12]


def test_a_status_that_nobody_can_read_is_none(tmp_path: Path) -> None:
    for number, text in ((1, "[" * 100_000), (2, '{"state": ' + "[" * 900 + "]" * 900 + "}")):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "status.json").write_text(text)
    assert completed(tmp_path) == set()
