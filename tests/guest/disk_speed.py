# SPDX-License-Identifier: GPL-2.0-or-later
"""In a guest: what the disk under test does, by the guest's clock, with direct IO.

usage: disk_speed.py … --device DISK …. Prints one line of JSON to the console after the word
DISK-SPEED: requests a second of 4 KiB at random places, with 1 and with 32 at a time, and bytes a
second of reads and writes of 8 MiB one after the other; with two more disks, both at once, too.
"""

import concurrent.futures
import json
import mmap
import os
import random
import sys
import threading
import time

from contract.run_files import more_disks
from measure.machine_facts import disk_of_serial

AREA = 4 << 30  # of the disk's beginning
RANDOM = 4096
LARGE = 8 << 20  # of which a driver makes several requests, one right after the other
RANDOM_S = 8.0  # how long each of the two goes on, or until so many are done: flash soon has them,
RANDOM_COUNT = 6400  # and each costs the host far more than the wait for a disk that turns
LARGE_COUNT = 40


def random_reads(disks: list[int], at_once: int) -> float:
    """Requests a second, each at a random place, of each disk so many at a time."""
    done = [0] * at_once * len(disks)
    end = time.monotonic() + RANDOM_S

    def reader(number: int) -> None:
        place = random.Random(number)
        page = mmap.mmap(-1, RANDOM)
        while time.monotonic() < end and done[number] < RANDOM_COUNT // len(done):
            os.preadv(disks[number % len(disks)], [page], place.randrange(AREA // RANDOM) * RANDOM)
            done[number] += 1

    began = time.monotonic()
    threads = [threading.Thread(target=reader, args=(number,)) for number in range(len(done))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - began)


def sequential(disk: int, write: bool) -> float:
    """Bytes a second."""
    page = mmap.mmap(-1, LARGE)
    if write:
        page[:] = b"x" * LARGE
    move = os.pwritev if write else os.preadv
    move(disk, [page], 0)
    began = time.monotonic()
    for number in range(1, LARGE_COUNT + 1):
        move(disk, [page], number * LARGE)
    return LARGE_COUNT * LARGE / (time.monotonic() - began)


def both(disks: list[int]) -> float:
    """Bytes a second of both together, read one after the other of each."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return sum(pool.map(lambda disk: sequential(disk, False), disks))


def opened(name: str) -> int:
    """The disk, past the page cache."""
    return os.open(name, os.O_RDWR | os.O_DIRECT)


def main() -> None:
    """Measure, and say it."""
    disk = opened(sys.argv[sys.argv.index("--device") + 1])
    found = {
        "write_bytes_per_s": sequential(disk, True),
        "read_bytes_per_s": sequential(disk, False),
        "reads_per_s": random_reads([disk], 1),
        "reads_per_s_32": random_reads([disk], 32),
    }
    names = [disk_of_serial(serial) for serial in more_disks(2)]
    if all(names):
        more = [opened(f"/dev/{name}") for name in names]
        found |= {
            "both_read_bytes_per_s": both(more),
            "both_reads_per_s": random_reads(more, 1),
            "of_them_one_reads_per_s": random_reads(more[:1], 1),
        }
    print("DISK-SPEED", json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
