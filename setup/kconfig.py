# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks before a boot that a kernel's configuration has the options that the test needs."""

import argparse
import sys
from pathlib import Path

from contract import remedy
from contract.swap import DISK, NONE, ON_DISK, ZRAM, ZSWAP, Swap
from contract.variant import Variant
from errors import UserError, run_command
from setup import config_file, kernels
from setup.config_file import read as read
from setup.kernels import Kernel

FRAGMENT = config_file.FRAGMENT
MERGE = "merge setup/kernel.config with scripts/kconfig/merge_config.sh and build again"

# "A|B": one of them is enough. Comments tell where names changed between 5.10 and 7.3.
REQUIRED = (
    "CONFIG_64BIT",
    "CONFIG_BINFMT_ELF",
    "CONFIG_BINFMT_SCRIPT",
    "CONFIG_BLK_DEV_INITRD",
    "CONFIG_RD_GZIP",
    "CONFIG_DEVTMPFS",
    "CONFIG_TMPFS",
    "CONFIG_PROC_FS",
    "CONFIG_SYSCTL",
    "CONFIG_SYSFS",
    "CONFIG_UNIX98_PTYS",
    "CONFIG_TTY",
    "CONFIG_SERIAL_8250_CONSOLE",
    "CONFIG_PRINTK",
    "CONFIG_MAGIC_SYSRQ",
    "CONFIG_ACPI",
    "CONFIG_PCI",
    "CONFIG_X86_PAT",  # for resource2_wc of the PCI device that takes the results
    "CONFIG_VIRTIO_PCI",
    "CONFIG_VIRTIO_BLK",
    "CONFIG_VIRTIO_NET",
    "CONFIG_NET",
    "CONFIG_UNIX",
    "CONFIG_INET",
    "CONFIG_EXT4_FS",
    "CONFIG_SWAP",
    "CONFIG_BLK_DEV_DM",
    "CONFIG_VM_EVENT_COUNTERS",
    "CONFIG_FUTEX",
    "CONFIG_EPOLL",
    "CONFIG_SIGNALFD",
    "CONFIG_TIMERFD",
    "CONFIG_POSIX_TIMERS",
    "CONFIG_FILE_LOCKING",
    "CONFIG_SHMEM",
    "CONFIG_ADVISE_SYSCALLS",
)
CRYPT = (
    "CONFIG_DM_CRYPT",
    "CONFIG_CRYPTO_XTS",
    "CONFIG_CRYPTO_AES|CONFIG_CRYPTO_AES_X86_64|CONFIG_CRYPTO_AES_NI_INTEL",
)
BY_FILE_SYSTEM = {
    "ext4": (),
    "ext3": (),
    # Its driver is that of ext4, or its own older one.
    "ext2": ("CONFIG_EXT4_USE_FOR_EXT2|CONFIG_EXT2_FS",),
    "xfs": ("CONFIG_XFS_FS",),
}
BY_SWAP = {DISK: (), ZRAM: ("CONFIG_ZRAM",), ZSWAP: ("CONFIG_ZSWAP",), NONE: ()}
# Since 6.12 zram has its own backends and no longer uses the crypto API's algorithms.
BACKEND = "CONFIG_ZRAM_BACKEND_"
# Without these the test runs, but reports less: no pressure, delays, names in backtraces, or sums
# of the kernel's events.
RECOMMENDED = (
    "CONFIG_PSI",
    "CONFIG_KALLSYMS",
    "CONFIG_DETECT_HUNG_TASK",
    "CONFIG_TASK_DELAY_ACCT",
    "CONFIG_TASK_IO_ACCOUNTING",
    "CONFIG_STACKTRACE",
    "CONFIG_UNWINDER_ORC|CONFIG_UNWINDER_FRAME_POINTER",
    "CONFIG_FTRACE",
    "CONFIG_EVENT_TRACING|CONFIG_ENABLE_DEFAULT_TRACERS",
    "CONFIG_LRU_GEN",
    "CONFIG_BLK_DEV_LOOP",
    "CONFIG_HW_RANDOM_VIRTIO",
    "CONFIG_DEBUG_INFO_BTF",
    "CONFIG_BPF_EVENTS",
)


def _lacking(
    options: dict[str, str], wanted: tuple[str, ...], values: tuple[str, ...]
) -> list[str]:
    return [
        group
        for group in wanted
        if not any(options.get(name) in values for name in group.split("|"))
    ]


def compressor(config: Path | None, swap: Swap) -> str:
    """The algorithm of zram or zswap: as given, else the kernel's default.

    "" for swap on the disk.
    """
    # If the kernel has no such option, zram uses lzo-rle (since 5.1) and zswap lzo.
    default = {
        ZRAM: ("CONFIG_ZRAM_DEF_COMP", "lzo-rle"),
        ZSWAP: ("CONFIG_ZSWAP_COMPRESSOR_DEFAULT", "lzo"),
    }
    if swap.algorithm or swap.kind not in default:
        return swap.algorithm or ""
    name, otherwise = default[swap.kind]
    options = read(config) if config else {}
    return options.get(name, otherwise).strip('"')


def has_backends(config: Path | None) -> bool:
    """Whether this kernel's zram has its own algorithms and needs no crypto module."""
    return config is not None and any(name.startswith(BACKEND) for name in read(config))


def _of_swap(config: Path, swap: Swap) -> tuple[str, ...]:
    wanted: tuple[str, ...] = BY_SWAP[swap.kind]
    if swap.algorithm:
        own = swap.kind == ZRAM and has_backends(config)
        name = swap.algorithm.removesuffix("-rle").upper()
        wanted += (f"{BACKEND if own else 'CONFIG_CRYPTO_'}{name}",)
    return wanted


def missing(
    config: Path,
    fs: str,
    crypt: bool,
    swap: Swap = ON_DISK,
    *,
    needs: tuple[str, ...] = (),
    no_modules: bool = False,
) -> list[str]:
    """The options that the test needs and this config lacks, as `CONFIG_A` or `CONFIG_A|CONFIG_B`.

    needs: those of the workload. Options may be built in or modules; with no_modules only built in.
    """
    wanted = REQUIRED + BY_FILE_SYSTEM[fs] + (CRYPT if crypt else ())
    wanted += _of_swap(config, swap) + needs
    return _lacking(read(config), wanted, ("y",) if no_modules else ("y", "m"))


def remedy_lacks(kernel: Kernel, variant: Variant) -> str:
    """The options that this kernel lacks for the variant's remedy; "" if it lacks none."""
    treated = remedy.of_variant(variant)
    if treated is None or kernel.config is None:
        return ""
    wanted = treated.config
    wanted += _of_swap(kernel.config, variant.swap) if treated.swap is not None else ()
    values = ("y",) if kernel.modules is None else ("y", "m")
    return _names(_lacking(read(kernel.config), wanted, values))


def recommended(config: Path) -> list[str]:
    """The options that this config lacks and without which the test reports less."""
    return _lacking(read(config), RECOMMENDED, ("y", "m"))


def guesses_stacks(config: Path) -> bool:
    """Whether its stacks include functions that have returned already (arch/x86 unwind_guess.c)."""
    return read(config).get("CONFIG_UNWINDER_GUESS") == "y"


def swaps_lacking(config: Path) -> dict[str, str]:
    """The kinds of --swap that this kernel cannot do, with the option that each needs."""
    options = read(config)
    by_kind = {kind: _lacking(options, wanted, ("y", "m")) for kind, wanted in BY_SWAP.items()}
    return {kind: ", ".join(lacking) for kind, lacking in by_kind.items() if lacking}


def check(
    kernel: Kernel,
    fs: str,
    crypt: bool,
    swap: Swap = ON_DISK,
    *,
    workload: str = "",
    needs: tuple[str, ...] = (),
) -> None:
    """UserError (3) that names the options that this kernel lacks, if its config is known.

    needs: the options that the workload of this name needs.
    """
    if kernel.config is None:
        return
    no_modules = kernel.modules is None
    lacking = missing(kernel.config, fs, crypt, swap, needs=needs, no_modules=no_modules)
    if not lacking:
        return
    askers = {
        f"--swap {swap}": _of_swap(kernel.config, swap),
        f"--workload {workload}": needs,
    }
    by_asker = {
        asker: [group for group in lacking if group in groups]
        for asker, groups in askers.items()
        if set(lacking) & set(groups)
    }
    always = [
        group for group in lacking if not any(group in groups for groups in by_asker.values())
    ]
    message = f"kernel {kernel.release} lacks"
    message += " built in (no modules were found for it)" if no_modules else ""
    message += f": {_names(always)}" if always else ""
    message += "".join(f", for {asker}: {_names(groups)}" for asker, groups in by_asker.items())
    others = " and ".join(asker.split()[0] for asker in by_asker)
    hint = MERGE if always else f"another {others}, or a kernel with it: {MERGE}"
    raise UserError(message, hint=hint)


def _names(groups: list[str]) -> str:
    return ", ".join(group.replace("|", " or ") for group in groups)


def main() -> int:
    """python3 -m setup.kconfig SPEC...: print what each kernel lacks; returns the exit status."""
    parser = argparse.ArgumentParser(prog="setup.kconfig", description=__doc__)
    parser.add_argument("specs", nargs="+", metavar="SPEC", help="a kernel, as for setup.kernels")
    parser.add_argument("--fs", choices=sorted(BY_FILE_SYSTEM), default="ext4")
    parser.add_argument("--no-crypt", action="store_true", help="without dm-crypt")
    parser.add_argument("--mirror", metavar="URL", help="instead of the one in the host's sources")
    arguments = parser.parse_args()
    for spec in arguments.specs:
        kernel = kernels.resolve(spec, mirror=arguments.mirror)
        if kernel.config is None:
            print(f"{spec}: its config was not found, so that its options are unknown")
            continue
        check(kernel, arguments.fs, not arguments.no_crypt)
        less = ", ".join(recommended(kernel.config)) or "nothing"
        print(f"{spec}: {kernel.config} has all that is needed; recommended and lacking: {less}")
        for kind, option in swaps_lacking(kernel.config).items():
            print(f"{spec}: it cannot do --swap {kind}, which needs {option}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.kconfig", main))
