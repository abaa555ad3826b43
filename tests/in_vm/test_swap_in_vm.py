# SPDX-License-Identifier: GPL-2.0-or-later
"""The four kinds of swap on one kernel: each is what it is called, by the kernel's own counters."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.vms import OWN_CLOCK, command, nothing_left

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]
# Debian's kernels for VMs have CONFIG_ZSWAP in 7.2 and 7.3; those before, up to 6.17, only zram.
KERNEL, WITHOUT_ZSWAP = "debian:7.3", "debian:6.12"
SWAPS = ("disk", "zram,size=64M,algorithm=zstd", "zswap,pool=30", "none")
# With no swap at all its programs just fit, and leave little for the page cache.
TINY = [*OWN_CLOCK, "--memory", "160M", "--commits", "6000", "--gitk", "2"]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each."""
    out = tmp_path_factory.mktemp("swap") / "out"
    swaps = [word for swap in SWAPS for word in ("--swap", swap)]
    labels = [word for swap in SWAPS for word in ("--label", kind(swap))]
    argv = [*TINY, "--kernel", KERNEL, *swaps, *labels, "--jobs", "2", "--out", str(out)]
    with nothing_left(), command(*argv) as process:
        printed, errors = process.communicate(timeout=800)
    assert process.returncode == 0, printed + errors
    assert "Traceback" not in errors
    return out


def kind(swap: str) -> str:
    return swap.partition(",")[0]


def swap_of(campaign: Path, label: str) -> dict[str, Any]:
    meta = json.loads((campaign / label / "1" / "meta.json").read_text())
    found: dict[str, Any] = meta["swap"]
    return found


def row(campaign: Path, label: str, table: str, place: int = -1) -> dict[str, int]:
    """A sample's counters since boot, by default the last's: the clone may have swapped already."""
    header, *rows = (campaign / label / "1" / f"{table}.tsv").read_text().splitlines()
    cells = zip(header.split("\t"), rows[place].split("\t"), strict=True)
    return {name: int(cell) for name, cell in list(cells)[2:]}


def is_all_of(written: int, pages: int) -> bool:
    """Whether these sectors are those pages, and the little that mkswap wrote."""
    return 0 < pages * 8 <= written <= pages * 8 * 1.1 + 64


@pytest.mark.parametrize("label", [kind(swap) for swap in SWAPS])
def test_each_ran_to_its_end_and_says_its_swap(campaign: Path, label: str) -> None:
    status = json.loads((campaign / label / "1" / "status.json").read_text())
    assert status["state"] in ("completed", *(["oom"] if label == "none" else [])), status
    assert swap_of(campaign, label)["kind"] == label


def test_the_disk(campaign: Path) -> None:
    swap = swap_of(campaign, "disk")
    assert swap["device"] == "/dev/crypt-volume/crypt-swap" and "algorithm" not in swap
    pages = row(campaign, "disk", "vmstat")
    assert not pages.get("zswpout")
    assert is_all_of(row(campaign, "disk", "diskstats")["swap_write_sectors"], pages["pswpout"])


def test_zram_takes_it_all_and_the_disk_nothing(campaign: Path) -> None:
    swap = swap_of(campaign, "zram")
    assert swap["device"].startswith("/dev/zram") and swap["algorithm"] == "zstd"
    assert swap["size_kib"] == pytest.approx(64 << 10, rel=0.01)
    assert swap["mm_stat"]["mem_used_max"] > 0 and swap["io_stat"]["failed_writes"] == 0
    pages = row(campaign, "zram", "vmstat")["pswpout"]
    first, last = (row(campaign, "zram", "diskstats", place) for place in (0, -1))
    assert is_all_of(last["swap_write_sectors"], pages)
    # What is written to the encrypted disk is the file system's, all of it.
    crypt, fs = (last[name] - first[name] for name in ("crypt_write_sectors", "fs_write_sectors"))
    assert crypt == fs


def test_zswap_keeps_it_from_the_disk(campaign: Path) -> None:
    swap = swap_of(campaign, "zswap")
    assert swap["device"] == "/dev/crypt-volume/crypt-swap"
    assert (swap["pool"], bool(swap["algorithm"])) == (30, True)
    pages = row(campaign, "zswap", "vmstat")
    assert pages["zswpout"] > 0 and pages["pswpout"] < pages["zswpout"]


def test_without_swap_nothing_is_swapped(campaign: Path) -> None:
    assert swap_of(campaign, "none") == {"kind": "none", "size_kib": 0}
    assert row(campaign, "none", "vmstat")["pswpout"] == 0
    header = (campaign / "none" / "1" / "diskstats.tsv").read_text().splitlines()[0]
    assert "disk_reads" in header and "swap_" not in header
    memory = (campaign / "none" / "1" / "meminfo.tsv").read_text().splitlines()
    assert int(memory[1].split("\t")[memory[0].split("\t").index("SwapTotal")]) == 0


def test_they_are_compared_and_the_reports_say_which_is_which(campaign: Path) -> None:
    said = " ".join((campaign / "report" / "summary.txt").read_text().split())
    assert "Not compared" not in said and "FORCED" not in said
    for words in (
        "64 MiB of swap on zram (zstd): zram; ",
        "no swap: none",
        "(lzo, at most 30 % of",
    ):
        assert words in said
    details = (campaign / "report" / "details.txt").read_text()
    assert "behind zswap (lzo, at most 30 %" in " ".join(details.split())


def test_a_kernel_without_zswap_is_refused_before_it_boots(tmp_path: Path) -> None:
    argv = [*TINY, "--kernel", WITHOUT_ZSWAP, "--swap", "zswap", "--out", str(tmp_path / "out")]
    with command(*argv) as process:
        printed, errors = process.communicate(timeout=300)
    assert process.returncode == 3 and "lacks, for --swap zswap: CONFIG_ZSWAP" in errors
    assert errors.count("\n") == 1 and not (tmp_path / "out").exists()
    assert "the workload starts" not in printed
