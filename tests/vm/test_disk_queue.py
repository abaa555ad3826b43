# SPDX-License-Identifier: GPL-2.0-or-later
"""The order in which a modelled disk serves its queue, and how long a request waits in it."""

from pathlib import Path

import pytest

from tests.support.library_drivers import compiled
from tests.support.observers import Driven

ACCESS_NS, RATE = 17_543_859, 58e6  # the laptop's disk
DEPTH, LARGE, SMALL = 32, 512 << 10, 4096
FAR = 1 << 40
KINDS = {"rotating": f"1 2 1 1 {DEPTH} {ACCESS_NS} {RATE}"}
KINDS["flash"] = f"1 2 0 1 {DEPTH} {ACCESS_NS} {RATE}"


def ns(size: int) -> int:
    """How long the bytes of a request take."""
    return int(size / RATE * 1e9)


class Drive(Driven):
    """A disk, and what it has served."""

    def put(self, now: int, place: int, size: int) -> None:
        self.tell(f"put {now} {place} {size}\n".encode())

    def next(self) -> tuple[int, int]:
        """Where the next request to end was, and when it ended."""
        self.tell(b"next\n")
        place, end = self.line().split()
        return int(place), int(end)

    def taken_for_age(self) -> int:
        self.tell(b"old\n")
        return int(self.line())


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("disk"), "disk_driver", "disk")


def writer(drive: Drive, first: int, until: int, wanted: int = -1) -> tuple[int, int, int]:
    """Go on writing one block after the other, with a full queue, to the moment `until`.

    Or to the end of the request at the place `wanted`. The next block, and what ended last, when.
    """
    while True:
        place, end = drive.next()
        if end >= until or place == wanted:
            return first, place, end
        drive.put(end, first, LARGE)
        first += LARGE


def test_a_read_behind_an_endless_writer_waits_for_a_full_queue_at_most(program: Path) -> None:
    with Drive(program, KINDS["rotating"]) as drive:
        for number in range(DEPTH):
            drive.put(0, number * LARGE, LARGE)
        first, _, came = writer(drive, DEPTH * LARGE, 10_000_000_000)
        drive.put(came, FAR, SMALL)  # where the next block would have been
        _, place, end = writer(drive, first, came + 100_000_000_000, FAR)
        assert place == FAR
        # The block that the disk is at when that time is over is not broken off.
        waited = end - came - ACCESS_NS - ns(SMALL)
        assert DEPTH * ACCESS_NS <= waited <= DEPTH * ACCESS_NS + ns(LARGE) + 1000
        assert drive.taken_for_age() == 1


def test_no_access_is_lost_while_nothing_is_old(program: Path) -> None:
    with Drive(program, KINDS["rotating"]) as drive:
        for number in range(DEPTH):
            drive.put(0, number * LARGE, LARGE)
        blocks, _, end = writer(drive, DEPTH * LARGE, 10_000_000_000)
        done = blocks // LARGE - DEPTH + 1
        assert end == pytest.approx(done * LARGE / RATE * 1e9, abs=done)
        assert drive.taken_for_age() == 0


def test_within_that_time_the_disk_goes_on_where_it_is(program: Path) -> None:
    with Drive(program, KINDS["rotating"]) as drive:
        for place in (0, FAR, 2 * LARGE, LARGE):
            drive.put(0, place, LARGE)
        assert [drive.next()[0] for _ in range(4)] == [0, LARGE, 2 * LARGE, FAR]
        assert drive.taken_for_age() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_what_never_goes_on_is_served_in_its_order(program: Path, kind: str) -> None:
    places = [(7919 * number % 1009) * (64 << 20) + number * 4096 for number in range(DEPTH)]
    with Drive(program, KINDS[kind]) as drive:
        for place in places:
            drive.put(0, place, SMALL)
        assert [drive.next()[0] for _ in places] == places
        assert drive.taken_for_age() == 0
