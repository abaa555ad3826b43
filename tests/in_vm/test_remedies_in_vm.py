# SPDX-License-Identifier: GPL-2.0-or-later
"""Remedies in guests: real daemons kill the runaway and log it; the group has its settings.

And the untreated run beside them has neither, in the same image.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.vms import OWN_CLOCK, command, nothing_left

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(1800)]
RUNAWAY = [word for word in OWN_CLOCK if word not in ("--commits", "6000", "--gitk", "2")]
RUNAWAY += ["--workload", "runaway", "--load", "patience=60,windows=2", "--swap", "zram,size=32M"]
REMEDIES = ("earlyoom", "memory-low", "systemd-oomd")
LABELS = ("untreated", *REMEDIES)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each."""
    out = tmp_path_factory.mktemp("remedies") / "out"
    argv = [*RUNAWAY, "--kernel", "debian:6.12"]
    argv += [word for remedy in REMEDIES for word in ("--remedy", remedy)]
    argv += [word for label in LABELS for word in ("--label", label)]
    with nothing_left(), command(*argv, "--jobs", "2", "--out", str(out)) as process:
        printed, errors = process.communicate(timeout=1700)
    assert process.returncode == 0, printed + errors
    assert "Traceback" not in errors
    return out


def meta(campaign: Path, label: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((campaign / label / "1" / "meta.json").read_text())
    return found


def test_all_are_of_one_image_and_the_untreated_one_has_no_more_in_it(campaign: Path) -> None:
    each = [meta(campaign, label) for label in LABELS]
    assert len({json.dumps(one["guest"], sort_keys=True) for one in each}) == 1
    assert "remedy" not in each[0]
    states = [json.loads((campaign / one / "1" / "status.json").read_text()) for one in LABELS]
    assert {one["state"] for one in states} == {"completed"}, states


def test_earlyoom_acted_and_the_kernel_did_not(campaign: Path) -> None:
    told = meta(campaign, "earlyoom")
    assert told["remedy"]["daemon"] == "earlyoom -r 3600" and told["remedy"]["daemon_alive"]
    assert told["packages"]["earlyoom"].startswith("1.7-")
    # Whether it still asks depends on how fast the memory went.
    sent = re.compile(r"sending SIG(?:TERM|KILL) to process \d+")
    assert any(sent.match(line) for line in told["remedy"]["log"])
    assert told["figures"]["gave-up"] == 0
    header, *rows = (campaign / "earlyoom" / "1" / "vmstat.tsv").read_text().splitlines()
    kills = [row.split("\t")[header.split("\t").index("oom_kill")] for row in rows]
    assert kills[0] == kills[-1]
    assert told["figures"]["lived"] < meta(campaign, "untreated")["figures"]["lived"]


def test_the_group_has_its_share_of_the_memory(campaign: Path) -> None:
    told = meta(campaign, "memory-low")
    low = int(told["remedy"]["slice"]["memory.low"])
    assert low == pytest.approx(told["mem_total_kib"] * 1024 / 2, abs=4096)


def test_systemd_oomd_killed_the_runaways_scope_and_no_other(campaign: Path) -> None:
    facts = meta(campaign, "systemd-oomd")
    assert facts["remedy"]["daemon_alive"]
    assert facts["packages"]["systemd-oomd"].startswith("252.")
    kills = [line for line in facts["remedy"]["log"] if line.startswith("Killed ")]
    assert {line.split()[1] for line in kills} == {"/desktop-freeze-slice/eater.scope"}
    assert "swap used" in kills[0]
    assert facts["figures"]["gave-up"] == 0
