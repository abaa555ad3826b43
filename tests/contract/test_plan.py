# SPDX-License-Identifier: GPL-2.0-or-later
"""contract.plan: what was asked for, read from plan.toml whole, old, or damaged."""

import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from contract.plan import Plan, parse_plan
from contract.swap import Swap
from contract.variant import Variant

WHOLE = """\
format = 1
baseline = "6.12"
margin = 0.05
alpha = 0.01
runs = 7
command = "./run_test.sh --plan x"
suite = "0123"
[parameters]
gitk = 4
[stop_when_sure]
looks = [5, 7, 10]
[[variant]]
label = "6.1"
kernel = "debian:6.1"
[[variant]]
label = "6.12"
kernel = "debian:6.12"
append = "quiet"
swap = "zram,size=96M"
[variant.knobs]
"/sys/kernel/mm/lru_gen/enabled" = "0"
[[run]]
variant = "6.12"
number = 1
order = 1
[[run]]
variant = "6.1"
number = 1
order = 2
[[run]]
variant = "6.1"
number = 1
order = 3
"""


def test_every_part_of_a_plan_is_read() -> None:
    plan, problems = parse_plan(WHOLE.encode())
    assert problems == []
    assert (plan.baseline, plan.margin, plan.alpha, plan.runs) == ("6.12", 0.05, 0.01, 7)
    assert plan.looks == (5, 7, 10) and plan.command == "./run_test.sh --plan x"
    assert plan.variants == (
        Variant("debian:6.1", "6.1"),
        Variant(
            *("debian:6.12", "6.12", "quiet", (("/sys/kernel/mm/lru_gen/enabled", "0"),)),
            Swap("zram", 96 << 20),
        ),
    )
    # A run that was cut short was begun twice: the later one is the run.
    assert plan.orders == {("6.12", 1): 1, ("6.1", 1): 3}
    assert plan.text == WHOLE


@pytest.mark.parametrize(
    ("line", "bad", "named"),
    [
        ("margin = 0.05", "margin = -1", "margin"),
        ("margin = 0.05", "margin = nan", "margin"),
        ("margin = 0.05", "margin = true", "margin"),
        ("alpha = 0.01", "alpha = 0.5", "alpha"),
        ("alpha = 0.01", "alpha = inf", "alpha"),
        ("runs = 7", "runs = 0", "runs"),
        ("runs = 7", "runs = 7.5", "runs"),
        ('baseline = "6.12"', "baseline = 6.12", "baseline"),
        ("looks = [5, 7, 10]", "looks = [5, 5]", "looks"),
        ("looks = [5, 7, 10]", "looks = [7, -5]", "looks"),
        ("looks = [5, 7, 10]", "looks = 5", "looks"),
        ("[stop_when_sure]\nlooks = [5, 7, 10]", "[[stop_when_sure]]", "looks"),
        ('label = "6.1"', 'label = "6.12"', "variant without a label"),
        ('label = "6.1"', "label = 6.1", "variant without a label"),
        ('enabled" = "0"', 'enabled" = 0', "knobs"),
        ("zram,size=96M", "zram,pool=3", "swap of a variant"),
        ('"zram,size=96M"', "7", "swap"),
        ("number = 1", 'number = "1"', "run without"),
        ("order = 3", "order = 0", "run without"),
    ],
)
def test_a_value_that_cannot_be_is_named_and_takes_its_default(
    line: str, bad: str, named: str
) -> None:
    assert line in WHOLE
    plan, problems = parse_plan(WHOLE.replace(line, bad).encode())
    assert any(named in problem for problem in problems)
    defaults = Plan()
    assert plan.margin in (0.05, defaults.margin) and plan.alpha in (0.01, defaults.alpha)
    assert plan.runs in (7, None) and plan.looks in ((5, 7, 10), ())
    assert plan.baseline in ("6.12", None)


@given(cut=st.integers(0, len(WHOLE)), junk=st.binary(max_size=20))
def test_a_damaged_plan_makes_no_traceback(cut: int, junk: bytes) -> None:
    raw = WHOLE.encode()[:cut] + junk
    plan, problems = parse_plan(raw)
    assert all("\n" not in problem for problem in problems)
    try:
        tomllib.loads(raw.decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        assert len(problems) == 1 and plan.variants == () and plan.orders == {}


VALUE = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
KEYS = ("baseline", "margin", "alpha", "runs", "command", "stop_when_sure", "variant", "run")
ENTRY = st.dictionaries(
    st.sampled_from(["label", "kernel", "append", "swap", "knobs", "variant", "number", "order"]),
    VALUE,
)


@given(st.dictionaries(st.sampled_from(KEYS), VALUE | st.lists(ENTRY, max_size=3)))
def test_any_toml_at_all_gives_a_plan_that_can_be_believed(values: dict[str, object]) -> None:
    try:
        raw = tomli_w.dumps(values).encode()
    except (TypeError, ValueError, UnicodeEncodeError):
        return  # not to be written as TOML
    plan, problems = parse_plan(raw)
    assert 0 < plan.margin < 10 and 0 < plan.alpha < 0.5
    assert plan.runs is None or plan.runs > 0
    assert list(plan.looks) == sorted(set(plan.looks)) and all(one > 0 for one in plan.looks)
    assert all(number > 0 and order > 0 for (_, number), order in plan.orders.items())
    labels = [variant.label for variant in plan.variants]
    assert len(labels) == len(set(labels)) and all(labels)
    assert len(problems) <= 20


def test_depth_without_end_is_damage_like_any_other(tmp_path: Path) -> None:
    plan, problems = parse_plan(b"x = " + b"[" * 100_000)
    assert plan.variants == () and len(problems) == 1


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("", 0.05),
        ("[stop_when_sure]\nlooks = [5, 7, 10, 14, 20]", 0.01),
        ("extended = [5]", 0.025),
        ("extended = [5, 8]\n[stop_when_sure]\nlooks = [10, 14, 20]", 0.05 / 4 / 3),
        ("extended = [5, 5]", 0.05 / 4),
        ("extended = [8, 5]", 0.05),
        ('extended = "5"', 0.05),
    ],
)
def test_each_look_has_its_share_of_the_level(text: str, level: float) -> None:
    plan, problems = parse_plan(text.encode())
    assert plan.level == pytest.approx(level)
    assert bool(problems) is (text in ("extended = [8, 5]", 'extended = "5"'))
