# SPDX-License-Identifier: GPL-2.0-or-later
"""The progress of a run on another host, read from its files."""

from pathlib import Path

from run.jobs.progress import Progress, of_run


def test_who_is_silent_is_frozen_and_keys_are_seldom(tmp_path: Path) -> None:
    for name, last in (("heartbeat", 60.0), ("gitk-1", 31.0), ("gitk-2", 59.9), ("keys", 46.0)):
        (tmp_path / f"latency-{name}.log").write_text(f"{last:.3f} 0.100 x\n")
    assert of_run(tmp_path) == Progress(60.0, ("gitk-1",))
