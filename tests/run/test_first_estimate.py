# SPDX-License-Identifier: GPL-2.0-or-later
"""How long runs will take, before and after the first of them."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contract.options import Options
from run.arguments import parse
from run.dry_run import lines
from run.estimates import durations, first_estimate, speed_here
from run.estimates.first_estimate import FIRST, UNKNOWN, a_run, in_all, words
from run.preparation import PreparedVariant
from vm import speed
from vm.guest import Timing
from vm.qemu import GUEST, HOST

QUICK = ["--profile", "quick", "--jobs", "2"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(speed, "known", lambda qemu: 347e6)
    return 347e6


def dry_run(*argv: str) -> str:
    (line,) = [line for line in lines(parse(list(argv))) if line.startswith("runs: ")]
    return line.partition("host's clock), ")[2]


def note(options: Options, seconds: float) -> None:
    kind = durations.kind_of(options.of(options.variants[0]), 2)
    durations.note(kind, "tcg", seconds)


def test_the_estimate_holds_the_run_that_it_is_made_of() -> None:
    """6.12, `quick`, 123 s where 347 million instructions a second are emulated."""
    options = parse(QUICK)
    span = first_estimate.seconds(options, "tcg", 2, GUEST, 347e6)
    assert span is not None and span[0] < 123 < span[1]
    slow = first_estimate.seconds(options, "tcg", 2, GUEST, 347e6 / 3)
    assert slow is not None and slow == pytest.approx((3 * span[0], 3 * span[1]))
    work = first_estimate.instructions(options)
    whole = first_estimate.instructions(parse(["--profile", "standard"]))
    assert work is not None and whole is not None and whole / work == pytest.approx(2.4, abs=0.1)


def test_a_dry_run_estimates_before_the_first_run(measured: float) -> None:
    one = dry_run(*QUICK)
    assert one == f"about 2 to 4 min ({FIRST})"
    four = dry_run(*QUICK, "--runs", "4")
    assert four == f"about 2 to 4 min a run, about 3 to 8 min in all ({FIRST})"


def test_runs_that_were_are_preferred(measured: float) -> None:
    note(parse(QUICK), 200.0)
    assert dry_run(*QUICK, "--runs", "4") == "about 7 min"
    # Of two kinds of runs one is known: the other is still estimated.
    each = [parse(QUICK), parse(["--jobs", "2"])]
    known, first = first_estimate.spans(each, "tcg", 2, GUEST, "suite")
    assert known == (200.0, 200.0) and first[0] < first[1]


def test_without_a_speed_it_says_whose_time_that_is() -> None:
    found = dry_run(*QUICK, "--runs", "4")
    assert re.match(r"about .* a run where 350 million instructions a second are emulated", found)
    assert "measured before its first run" in found


def test_what_was_never_measured_is_not_estimated(measured: float) -> None:
    assert dry_run(*QUICK, "--workload", "seqio") == UNKNOWN
    assert UNKNOWN in "\n".join(lines(parse(["--machine", "host"])))
    assert first_estimate.seconds(parse(QUICK), "tcg", 1, HOST, measured) is None
    each = [parse(QUICK), parse([*QUICK, "--workload", "seqio"])]
    assert first_estimate.spans(each, "tcg", 2, GUEST, "suite") == []


def test_spans_in_words_and_in_all() -> None:
    each = [(60.0, 120.0), (120.0, 240.0), (120.0, 240.0)]
    assert in_all(each, 2) == (200.0, 400.0) and a_run(each) == (100.0, 200.0)
    assert words((120.0, 240.0)) == "about 2 to 4 min"
    assert words((60.0, 80.0)) == "about 60 to 80 s"
    assert words((80.0, 180.0)) == "about 80 s to 3 min"
    assert words((7200.0, 14_000.0)) == "about 2 h 00 min to 3 h 53 min"
    assert words((3600.0, 7200.0)) == "about 60 min to 2 h 00 min"
    assert words((130.0, 130.0)) == "about 2 min"


def test_the_speed_is_measured_only_if_an_estimate_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(speed, "measured", lambda qemu, *_: asked.append(qemu))

    def made_ready(options: Options, clock: str = GUEST) -> None:
        guest: Any = SimpleNamespace(
            accel="tcg",
            timing=Timing(clock, ""),
            emulator=None,
            kernel=SimpleNamespace(image=None),
            files=SimpleNamespace(initrd=None),
        )
        speed_here.measure(options, [PreparedVariant(options.variants[0], cast(Any, guest))], 2)

    made_ready(parse(QUICK), HOST)
    made_ready(parse([*QUICK, "--workload", "seqio"]))
    assert asked == []
    made_ready(parse(QUICK))
    assert asked == ["suite"]
    note(parse(QUICK), 200.0)
    made_ready(parse(QUICK))
    assert asked == ["suite"]
