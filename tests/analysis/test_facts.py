# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs whose key facts differ are not compared, and the fact is named."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.reading.facts import differences
from analysis.reading.load import Campaign, load_campaign
from analysis.summary import main as summarise
from analysis.text.compare_text import text as compare_text
from analysis.text.layout import WIDTH
from analysis.text.machine import references, swaps
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import meta
from errors import UserError
from tests.support.verdicts import stalling_run

DISK = meta("k")["disk"]
MACHINE = meta("k")["machine"]
SWAP = meta("k")["swap"]
GUEST = {"image": "a", "suite": "b"}
KERNEL = {"release": "k-cloud-amd64", "image_digest": "a", "config_digest": "b"}
KNOB = {"path": "/sys/kernel/mm/lru_gen/enabled", "asked": "0", "before": "7", "read_back": "0"}
EVERYWHERE = [
    ("accelerator", {"accelerator": "kvm"}, "tcg", "kvm"),
    ("mem_total_kib", {"mem_total_kib": 999_000}, "498000", "999000"),
    ("cpus", {"cpus": 4}, "2", "4"),
    ("cpu_model", {"cpu_model": "Other"}, "QEMU TCG CPU version 2.5+", "Other"),
    ("machine.type", {"machine": MACHINE | {"type": "pc"}}, "q35", "pc"),
    ("machine.cpu", {"machine": MACHINE | {"cpu": "host"}}, "max", "host"),
    ("guest.image", {"guest": GUEST | {"image": "c"}}, "a", "c"),
    ("guest.suite", {"guest": GUEST | {"suite": "c"}}, "b", "c"),
    ("disk.size_bytes", {"disk": DISK | {"size_bytes": 1}}, "8589934592", "1"),
    ("disk.cache", {"disk": DISK | {"cache": "unsafe"}}, "none", "unsafe"),
    ("disk.iops", {"disk": DISK | {"iops": None}}, "400", "none"),
    ("disk.bps", {"disk": DISK | {"bps": 1000}}, "none", "1000"),
    ("clock.kind", {"clock": {"kind": "guest", "why": "emulated"}}, "host", "guest"),
    ("machine.mips", {"machine": MACHINE | {"mips": 500}}, "none", "500"),
    *(
        (f"disk.{key}", {"disk": DISK | {key: value}}, "none", str(value))
        for key, value in (("kind", "flash"), ("parallel", 2), ("depth", 32), ("queues", 1))
    ),
    ("swap.size_kib", {"swap": SWAP | {"size_kib": 4194304}}, "2097152", "4194304"),
    ("crypt", {"crypt": "none"}, "aes-xts-plain64", "none"),
    ("fs", {"fs": "xfs"}, "ext4", "xfs"),
    ("evidence.asked", {"evidence": {"asked": False}}, "true", "false"),
    ("parameters.memory", {"parameters": {"gitk": 1, "memory": 1}}, "536870912", "1"),
]
IN_A_VARIANT = [
    ("kernel.release", {"kernel": KERNEL | {"release": "other"}}, "k-cloud-amd64", "other"),
    ("kernel.image_digest", {"kernel": KERNEL | {"image_digest": "c"}}, "a", "c"),
    ("kernel.config_digest", {"kernel": KERNEL | {"config_digest": "c"}}, "b", "c"),
    ("append", {"append": "nosmt"}, "quiet", "nosmt"),
    ("swap.kind", {"swap": {"kind": "none", "size_kib": 0}}, "disk", "none"),
    ("swap.pool", {"swap": SWAP | {"pool": 20}}, "none", "20"),
    ("knobs", {"knobs": [KNOB | {"read_back": "7"}]}, '"0", "0"', '"0", "7"'),
]


def two(folder: Path, odd: dict[str, Any], *, variant: str = "6.12") -> Campaign:
    """6.1 once and once more a variant with the odd facts."""
    usual: dict[str, Any] = {"kernel": KERNEL, "append": "quiet", "knobs": [KNOB]}
    usual["evidence"] = {"asked": True}
    usual["guest"] = GUEST
    stalling_run(folder / "6.1" / "1", 5.0, **usual)
    stalling_run(folder / variant / "2", 5.0, **{**usual, **odd})
    return load_campaign(folder)


@pytest.mark.parametrize(("fact", "odd", "usual", "other"), EVERYWHERE)
def test_runs_that_differ_in_a_key_fact_are_refused(
    tmp_path: Path, fact: str, odd: dict[str, Any], usual: str, other: str
) -> None:
    campaign = two(tmp_path, odd)
    with pytest.raises(UserError) as caught:
        compare(campaign)
    text = str(caught.value)
    assert f"{fact} differs: {usual} in 6.1/1, {other} in 6.12/2" in text
    assert "--force" in text and "\n" not in text
    forced = compare(campaign, force=True)
    assert len(forced.forced) == 1 and fact in forced.forced[0]


@pytest.mark.parametrize(("fact", "odd", "usual", "other"), IN_A_VARIANT)
def test_runs_of_one_variant_must_be_of_one_kernel(
    tmp_path: Path, fact: str, odd: dict[str, Any], usual: str, other: str
) -> None:
    with pytest.raises(UserError, match=rf"{fact} differs: .*6\.1/1.*6\.1/2") as caught:
        compare(two(tmp_path / "one", odd, variant="6.1"))
    assert usual in str(caught.value) and other in str(caught.value)
    assert not compare(two(tmp_path / "two", odd)).forced  # variants may differ in it


def test_a_kernel_that_leaves_less_memory_is_still_comparable(tmp_path: Path) -> None:
    assert not compare(two(tmp_path / "a", {"mem_total_kib": 460_000})).forced
    with pytest.raises(UserError, match="mem_total_kib"):
        compare(two(tmp_path / "b", {"mem_total_kib": 440_000}))


def test_a_knobs_value_before_does_not_matter(tmp_path: Path) -> None:
    assert not compare(two(tmp_path, {"knobs": [KNOB | {"before": "5"}]}, variant="6.1")).forced


def test_an_unknown_fact_is_said_and_does_not_refuse(tmp_path: Path) -> None:
    notes = compare(two(tmp_path, {"cpus": None, "host": {"cpu_model": "Xeon"}})).notes
    assert any("cpus (1 run)" in note and "host.cpu_model (1 run)" in note for note in notes)


def test_a_busy_host_is_named(tmp_path: Path) -> None:
    notes = compare(two(tmp_path, {"host": {"busy_by_others": 0.34}})).notes
    assert any("6.12/2 (34 %)" in note for note in notes)


def test_runs_that_do_not_count_do_not_refuse(tmp_path: Path) -> None:
    two(tmp_path, {})
    stalling_run(tmp_path / "6.12" / "3", "aborted", cpus=64)
    assert not compare(load_campaign(tmp_path)).forced


def test_a_strangers_fact_stays_on_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        compare(two(tmp_path, {"cpu_model": "evil\n\x1b[31m" + "x" * 5000}))
    text = str(caught.value)
    assert "\n" not in text and "\x1b" not in text and len(text) < 6 * WIDTH


OWN = {"clock": {"kind": "guest", "why": "emulated"}}
LAPTOP = {
    "machine": MACHINE | {"name": "laptop", "changed": ["disk_iops"], "mips": 500},
    "disk": DISK | {"kind": "rotating", "iops": 57, "bps": 58_000_000, "depth": 32, "parallel": 1},
    "cpus": 1,
}


def test_a_guests_own_clock_knows_nothing_of_its_host(tmp_path: Path) -> None:
    hosts = [{"host": {"cpu_model": name, "busy_by_others": 0.5}} for name in ("A", "B")]
    for folder, clock in ((tmp_path / "own", OWN), (tmp_path / "host", {})):
        for number, host in enumerate(hosts, 1):
            stalling_run(folder / "6.12" / str(number), 5.0, **host, **clock)
    assert differences(load_campaign(tmp_path / "own").runs) == []
    assert not any("Others took" in note for note in compare(load_campaign(tmp_path / "own")).notes)
    (found,) = differences(load_campaign(tmp_path / "host").runs)
    assert found.startswith("host.cpu_model differs")


def test_the_machine_in_a_line(tmp_path: Path) -> None:
    stalling_run(tmp_path / "6.12" / "1", 5.0, **OWN, **LAPTOP)
    stalling_run(tmp_path / "6.12" / "2", 5.0, **OWN, **LAPTOP)
    runs = load_campaign(tmp_path).runs
    line = (
        "laptop with other disk_iops: 1 CPU of 500 MIPS, rotating disk of 57 accesses/s and "
        "58 MB/s, 32 queued; the guest's clock"
    )
    assert references(runs) == [line]
    died_at_boot = replace(runs[0], meta={k: v for k, v in runs[0].meta.items() if k != "cpus"})
    assert references([died_at_boot, runs[1]]) == [line]
    assert len(references([died_at_boot])) == 1
    assert f"Machine: {line}." in " ".join(compare_text(compare(load_campaign(tmp_path))).split())


def test_the_facts_of_a_summary_end_with_an_empty_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for variant, stalled_s in (("6.12", 5.0), ("7.2", 9.0)):
        stalling_run(tmp_path / variant / "1", stalled_s, **OWN, **LAPTOP)
    assert summarise([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    (first,) = [at for at, line in enumerate(lines) if line.startswith("Machine: ")]
    assert lines[first + 1].startswith("  ") and lines[first + 2] == ""


def test_a_disk_without_its_model_is_said_with_the_reason(tmp_path: Path) -> None:
    disk = DISK | {"iops": 57, "bps": 58_000_000}
    clock = {"kind": "host", "why": "the disk model cannot be compiled: cannot find -luring"}
    stalling_run(tmp_path / "6.12" / "1", 5.0, **(LAPTOP | {"disk": disk, "clock": clock}))
    assert references(load_campaign(tmp_path).runs) == [
        "laptop with other disk_iops: 1 CPU of 500 MIPS, the host's disk, throttled by QEMU to "
        "57 IOPS and 58 MB/s; the host's clock (the disk model cannot be compiled: cannot find "
        "-luring)"
    ]


def test_results_of_before_say_no_machine(tmp_path: Path) -> None:
    stalling_run(tmp_path / "6.12" / "1", 5.0)
    assert references(load_campaign(tmp_path).runs) == []


def test_two_ways_to_swap_are_what_is_compared(tmp_path: Path) -> None:
    zram = {"kind": "zram", "device": "/dev/zram1", "size_kib": 99_996, "algorithm": "lz4"}
    others = {
        "zram": zram,
        "zswap": SWAP | {"kind": "zswap", "algorithm": "lzo", "pool": 20},
        "none": {"kind": "none", "size_kib": 0},
    }
    stalling_run(tmp_path / "disk" / "1", 5.0, swap=SWAP | {"kind": "disk"})
    for label, swap in others.items():
        stalling_run(tmp_path / label / "1", 5.0, swap=swap)
    campaign = load_campaign(tmp_path)
    compared = compare(campaign)
    assert compared.forced == []
    said = " ".join(compare_text(compared).split())
    assert "Swap: 2,048 MiB of swap: disk; no swap: none; " in said
    assert "98 MiB of swap on zram (lz4): zram; " in said
    assert "2,048 MiB of swap behind zswap (lzo, at most 20 % of the memory): zswap. " in said
    stalling_run(tmp_path / "zram" / "3", 5.0, swap=zram | {"size_kib": 100_000})  # a page more
    assert differences(load_campaign(tmp_path).runs) == []
    stalling_run(tmp_path / "zram" / "2", 5.0, swap=zram | {"size_kib": 50_000})
    stalling_run(tmp_path / "zswap" / "2", 5.0, swap=others["zswap"] | {"size_kib": 9})
    found = differences(load_campaign(tmp_path).runs)
    assert len(found) == 2 and all(line.startswith("swap.size_kib differs: ") for line in found)
    assert "9 in zswap/2, 2097152 in disk/1" in found[0]
    assert "50000 in zram/2, 100000 in zram/3" in found[1]


def test_a_run_that_never_began_does_not_say_where_it_swaps(tmp_path: Path) -> None:
    stalling_run(tmp_path / "zram" / "1", 5.0, swap={"kind": "zram", "size_kib": 9})
    stalling_run(tmp_path / "zram" / "2", 5.0, swap=None)
    assert differences(load_campaign(tmp_path).runs) == []
    assert swaps(load_campaign(tmp_path), {"zram": "zram"}) == (
        "0 MiB of swap on zram (not available): zram"
    )
    shutil.rmtree(tmp_path / "zram" / "1")
    stalling_run(tmp_path / "disk" / "1", 5.0, swap={"kind": "none"})
    assert swaps(load_campaign(tmp_path), {"zram": "zram", "disk": "disk"}) == (
        "no swap: disk; not available: zram"
    )
