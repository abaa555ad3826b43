# SPDX-License-Identifier: GPL-2.0-or-later
"""The swap in meta.json is what the kernel says, and not what was asked for."""

from pathlib import Path

import pytest

from contract import swap
from errors import UserError
from measure import swap_facts
from setup.crypt_lvm.stack import Stack

HEAD = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"


def stack(swapped_to: str) -> Stack:
    volume = "/dev/v/crypt-swap"
    return Stack("/dev/x", "", None, "v", "/dev/v/fs", volume, "ext4", "/s", 0, swapped_to)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(swap_facts, "ROOT", tmp_path)
    write(tmp_path, "proc/swaps", HEAD)
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_no_swap_at_all(root: Path) -> None:
    assert swap_facts.swap_in_use(stack(""), swap.read("none")) == {"kind": "none", "size_kib": 0}
    assert swap_facts.zram_use(stack("")) == {}


def test_the_disk_and_zswap_before_it(root: Path) -> None:
    write(root, "proc/swaps", HEAD + "/dev/dm-2  partition\t2097148\t0\t-2\n")
    facts = {"kind": "disk", "device": "/dev/dm-2", "size_kib": 2_097_148}
    assert swap_facts.swap_in_use(stack("/dev/dm-2"), swap.read("disk")) == facts
    for name, value in (("enabled", "Y"), ("compressor", "lzo"), ("max_pool_percent", "20")):
        write(root, f"sys/module/zswap/parameters/{name}", f"{value}\n")
    with pytest.raises(UserError, match="--swap disk: the kernel swaps to /dev/dm-2"):
        swap_facts.swap_in_use(stack("/dev/dm-2"), swap.read("disk"))
    facts |= {"kind": "zswap", "algorithm": "lzo", "pool": 20}
    assert swap_facts.swap_in_use(stack("/dev/dm-2"), swap.read("zswap")) == facts
    assert swap_facts.zram_use(stack("/dev/dm-2")) == {}


def test_zram_and_what_it_held(root: Path) -> None:
    write(root, "proc/swaps", HEAD + "/dev/zram1  partition\t99996\t0\t-2\n")
    write(root, "sys/block/zram1/comp_algorithm", "lzo [lz4] zstd\n")
    zram = stack("/dev/zram1")
    facts = {"kind": "zram", "device": "/dev/zram1", "size_kib": 99_996, "algorithm": "lz4"}
    assert swap_facts.swap_in_use(zram, swap.read("zram")) == facts
    assert swap_facts.zram_use(zram) == {}
    write(root, "sys/block/zram1/mm_stat", "  8192 4096 5000 0 6000 1 0 2 3\n")
    write(root, "sys/block/zram1/io_stat", "  0 7 0 5\n")
    assert swap_facts.zram_use(zram) == {
        "mm_stat": {
            **{"orig_data_size": 8192, "compr_data_size": 4096, "mem_used_total": 5000},
            **{"mem_limit": 0, "mem_used_max": 6000},
            **{"same_pages": 1, "pages_compacted": 0, "huge_pages": 2},
        },
        "io_stat": {"failed_reads": 0, "failed_writes": 7, "invalid_io": 0, "notify_free": 5},
    }


def test_two_swaps_are_not_the_one_that_was_asked_for(root: Path) -> None:
    rows = "/dev/dm-2 partition 9 0 -2\n/dev/sda2 partition 9 0 -3\n"
    write(root, "proc/swaps", HEAD + rows)
    with pytest.raises(UserError, match="/dev/dm-2, /dev/sda2"):
        swap_facts.swap_in_use(stack("/dev/dm-2"), swap.read("disk"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("zswap", None),
        ("zswap,pool=20,algorithm=lzo", None),
        ("zswap,algorithm=zstd", "--swap zswap,algorithm=zstd: its algorithm is lzo, not zstd"),
        ("zswap,pool=30", "--swap zswap,pool=30: its pool is 20, not 30"),
    ],
)
def test_zswap_is_as_it_was_asked_for(root: Path, asked: str, said: str | None) -> None:
    write(root, "proc/swaps", HEAD + "/dev/dm-2  partition\t2097148\t0\t-2\n")
    for name, value in (("enabled", "Y"), ("compressor", "lzo"), ("max_pool_percent", "20")):
        write(root, f"sys/module/zswap/parameters/{name}", f"{value}\n")
    assert error_of(stack("/dev/dm-2"), asked) == said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("zram,algorithm=lz4", None),
        ("zram,size=64M,algorithm=lz4", None),
        ("zram,size=67108000", None),  # a part of a page is a page
        ("zram,algorithm=zstd", "--swap zram,algorithm=zstd: its algorithm is lz4, not zstd"),
        ("zram,size=96M", "--swap zram,size=96M: its size is 67108864, not 100663296"),
    ],
)
def test_zram_is_as_it_was_asked_for(root: Path, asked: str, said: str | None) -> None:
    write(root, "proc/swaps", HEAD + "/dev/zram1  partition\t65532\t0\t-2\n")
    write(root, "sys/block/zram1/comp_algorithm", "lzo [lz4] zstd\n")
    write(root, "sys/block/zram1/disksize", f"{64 << 20}\n")
    assert error_of(stack("/dev/zram1"), asked) == said


def error_of(on: Stack, asked: str) -> str | None:
    try:
        swap_facts.swap_in_use(on, swap.read(asked))
    except UserError as error:
        return str(error)
    return None
