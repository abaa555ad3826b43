# SPDX-License-Identifier: GPL-2.0-or-later
"""mixed without a guest: the desktop's options, streams and metric, and its own tables."""

from run import dry_run
from run.arguments import parse
from workloads import desktop, mixed
from workloads.registry import packages

MIXED = ["--workload", "mixed", "--profile", "quick"]


def test_mixed_is_the_desktop_and_more() -> None:
    options = parse([*MIXED, "--gitk", "2"])
    assert options.gitks and options.parameters["gitk"] == 2
    assert options.memory == parse(["--profile", "quick"]).memory + mixed.MORE_MEMORY
    assert parse([*MIXED, "--memory", "300M"]).memory == 300 << 20
    assert mixed.streams(options) == ["gitk-1", "gitk-2", "io"]
    told, own = mixed.describe(options), desktop.describe(options)
    assert (told.subjects, told.primary) == (own.subjects, own.primary)
    assert {key for table in told.tables for row in table.rows for key in row.figures} == {
        "mib-written",
        "rate-written",
        *(one.key for one in told.recorded),
    }
    assert packages("mixed") == packages("seqio") != packages("desktop") == ()
    text = " ".join(dry_run.lines(options))
    assert "2 gitk's" in text and "while 4M a second are written outside" in text
