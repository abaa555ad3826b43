# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bisect takes from a run: one that ended, one that was not done, one that failed."""

import json
import math
from pathlib import Path

import pytest

from run.bisect.results import run_facts, value
from tests.support.verdicts import stalling_run


@pytest.mark.parametrize(
    ("state", "figure"), [("completed", 60.0), ("unfinished", math.inf), ("hung", math.inf)]
)
def test_what_was_not_done_has_the_worst_rank(tmp_path: Path, state: str, figure: float) -> None:
    run = tmp_path / "c/a/1"
    stalling_run(run, 60.0)
    told = json.loads((run / "status.json").read_text())
    (run / "status.json").write_text(json.dumps(told | {"state": state, "why": "late"}))
    found = run_facts(run, "a", state)
    assert (found.counts, found.why_not) == (True, "")
    assert value(found) == pytest.approx(figure)
