# SPDX-License-Identifier: GPL-2.0-or-later
"""When QEMU handles the end of a modelled disk's requests, if the guest only waits for them."""

import subprocess
from pathlib import Path

import pytest

from tests.support.library_drivers import compiled

ACCESS_NS, BYTES_PER_S, SIZE = 17_543_859, 58_000_000, 4096  # the laptop's disk
A_READ_NS = ACCESS_NS + SIZE * 10**9 // BYTES_PER_S


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("requests")
    return compiled(folder, "requests_driver", "requests rings disk", "-luring", "-lpthread")


def ends(program: Path, file: Path, disk: str, places: list[int]) -> list[tuple[int, int]]:
    """The requests in the order of their ends, each with the ns of its end."""
    file.write_bytes(bytes(SIZE))
    with open(file, "r+b") as opened:
        opened.truncate(max(places) + SIZE)
    words = [str(program), str(file), disk, *map(str, places)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    rows = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
    assert all(size == SIZE for _, _, size in rows)
    return [(number, end) for number, end, _ in rows]


def test_the_guest_sees_each_request_end_when_the_disk_has_done_it(
    program: Path, tmp_path: Path
) -> None:
    """Not when it has done the next one, though nothing else happens in the guest until then."""
    places = [number * (64 << 20) for number in (9, 2, 7, 4)]
    rotating = f"1 1 32 {ACCESS_NS} {BYTES_PER_S}"
    seen = ends(program, tmp_path / "disk", rotating, places)
    assert [number for number, _ in seen] == [0, 1, 2, 3]
    for number, end in seen:
        assert end == pytest.approx((number + 1) * A_READ_NS, abs=2 * (number + 1))


def test_flash_ends_what_it_does_at_a_time_one_transfer_after_the_other(
    program: Path, tmp_path: Path
) -> None:
    flash = f"0 4 32 {ACCESS_NS} {BYTES_PER_S}"
    seen = ends(program, tmp_path / "disk", flash, [number * (64 << 20) for number in range(4)])
    transfer = A_READ_NS - ACCESS_NS
    for number, end in seen:
        assert end == pytest.approx(ACCESS_NS + (number + 1) * transfer, abs=2 * (number + 1))
