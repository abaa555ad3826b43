# SPDX-License-Identifier: GPL-2.0-or-later
"""What meta.json says of the swap of a run, as the kernel says it; not as it was asked for."""

import contextlib
from pathlib import Path
from typing import Any

from contract.swap import DISK, NONE, ZRAM, ZSWAP, Swap
from errors import UserError
from measure.knobs import selected
from setup.device_check import same, unescape
from setup.stack import Stack

ROOT = Path("/")
PARAMETERS = "sys/module/zswap/parameters"
# Documentation/admin-guide/blockdev/zram.rst: fields of mm_stat (bytes but for the pages) and of
# io_stat (events), in their order.
MM_STAT = (
    *("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit", "mem_used_max"),
    *("same_pages", "pages_compacted", "huge_pages"),
)
IO_STAT = ("failed_reads", "failed_writes", "invalid_io", "notify_free")


def found(stack: Stack, asked: Swap) -> dict[str, Any]:
    """The swap that is on; UserError if it is of another kind than the one asked for."""
    rows = [line.split() for line in (ROOT / "proc/swaps").read_text().splitlines()[1:]]
    facts: dict[str, Any] = {"kind": NONE, "size_kib": 0}
    for path, _, size, *_ in rows:
        device = stack.swapped_to if same(unescape(path), stack.swapped_to) else unescape(path)
        facts = {"kind": DISK, "device": device, "size_kib": int(size)}
        if Path(device).name.startswith("zram"):
            folder = ROOT / "sys/block" / Path(device).name
            algorithm = selected((folder / "comp_algorithm").read_text())
            facts |= {"kind": ZRAM, "algorithm": algorithm}
        elif _zswap("enabled") == "Y":
            pool = int(_zswap("max_pool_percent"))
            facts |= {"kind": ZSWAP, "algorithm": _zswap("compressor"), "pool": pool}
    if len(rows) > 1 or facts["kind"] != asked.kind:
        on = ", ".join(row[0] for row in rows) or "nothing"
        raise UserError(f"--swap {asked}: the kernel swaps to {on}, as {facts['kind']}")
    return facts


def used(stack: Stack) -> dict[str, Any]:
    """What the kernel says of a zram device at the end of the workload; of other swap nothing."""
    name = Path(stack.swapped_to).name
    if not name.startswith("zram"):
        return {}
    files = {"mm_stat": MM_STAT, "io_stat": IO_STAT}
    facts = {}
    for file, names in files.items():
        with contextlib.suppress(OSError):
            values = (ROOT / "sys/block" / name / file).read_text().split()
            facts[file] = dict(zip(names, map(int, values), strict=False))
    return facts


def _zswap(name: str) -> str:
    try:
        return (ROOT / PARAMETERS / name).read_text().strip()
    except OSError:
        return ""
