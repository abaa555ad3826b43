# SPDX-License-Identifier: GPL-2.0-or-later
"""The swap of a test: the volume, zram, the volume behind zswap, or none; all other swap is off.

After the test the other swaps are on again with their old priorities. Each step is noted in the
stack's record (crypt_lvm.stack) before it is done: `zram` is the device that is made, `zram_loaded`
whether we loaded its module, and `zswap` has the old parameters. A zram device that was not made
here is only switched off and on like any other swap. Sources:
Documentation/admin-guide/blockdev/zram.rst, admin-guide/mm/zswap.rst.
"""

import contextlib
import itertools
from pathlib import Path
from typing import Any

from contract.swap import DISK, ZRAM, ZSWAP, Swap
from errors import UserError, write_kernel_file
from setup import meminfo
from setup.crypt_lvm.mapper import run
from setup.crypt_lvm.stack import Stack, save_state, standing
from setup.devices.use import same, swaps

# s: swapoff reads everything back, perhaps from a slow disk and with little memory.
PATIENCE_S = 900
ROOT = Path("/")
CONTROL = "sys/class/zram-control"
ZSWAP_PARAMETERS = "sys/module/zswap/parameters"
# systemd's zram-generator makes a device of min(ram / 2, 4096) MiB (zram-generator.conf(5)).
MOST_BYTES = 4 << 30


def others(ours: str) -> list[list[str | int]]:
    """The path and priority number of each swap that is on and not ours, in /proc/swaps' order."""
    return [[path, priority] for path, priority in swaps() if not same(path, ours)]


def refuse_unrestorable(others: list[list[str | int]]) -> None:
    """UserError if one of these swaps cannot be turned on again because its file was deleted."""
    for path, _priority in others:
        if not Path(str(path)).exists():
            raise UserError(f"swap {path} could not be turned on again after the test")


def turn_off(others: list[list[str | int]]) -> None:
    """Turn these swaps off."""
    for path, _priority in others:
        run("swapoff", str(path), timeout=PATIENCE_S)


def restore(others: list[list[str | int]]) -> None:
    """Turn these swaps on again.

    The kernel gives negative priorities in the order of swapon: the highest first restores them.
    """
    problems = []
    for path, priority in sorted(others, key=lambda entry: -int(entry[1])):
        if is_on(str(path)):
            continue
        wanted = ["-p", str(priority)] if int(priority) >= 0 else []
        try:
            run("swapon", *wanted, str(path))
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("; ".join(problems))


def is_on(path: str) -> bool:
    """Whether path is in use as swap."""
    return any(same(other, path) for other, _priority in swaps())


def turn_on(path: str) -> None:
    """Turn the swap at path on, unless it is on."""
    if not is_on(path):
        run("swapon", path)


def turn_off_ours(stack: Stack, state: dict[str, Any]) -> None:
    """Turn this stack's swap off, if it is on and still the one that was made for this stack."""
    path, zram = stack.swapped_to, state.get("zram")
    ours = _is_ours(zram) if zram else stack.logical[1] in standing(stack)
    if ours and is_on(path):
        run("swapoff", path, timeout=PATIENCE_S)


def require(swap: Swap) -> None:
    """UserError that names the CONFIG_ option if this kernel cannot do this swap."""
    where = {ZRAM: CONTROL, ZSWAP: ZSWAP_PARAMETERS}.get(swap.kind)
    if where is None or (ROOT / where).is_dir() or (swap.kind == ZRAM and _is_loadable()):
        return
    option = f"CONFIG_{swap.kind.upper()}"
    raise UserError(f"--swap {swap}: this kernel has no {swap.kind}", hint=option)


def make(swap: Swap, volume: str, state: dict[str, Any]) -> str:
    """Set this swap up; returns the device to turn on, "" for none."""
    require(swap)
    _set_zswap(swap, state)
    if swap.kind == ZRAM:
        _load_zram(state)
        return _make_zram(swap, state)
    return volume if swap.kind in (DISK, ZSWAP) else ""


def unmake(state: dict[str, Any]) -> None:
    """Undo what `make` did, even partly; the swap must be off."""
    zram: dict[str, Any] | None = state.get("zram")
    if zram is not None:
        number = zram["number"]
        folder = _zram(number)
        if _is_ours(zram):
            (folder / "reset").write_text("1")
            (ROOT / CONTROL / "hot_remove").write_text(str(number))
        save_state(state, zram=None)
    if state.get("zram_loaded"):
        if not any((ROOT / "sys/block").glob("zram[0-9]*")):
            with contextlib.suppress(UserError):
                run("modprobe", "-r", "-q", "zram", timeout=30)
        save_state(state, zram_loaded=False)
    for name, value in state.get("zswap", {}).items():
        file = ROOT / ZSWAP_PARAMETERS / name
        if file.read_text().strip() != value:
            file.write_text(value)
    save_state(state, zswap={})


def _set_zswap(swap: Swap, state: dict[str, Any]) -> None:
    """Switch zswap on with these parameters, or off for another kind (some kernels have it on)."""
    folder = ROOT / ZSWAP_PARAMETERS
    if not folder.is_dir():
        return
    wanted = {"enabled": "Y" if swap.kind == ZSWAP else "N"}
    if swap.kind == ZSWAP:
        pool = None if swap.pool is None else str(swap.pool)
        given = {"max_pool_percent": pool, "compressor": swap.algorithm}
        wanted = {name: value for name, value in given.items() if value is not None} | wanted
    before = {name: (folder / name).read_text().strip() for name in wanted}
    changed = {name: value for name, value in wanted.items() if before[name] != value}
    save_state(state, zswap={name: before[name] for name in changed})
    for name, value in changed.items():
        write_kernel_file(folder / name, value, f"zswap's {name}")
        now = (folder / name).read_text().strip()
        if now != value:
            raise UserError(f"--swap {swap}: zswap's {name} did not take {value}: it is {now}")


def _is_loadable() -> bool:
    """Whether zram is a module of this kernel; does not load it, as there may be no record yet."""
    try:
        run("modprobe", "--dry-run", "-q", "zram", timeout=30)
    except UserError:
        return False
    return True


def _load_zram(state: dict[str, Any]) -> None:
    if not (ROOT / CONTROL).is_dir():
        save_state(state, zram_loaded=True)
        # Without num_devices=0 the module would make a device by itself.
        run("modprobe", "-q", "zram", "num_devices=0", timeout=30)


def _make_zram(swap: Swap, state: dict[str, Any]) -> str:
    taken = {int(path.name[4:]) for path in (ROOT / "sys/block").glob("zram[0-9]*")}
    # The kernel uses the lowest free number, but shows it only when the device exists.
    likely = next(number for number in itertools.count() if number not in taken)
    save_state(state, zram={"number": likely, "sequence": None})
    number = int((ROOT / CONTROL / "hot_add").read_text())
    save_state(state, zram={"number": number, "sequence": _sequence(number)})
    folder, node = _zram(number), f"/dev/zram{number}"
    if swap.algorithm:
        write_kernel_file(folder / "comp_algorithm", swap.algorithm, f"{node}'s comp_algorithm")
    write_kernel_file(folder / "disksize", str(zram_bytes(swap)), f"{node}'s disksize")
    run("mkswap", node)
    return node


def zram_bytes(swap: Swap) -> int:
    """The bytes of the zram device: as given, else half of the memory, but at most MOST_BYTES."""
    if swap.size is not None:
        return swap.size
    memory = meminfo.in_bytes(file=ROOT / "proc/meminfo")
    assert memory is not None
    return min(memory // 2, MOST_BYTES) if swap.share is None else memory * swap.share // 100


def _is_ours(zram: dict[str, Any]) -> bool:
    """Whether the device of that number is the one that was made here.

    If we were killed before we knew the number, only a device without a size counts as ours.
    """
    if not _zram(zram["number"]).is_dir():
        return False
    if zram["sequence"] is None:
        return (_zram(zram["number"]) / "disksize").read_text().strip() == "0"
    return bool(zram["sequence"] == _sequence(zram["number"]))


def _sequence(number: int) -> str:
    """The disk's sequence number, unique since boot; "" before 5.15."""
    file = _zram(number) / "diskseq"
    return file.read_text().strip() if file.exists() else ""


def _zram(number: int) -> Path:
    return ROOT / f"sys/block/zram{number}"
