# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts about a run's swap for meta.json, as the kernel reports it, not as it was requested."""

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
# Documentation/admin-guide/blockdev/zram.rst: the fields of mm_stat (in bytes, *_pages in pages)
# and of io_stat (events), in the order of the files.
MM_STAT = (
    *("orig_data_size", "compr_data_size", "mem_used_total", "mem_limit", "mem_used_max"),
    *("same_pages", "pages_compacted", "huge_pages"),
)
IO_STAT = ("failed_reads", "failed_writes", "invalid_io", "notify_free")


def swap_in_use(stack: Stack, requested: Swap) -> dict[str, Any]:
    """The swap that is on, sizes in KiB; UserError if it differs from the requested one."""
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
    if len(rows) > 1 or facts["kind"] != requested.kind:
        on = ", ".join(row[0] for row in rows) or "nothing"
        raise UserError(f"--swap {requested}: the kernel swaps to {on} (kind: {facts['kind']})")
    _refuse_other(facts, requested)
    return facts


def _refuse_other(facts: dict[str, Any], requested: Swap) -> None:
    """UserError if the kernel chose another algorithm, pool or size than the requested one.

    zswap uses its own algorithm if it lacks the one that was set before it was first switched on.
    """
    wanted: dict[str, Any] = {"algorithm": requested.algorithm, "pool": requested.pool}
    given = dict(facts)
    if requested.size is not None:
        page = os.sysconf("SC_PAGE_SIZE")
        wanted["size"] = -(-requested.size // page) * page
        given["size"] = int((_zram(facts["device"]) / "disksize").read_text())
    for name, value in wanted.items():
        if value is not None and given[name] != value:
            raise UserError(f"--swap {requested}: its {name} is {given[name]}, not {value}")


def zram_use(stack: Stack) -> dict[str, Any]:
    """The kernel's statistics of the zram device at the workload's end; empty for other swap."""
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
