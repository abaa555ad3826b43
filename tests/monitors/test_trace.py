# SPDX-License-Identifier: GPL-2.0-or-later
"""monitors/trace without its programs: names of functions, what is in flight.

That the programs load and count is asserted in a guest, never on this host
(tests/in_vm/test_tracing_in_vm.py).
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.observers import Driven, driver

BASE = 0xFFFFFFFF80000000
MANY = 96
SECOND = 10**9
LOOKS = 8


class Symbols(Driven):
    """Functions of a file like /proc/kallsyms."""

    def __init__(self, path: Path) -> None:
        super().__init__(driver("symbols_driver", "trace/symbols.c", "text.c"), str(path))
        self.count = int(self.line())

    def name(self, address: int) -> str:
        """The function that this return address lies in."""
        self.tell(f"{address:x}\n".encode())
        return self.line()

    def pieces(self, name: str) -> str:
        """Where a function lies."""
        self.tell(f"={name}\n".encode())
        return self.line()


def test_pieces_of_functions(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    names = ["slow.cold", "before", "slow", "slower", "slow.constprop.0", "slow.part.1", "last"]
    lines = [f"{BASE + 0x1000 + 32 * n:x} t {name}" for n, name in enumerate(names)]
    path.write_text("\n".join(lines) + "\n")
    with Symbols(path) as table:
        # A return address lies behind the call, and the next function's first is none.
        assert table.pieces("slow") == f"{BASE + 0x1001:x}+32 {BASE + 0x1041:x}+32"
        assert table.pieces("before") == f"{BASE + 0x1021:x}+32"
        assert table.pieces("last") == table.pieces("none") == table.pieces("slo") == ""


def test_names_of_functions(tmp_path: Path) -> None:
    path = tmp_path / "kallsyms"
    lines = ["0000000000000000 A fixed_percpu_data", f"{BASE + 0xFF0:x} t __pfx_first"]
    lines += [f"{BASE + 0x1000 + 16 * n:x} {'tTwW'[n % 4]} f{n}" for n in range(MANY)]
    lines += [f"{BASE + 0x2000_0100:x} t late\t[two]", f"{BASE + 0x2000_0000:x} t early\t[one]"]
    lines += [f"{BASE + 0x2000_0200 + 16 * n:x} t m{n}\t[three]" for n in range(40)]
    lines += [f"{BASE + 0x1008:x} d no_function", "no line", f"{BASE + 8:x}", f"{BASE + 8:x} T"]
    path.write_text("\n".join(lines) + "\n")
    with Symbols(path) as table:
        assert table.count == MANY + 42
        for n in range(MANY):
            for inside in (1, 15, 16):
                assert table.name(BASE + 0x1000 + 16 * n + inside) == f"f{n}"
        assert table.name(BASE + 0x2000_0050) == "early"
        assert table.name(BASE + 0x2000_0200) == "late"
        assert table.name(BASE + 0x2000_0201 + 16 * 39) == "m39"
        assert table.name(BASE + 0x1000) == f"0x{BASE + 0x1000:x}"
        assert table.name(0x1234) == "0x1234"


@pytest.mark.parametrize("text", ["0000000000000000 T hidden\n", "", "\n\n", "x" * 200_000])
def test_no_names(tmp_path: Path, text: str) -> None:
    path = tmp_path / "kallsyms"
    path.write_text(text)
    with Symbols(path) as table:
        assert table.count == 0
        assert table.name(BASE + 1) == f"0x{BASE + 1:x}"
    with Symbols(tmp_path / "none") as table:
        assert table.count < 0


class Bios(Driven):
    """What is in flight for the programs, and for sysfs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "dm").mkdir()
        self.sysfs(1)
        self.suspended(False)
        super().__init__(driver("in_flight_driver", "trace/in_flight.c", "text.c"), str(folder))

    def sysfs(self, reads: int) -> None:
        """So many reads are in flight by sysfs."""
        (self.folder / "inflight").write_text(f"       {reads}        0\n")

    def suspended(self, yes: bool) -> None:
        """Whether the device is."""
        (self.folder / "dm/suspended").write_text(f"{int(yes)}\n")

    def say(self, words: str) -> tuple[int, set[int]]:
        """How many were dropped, and which are left."""
        self.tell(f"{words}\n".encode())
        dropped, *left = map(int, self.line().split())
        return dropped, set(left)


def test_what_is_in_flight_for_the_programs_alone_is_dropped(tmp_path: Path) -> None:
    second = 10 * SECOND
    lost, newer, waiting, newest = 1, 2, 3, 4
    with Bios(tmp_path) as bios:
        for key, when in ((lost, 1), (newer, 3), (waiting, 2)):
            bios.say(f"begin {key} {when * second}")
        bios.suspended(True)
        for at in (3, 4, 5):
            assert bios.say(f"check {at * second}") == (0, {lost, newer, waiting})
        bios.suspended(False)
        for at in range(6, 5 + LOOKS):
            # Those that wait for memory may look like that.
            assert bios.say(f"check {at * second}") == (0, {lost, newer, waiting})
        assert bios.say(f"check {20 * second}") == (2, {newer})
        for at in range(21, 23):
            assert bios.say(f"check {at * second}") == (2, {newer})
        # The last one is lost, too, and there is nothing else; another one has just begun, which
        # is queued for dm-crypt and not counted there yet.
        bios.sysfs(0)
        bios.say(f"begin {newest} {28 * second}")
        assert bios.say(f"check {30 * second}") == (2, {newer, newest})
        assert bios.say(f"check {31 * second}") == (3, {newest})


def test_devices_of_one_map_are_added_up(tmp_path: Path) -> None:
    """Four disks: two with a request each, two without."""
    reads, folders = [1, 0, 1, 0], []
    for number, read in enumerate(reads):
        folders.append(tmp_path / str(number))
        folders[-1].mkdir()
        (folders[-1] / "inflight").write_text(f"{read} 0\n")
    made = driver("in_flight_driver", "trace/in_flight.c", "text.c")

    def told(said: list[str]) -> list[str]:
        words = "".join(f"{line}\n" for line in said)
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}  # it lists, and ends
        argv = [made, *folders]
        done = subprocess.run(
            argv, input=words, capture_output=True, text=True, timeout=60, check=True, env=env
        )
        return done.stdout.splitlines()

    begun = [f"begin {key} {key * SECOND}" for key in (1, 2)]
    checks = [f"check {at * SECOND}" for at in range(20, 21 + LOOKS)]
    assert set(told([*begun, *checks])[2:]) == {"0 1 2"}
    lost = [*begun, f"begin 3 {3 * SECOND}", *checks]
    assert told(lost)[-2:] == ["1 2 3", "trace: 1 ends of crypt were not seen"]
    # Where one of them cannot be asked, nobody knows how many there are.
    (folders[1] / "inflight").unlink()
    assert told(lost)[-2].startswith("0 1 2 3") and "inflight" in told(lost)[-1]
