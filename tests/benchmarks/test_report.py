# SPDX-License-Identifier: GPL-2.0-or-later
"""benchmarks/report/measure.py: stages by the clock, memory of all processes together."""

import pytest

from benchmarks.report.measure import measured
from errors import UserError

PROGRAM = """
import array, fcntl, subprocess, sys, termios, time
def say(words):
    # A stage begins when it is heard of: by a busy machine later than it was said.
    print(words, file=sys.stderr, flush=True)
    unheard = array.array("i", [1])
    while unheard[0]:
        fcntl.ioctl(2, termios.FIONREAD, unheard)
say("one: begins")
time.sleep(0.4)
say("two")
holds = "import time; x = bytearray(b'x') * (60 << 20); time.sleep(1)"
subprocess.run([sys.executable, "-c", holds])
sum(range(3_000_000))
"""
STAGES = {"": "start", "one": "first", "two": "second"}


def test_each_stage_has_its_time_and_a_childs_memory_counts() -> None:
    cost = measured(["-c", PROGRAM], STAGES)
    assert list(cost.seconds) == ["start", "first", "second"]
    assert cost.seconds["first"] >= 0.35 and cost.seconds["second"] >= 0.9
    assert cost.whole == sum(cost.seconds.values())
    assert cost.cpu["second"] > cost.cpu["first"] >= 0
    assert 60 <= cost.together < 120


def test_a_program_that_fails_or_has_other_stages_is_no_measurement() -> None:
    with pytest.raises(UserError, match="ended with status 1: ValueError: no"):
        measured(["-c", "raise ValueError('no')"], {"": "all"})
    with pytest.raises(UserError, match="never printed 'two'"):
        measured(["-c", "import sys; sys.stderr.write('one\\n')"], STAGES)
