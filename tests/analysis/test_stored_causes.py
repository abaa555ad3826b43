# SPDX-License-Identifier: GPL-2.0-or-later
"""causes.json of a bundle without evidence: what was known comes back, damage is left out."""

import json
import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.reading.load import Campaign, load_campaign
from analysis.verdicts import cause_table, export, stored_causes
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import make_campaign
from contract.run_files import ALLOCFAIL, EVIDENCE

CAUSES = "causes.json"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, Campaign, dict[str, Any]]:
    """A campaign with evidence, the same with its causes.json only, and what that holds."""
    folder = make_campaign(tmp_path_factory.mktemp("c") / "c", 2, 2, with_evidence=True)
    whole = load_campaign(folder)
    text = export.causes_json(compare(whole))
    bare = Path(shutil.copytree(folder, folder.with_name("bare")))
    for name in set(EVIDENCE) - {ALLOCFAIL}:
        for path in bare.glob(f"*/*/{name}"):
            path.unlink()
    (bare / CAUSES).write_text(text)
    return whole, load_campaign(bare), json.loads(text)


def test_what_was_known_comes_back(kept: tuple[Campaign, Campaign, dict[str, Any]]) -> None:
    whole, bare, _ = kept
    known = {(run.variant, run.number): cause_table.collect(whole)[run.path] for run in whole.runs}
    again = cause_table.collect(bare)
    assert len(again) == len(known) == 4
    for run in bare.runs:
        before, after = known[run.variant, run.number], again[run.path]
        assert (after.seconds, after.notes, after.apart, after.swap, after.stored) == (
            *(before.seconds, before.notes, before.apart, before.swap),
            True,
        )
        assert len(after.cards) + after.without_card == len(before.cards)
        assert len(after.cards) == min(export.CARDS, len(before.cards))
        assert after.cards[0].stacks == before.cards[0].stacks
        assert after.cards[0].who.keys() == before.cards[0].who.keys()


def test_evidence_is_believed_before_the_file(
    kept: tuple[Campaign, Campaign, dict[str, Any]],
) -> None:
    whole, bare, _ = kept
    place = whole.path / CAUSES
    shutil.copy(bare.path / CAUSES, place)
    found = cause_table.collect(whole)
    place.unlink()
    assert len(found) == 4 and not any(one.stored for one in found.values())


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.update(seconds=dict.fromkeys(run["seconds"], 1.0)),  # not what the logs say
        lambda run: run["seconds"].update(magic=0.0),
        lambda run: run.pop("apart"),
        lambda run: run["cards"][0].update(length_s=float("nan")),
        lambda run: run.update(stalls=0),
        lambda run: run["cards"][0].update(who=[]),
        lambda run: run["cards"][0].update(stacks=[["a <- b"]]),
    ],
)
def test_a_run_that_is_damaged_has_no_causes(
    kept: tuple[Campaign, Campaign, dict[str, Any]], change: Any
) -> None:
    _, bare, told = kept
    other = deepcopy(told)
    change(other["runs"][0])
    place = bare.path / CAUSES
    try:
        place.write_text(json.dumps(other))
        assert len(stored_causes.stored(bare, bare.runs)) == 3
    finally:
        place.write_text(json.dumps(told))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
ANYTHING: st.SearchStrategy[Any] = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=2), st.dictionaries(st.text(max_size=3), SCALARS)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_damage_raises(
    kept: tuple[Campaign, Campaign, dict[str, Any]], data: st.DataObject
) -> None:
    """Any value of the file, at any depth, is replaced by another one."""
    _, bare, told = kept
    other: Any = {"it": deepcopy(told)}
    holder, key = other, "it"
    while isinstance(holder[key], dict | list) and holder[key] and data.draw(st.integers(0, 5)):
        holder = holder[key]
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
    holder[key] = data.draw(ANYTHING)
    (bare.path / CAUSES).write_text(json.dumps(other["it"]))
    found = stored_causes.stored(bare, bare.runs)
    (bare.path / CAUSES).write_text(json.dumps(told))
    assert len(found) <= 4
    for one in found.values():
        assert all(card.main and card.stall.length >= 0 for card in one.cards)
