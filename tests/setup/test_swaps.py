# SPDX-License-Identifier: GPL-2.0-or-later
"""The swap of a stack on a /sys of files: what is made is noted first, and undone; nothing else."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from contract import swap
from errors import UserError
from setup.crypt_lvm import swaps

ALL = {"enabled": "N", "max_pool_percent": "20", "compressor": "lzo"}

LOAD = ("modprobe", "-q", "zram", "num_devices=0")
UNLOAD = ("modprobe", "-r", "-q", "zram")


class Kernel:
    """A kernel's files below root, and what is noted in the record, in order.

    Its next zram device is there once that was announced in the record, as after hot_add.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.ran: list[tuple[str, ...]] = []
        self.notes: list[dict[str, Any]] = []
        self.module_adds: int | None = None  # the number of the first device of a zram not loaded
        self.write("proc/meminfo", "MemTotal:         200000 kB\n")
        self.write("sys/block/vda/size", "1")
        monkeypatch.setattr(swaps, "ROOT", root)
        monkeypatch.setattr(swaps, "run", self._run)
        monkeypatch.setattr(swaps, "save_state", self._save)

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def with_zram(self, *there: int, added: int) -> None:
        self.write("sys/class/zram-control/hot_add", str(added))
        for number in there:
            self.device(number, sequence=10 + number)

    def device(self, number: int, sequence: int, size: int = 0) -> None:
        self.write(f"sys/block/zram{number}/disksize", str(size))
        self.write(f"sys/block/zram{number}/comp_algorithm", "[lzo-rle] lz4")
        self.write(f"sys/block/zram{number}/diskseq", f"{sequence}\n")

    def with_zswap(self, **values: str) -> None:
        for name, value in (ALL | values).items():
            self.write(f"sys/module/zswap/parameters/{name}", value)

    def zswap(self) -> dict[str, str]:
        return {name: self.read(f"sys/module/zswap/parameters/{name}") for name in ALL}

    def _run(self, *words: str, **_: object) -> str:
        self.ran.append(words)
        if words[0] == "modprobe":
            if self.module_adds is None:
                raise UserError("modprobe: status 1")
            if words == LOAD:
                assert self.notes[-1] == {"zram_loaded": True}
                self.with_zram(added=self.module_adds)
        return ""

    def _save(self, state: dict[str, Any], **changes: Any) -> None:
        state.update(changes)
        self.notes.append(changes)
        zram = changes.get("zram")
        if zram and zram["sequence"] is None:
            self.device(int(self.read("sys/class/zram-control/hot_add")), sequence=77)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def make(text: str, state: dict[str, Any]) -> str:
    return swaps.make(swap.read(text), "/dev/v/crypt-swap", state)


def test_zram_is_another_device_than_the_one_that_is_there(kernel: Kernel) -> None:
    kernel.with_zram(0, added=1)
    state: dict[str, Any] = {}
    assert make("zram,algorithm=lz4", state) == "/dev/zram1"
    assert kernel.notes == [
        {"zram": {"number": 1, "sequence": None}},
        {"zram": {"number": 1, "sequence": "77"}},
    ]
    assert kernel.read("sys/block/zram1/disksize") == str(100_000 << 10)
    assert kernel.read("sys/block/zram1/comp_algorithm") == "lz4"
    assert kernel.ran == [("mkswap", "/dev/zram1")]
    swaps.unmake(state)
    assert kernel.read("sys/block/zram1/reset") == "1"
    assert kernel.read("sys/class/zram-control/hot_remove") == "1"
    assert not (kernel.root / "sys/block/zram0/reset").exists()
    assert state["zram"] is None


def test_a_large_machine_has_zram_of_4_gib(kernel: Kernel) -> None:
    kernel.with_zram(added=0)
    kernel.write("proc/meminfo", "MemTotal:       64000000 kB\n")
    make("zram", {})
    assert kernel.read("sys/block/zram0/disksize") == str(4 << 30)
    make("zram,size=48M", {})
    assert kernel.read("sys/block/zram0/disksize") == str(48 << 20)


@pytest.mark.parametrize(
    ("zram", "size", "removed"),
    [
        ({"number": 1, "sequence": None}, 0, True),  # killed before its number was told
        ({"number": 1, "sequence": None}, 4096, False),  # somebody else's meanwhile
        ({"number": 1, "sequence": "77"}, 4096, True),
        ({"number": 1, "sequence": "76"}, 4096, False),  # of that number, but a later one
        ({"number": 2, "sequence": "77"}, 4096, False),  # gone
    ],
)
def test_after_a_kill_only_the_own_device_goes(
    kernel: Kernel, zram: dict[str, Any], size: int, removed: bool
) -> None:
    kernel.with_zram(added=1)
    kernel.device(1, sequence=77, size=size)
    state = {"zram": zram}
    swaps.unmake(state)
    assert (kernel.root / "sys/class/zram-control/hot_remove").exists() is removed
    assert state["zram"] is None


@pytest.mark.parametrize("others", [False, True])
def test_a_module_that_was_loaded_here_goes_unless_somebody_uses_it(
    kernel: Kernel, others: bool
) -> None:
    kernel.module_adds = 1
    swaps.require(swap.read("zram"))
    assert kernel.notes == [] and not (kernel.root / "sys/class/zram-control").exists()
    state: dict[str, Any] = {}
    assert make("zram", state) == "/dev/zram1"
    assert LOAD in kernel.ran and UNLOAD not in kernel.ran
    shutil.rmtree(kernel.root / "sys/block/zram1")
    if others:
        kernel.device(0, sequence=5)
    swaps.unmake(state)
    assert (kernel.ran[-1] == UNLOAD) is not others
    assert state["zram_loaded"] is False
    before = len(kernel.ran)
    swaps.unmake(state)
    assert len(kernel.ran) == before


def test_a_module_that_was_there_stays(kernel: Kernel) -> None:
    kernel.with_zram(added=1)
    state: dict[str, Any] = {}
    make("zram", state)
    shutil.rmtree(kernel.root / "sys/block/zram1")
    swaps.unmake(state)
    assert kernel.ran == [("mkswap", "/dev/zram1")]


def test_a_module_in_use_is_no_failure(kernel: Kernel) -> None:
    state: dict[str, Any] = {"zram_loaded": True}
    swaps.unmake(state)
    assert kernel.ran == [UNLOAD] and state["zram_loaded"] is False


def test_zswap_is_set_and_as_it_was(kernel: Kernel) -> None:
    kernel.with_zswap()
    state: dict[str, Any] = {}
    assert make("zswap,pool=30", state) == "/dev/v/crypt-swap"
    assert kernel.notes == [{"zswap": {"max_pool_percent": "20", "enabled": "N"}}]
    assert kernel.zswap() == {"enabled": "Y", "max_pool_percent": "30", "compressor": "lzo"}
    swaps.unmake(state)
    assert kernel.zswap() == ALL and state["zswap"] == {}


@pytest.mark.parametrize("text", ["disk", "none"])
def test_without_it_zswap_is_off_also_where_a_kernel_has_it_on(kernel: Kernel, text: str) -> None:
    kernel.with_zswap(enabled="Y")
    state: dict[str, Any] = {}
    assert make(text, state) == ("/dev/v/crypt-swap" if text == "disk" else "")
    assert kernel.zswap()["enabled"] == "N"
    swaps.unmake(state)
    assert kernel.zswap()["enabled"] == "Y"


@pytest.mark.parametrize("text", ["zram", "zswap"])
def test_a_kernel_without_it_is_refused_in_one_line(kernel: Kernel, text: str) -> None:
    with pytest.raises(UserError) as caught:
        swaps.require(swap.read(text))
    said = str(caught.value)
    assert f"--swap {text}: this kernel has no {text}" in said and f"CONFIG_{text.upper()}" in said
    for other in ("disk", "none"):
        swaps.require(swap.read(other))
    assert kernel.notes == []
