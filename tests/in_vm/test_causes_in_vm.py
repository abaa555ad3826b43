# SPDX-License-Identifier: GPL-2.0-or-later
"""Known answers: a victim stalls in one way only, in a guest, and its card must name that cause.

tests/guest/stall_scenes.py has the scenes. CAUSES_KERNELS="debian:6.1 debian:7.2" tries others
than the oldest and the newest.
"""

from pathlib import Path
from typing import Any

import pytest

from analysis.reading.load import Run, load_campaign
from analysis.stall_causes.causes import Card
from analysis.stall_causes.run_causes import run_causes
from tests.guest.stall_scenes import SCENES
from tests.support.kernel_parameters import kernels
from tests.support.stall_scenes_run import play
from tests.support.vms import last_words, nothing_left

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(1500)]
KERNELS = kernels("CAUSES_KERNELS", "debian:7.3", more=("debian:5.10",))
DEADLINE_S = 800
SHARE = 0.9
# The causes that are not the first part of the scene's name.
CAUSES = {"stopped", "cpu_running", "lock", "compaction"} | {
    "reclaim_scan",
    "reclaim_noprogress",
    "reclaim_swapout",
    "reclaim_kswapd",
    "reclaim_writeback",
}
STOPPED_ERROR_S = 0.1

Played = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module", params=KERNELS)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One boot with all scenes: the folder of their runs, and scene -> its event."""
    folder = tmp_path_factory.mktemp("causes")
    with nothing_left():
        events = play(request.param, folder, [], DEADLINE_S)
    return folder, events


def cause_of(scene: str) -> str:
    """The cause that a scene is to be told by: dm_crypt_read is dm_crypt."""
    return scene if scene in CAUSES else scene.rpartition("_")[0]


def card_of(run: Run, event: dict[str, Any]) -> Card:
    """The card of the stall that the scene was."""
    causes = run_causes(run)
    assert causes is not None and causes.cards, run.warnings
    t0 = float(run.meta["t0"])
    begin, end = (float(event[key]) - t0 for key in ("began", "ended"))

    def shared(card: Card) -> float:
        return min(card.stall.end, end) - max(card.stall.begin, begin)

    return max(causes.cards, key=shared)


@pytest.mark.parametrize("scene", SCENES)
def test_the_card_names_the_cause(played: Played, scene: str) -> None:
    folder, events = played
    assert scene in events, last_words(folder)
    event = events[scene]
    if event["absent"]:
        pytest.skip(event["absent"])
    assert not event["error"], event
    run = load_campaign(folder / event["run"]).runs[0]
    card = card_of(run, event)
    cause = cause_of(scene)
    told = {key: round(seconds, 2) for key, seconds in card.seconds.items() if seconds}
    assert card.seconds.get(cause, 0.0) >= SHARE * card.stall.length, told
    assert sum(card.seconds.values()) == pytest.approx(card.stall.length, abs=0.01)
    if scene == "stopped":
        assert card.seconds[cause] == pytest.approx(event["held"], abs=STOPPED_ERROR_S)
