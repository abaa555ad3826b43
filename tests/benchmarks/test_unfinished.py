# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts on runs that were not done, simulated: how often they err, and that they find."""

import pytest

from benchmarks.verdicts import unfinished

CAMPAIGNS = 300


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, unfinished.ALL])
def test_the_same_kernel_is_seldom_told_from_itself(share: float) -> None:
    found = unfinished.simulate(6, 1.0, share, CAMPAIGNS, seed=3)
    assert found.cut_base == pytest.approx(share, abs=0.05) and found.contradicted == 0
    # Of 300 campaigns that err in 5 %, 23 or fewer do in 97 % of all seeds; this is one of them.
    assert found.regressed + found.improved <= 23 / CAMPAIGNS
    assert found.covered >= 1 - 23 / CAMPAIGNS or not found.intervals
    assert found.equivalent <= 0.05 and (found.intervals == 0) == (share == unfinished.ALL)


def test_a_kernel_that_stalls_longer_is_found_as_long_as_the_baseline_is_done() -> None:
    few, most = (unfinished.simulate(8, 1.5, share, 100, seed=3) for share in (0.2, 0.8))
    assert few.cut_sample > 0.9 and few.regressed > 0.8 and few.covered > 0.9
    assert most.regressed < 0.3  # little is known if most runs are cut, and some are not
    assert few.improved == most.improved == few.contradicted == most.contradicted == 0


def test_if_no_run_is_done_it_is_found_up_to_the_limit() -> None:
    shares = unfinished.simulate(8, 1.5, unfinished.ALL, 100, seed=3)
    assert (shares.cut_base, shares.cut_sample) == pytest.approx((1, 1)) and shares.regressed > 0.8
    assert shares.improved == shares.contradicted == shares.intervals == 0


def test_the_table_has_a_row_for_each_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert unfinished.main(["--campaigns", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 2 + len(unfinished.SETTINGS)
    assert rows[2].startswith("| the same kernel (A/A) | 5 | ") and rows[2].endswith(" | 0 |")
