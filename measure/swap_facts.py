# SPDX-License-Identifier: GPL-2.0-or-later
"""What meta.json says of the swap of a run, as the kernel says it; not as it was asked for."""

import contextlib
import os
from pathlib import Path
from typing import Any

from contract.swap import DISK, NONE, ZRAM, ZSWAP, Swap
from errors import UserError
from measure.knobs import selected
from setup.crypt_lvm.stack import Stack
from setup.crypt_lvm.swaps import ZSWAP_PARAMETERS
from setup.devices.use import same, unescape

ROOT = Path("/")
# Documentation/admin-guide/blockdev/zram.rst: fields of mm_stat (bytes but for the pages) and of
# io_stat (events), in their order.
MM_STAT = (
    *("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit", "mem_used_max"),
    *("same_pages", "pages_compacted", "huge_pages"),
)
IO_STAT = ("failed_reads", "failed_writes", "invalid_io", "notify_free")


def found(stack: Stack, asked: Swap) -> dict[str, Any]:
    """The swap that is on; UserError if it is not the one asked for, with what was said of it."""
    rows = [line.split() for line in (ROOT / "proc/swaps").read_text().splitlines()[1:]]
    facts: dict[str, Any] = {"kind": NONE, "size_kib": 0}
    for path, _, size, *_ in rows:
        device = stack.swapped_to if same(unescape(path), stack.swapped_to) else unescape(path)
        facts = {"kind": DISK, "device": device, "size_kib": int(size)}
        if Path(device).name.startswith("zram"):
            algorithm = selected((_zram(device) / "comp_algorithm").read_text())
            facts |= {"kind": ZRAM, "algorithm": algorithm}
        elif _zswap("enabled") == "Y":
            pool = int(_zswap("max_pool_percent"))
            facts |= {"kind": ZSWAP, "algorithm": _zswap("compressor"), "pool": pool}
    if len(rows) > 1 or facts["kind"] != asked.kind:
        on = ", ".join(row[0] for row in rows) or "nothing"
        raise UserError(f"--swap {asked}: the kernel swaps to {on}, as {facts['kind']}")
    _refuse_other(facts, asked)
    return facts


def _refuse_other(facts: dict[str, Any], asked: Swap) -> None:
    """UserError for what the kernel gave in the place of what was said of the swap.

    zswap gives its own algorithm, if it has not the one that was set before it was first on.
    """
    wanted: dict[str, Any] = {"algorithm": asked.algorithm, "pool": asked.pool}
    given = dict(facts)
    if asked.size is not None:
        page = os.sysconf("SC_PAGE_SIZE")
        wanted["size"] = -(-asked.size // page) * page
        given["size"] = int((_zram(facts["device"]) / "disksize").read_text())
    for name, value in wanted.items():
        if value is not None and given[name] != value:
            raise UserError(f"--swap {asked}: its {name} is {given[name]}, not {value}")


def used(stack: Stack) -> dict[str, Any]:
    """What the kernel says of a zram device at the end of the workload; of other swap nothing."""
    if not Path(stack.swapped_to).name.startswith("zram"):
        return {}
    files = {"mm_stat": MM_STAT, "io_stat": IO_STAT}
    facts = {}
    for file, names in files.items():
        with contextlib.suppress(OSError):
            values = (_zram(stack.swapped_to) / file).read_text().split()
            facts[file] = dict(zip(names, map(int, values), strict=False))
    return facts


def _zram(device: str) -> Path:
    return ROOT / "sys/block" / Path(device).name


def _zswap(name: str) -> str:
    try:
        return (ROOT / ZSWAP_PARAMETERS / name).read_text().strip()
    except OSError:
        return ""
