# SPDX-License-Identifier: GPL-2.0-or-later
"""Chooses the module files that a guest of this kernel loads, and their order."""

import gzip
import lzma
import re
from dataclasses import dataclass
from pathlib import Path

from contract.swap import ON_DISK, ZRAM, Swap
from errors import UserError
from setup import apt, cache, kconfig
from setup.kernels import Kernel

SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
REQUIRED = ("virtio_pci", "virtio_blk", "virtio_net", "ext4", "dm_mod")
REQUIRED_CRYPT = ("dm_crypt", "xts")
# Loaded if they are modules of this kernel, because the guest cannot load any later. xts needs ecb,
# dm-crypt aes, ext4 and xfs crc32c; loop is for tests of --device.
OPTIONAL = ("virtio_rng", "crc32c_generic", "crc32c_intel", "crc32c_cryptoapi", "loop")
OPTIONAL_CRYPT = ("ecb", "aes_generic", "aesni_intel")
FILE_SYSTEMS = {"ext4": "ext4", "ext3": "ext4", "ext2": "ext4", "xfs": "xfs"}


@dataclass(frozen=True)
class Module:
    """A module file, and whether the guest can do without it."""

    path: Path
    optional: bool

    @property
    def name(self) -> str:
        """The file's name without compression: `virtio_blk.ko`."""
        return re.sub(r"\.ko(\.\w+)?$", ".ko", self.path.name)


def _name(path: str) -> str:
    return re.sub(r"\.ko(\.\w+)?$", "", path.rsplit("/", 1)[-1]).replace("-", "_")


def _indexed(modules: Path) -> Path:
    """The folder if depmod was run on it; else a copy of links in the cache, on which it is run."""
    if (modules / "modules.dep").is_file():
        return modules
    files = sorted(path for path in modules.rglob("*.ko*") if path.name.endswith(SUFFIXES))
    stamps = [f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in files]

    def build(folder: Path) -> None:
        target = folder / "lib/modules" / modules.name
        target.mkdir(parents=True)
        for path in files:
            link = target / path.relative_to(modules)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            source = modules / name
            (target / name).write_bytes(source.read_bytes() if source.is_file() else b"")
        apt.run(["depmod", "-b", folder, modules.name], what=f"depmod of {modules}")

    key = cache.key(str(modules), *stamps)
    return cache.built("kernel-trees", key, build) / "lib/modules" / modules.name


class Index:
    """modules.dep, modules.builtin, modules.softdep and modules.alias of one kernel."""

    def __init__(self, modules: Path) -> None:
        self.folder = _indexed(modules)
        self.files: dict[str, str] = {}
        self.needs: dict[str, list[str]] = {}
        for line in self._lines("modules.dep"):
            path, _, needs = line.partition(":")
            self.files[_name(path)] = path
            # modules.dep lists the deepest dependency last.
            self.needs[_name(path)] = [_name(need) for need in reversed(needs.split())]
        self.builtin = {_name(line) for line in self._lines("modules.builtin")}
        self.before: dict[str, list[str]] = {}
        for line in self._lines("modules.softdep"):
            match = re.match(r"softdep (\S+) .*?pre: (.*?)(?: post:|$)", line)
            if match:
                self.before.setdefault(_name(match[1]), []).extend(match[2].split())
        self.aliases: dict[str, list[str]] = {}
        for line in self._lines("modules.alias"):
            _, alias, name = (*line.split(), "", "", "")[:3]
            self.aliases.setdefault(alias, []).append(_name(name))

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        if not path.is_file():
            return []
        return [line for line in path.read_text().splitlines() if line and line[0] != "#"]

    def find(self, name: str) -> list[str]:
        """The modules that a name or an alias means."""
        if name.replace("-", "_") in self.files:
            return [name.replace("-", "_")]
        return self.aliases.get(name, []) + self.aliases.get(f"crypto-{name}", [])


def _compressors(kernel: Kernel, swap: Swap) -> list[str]:
    """The names or aliases of crypto API modules with the algorithm of zram or zswap."""
    if swap.kind == ZRAM and kconfig.has_backends(kernel.config):
        return []
    algorithm = kconfig.compressor(kernel.config, swap)
    return [algorithm] if algorithm else []


def needed(
    kernel: Kernel, *, fs: str, crypt: bool, swap: Swap = ON_DISK, more: tuple[str, ...] = ()
) -> list[Module]:
    """The modules to load, dependencies first; more: those that a workload needs.

    UserError (3) that names a module that is missing and not built in. A kernel without any modules
    is assumed to have all built in (kconfig.check() looks at its config).
    """
    if kernel.modules is None:
        return []
    index = Index(kernel.modules)
    chosen: dict[str, bool] = {}

    def add(name: str, optional: bool) -> None:
        for need in index.needs[name]:
            add(need, optional)
        for before in index.before.get(name, []):
            for module in index.find(before):
                if module in index.files and module not in chosen:
                    add(module, True)
        chosen[name] = chosen.get(name, True) and optional

    required = [*REQUIRED, FILE_SYSTEMS[fs], *(REQUIRED_CRYPT if crypt else ())]
    required += [*([ZRAM] if swap.kind == ZRAM else []), *more]
    for name in required:
        if name in index.files:
            add(name, False)
        elif name not in index.builtin and index.builtin:
            raise UserError(
                f"kernel {kernel.release} has no module {name}, built in or in {kernel.modules}",
                hint="setup/kernel.config is a config fragment with all that is needed",
            )
    optional = [*OPTIONAL, *(OPTIONAL_CRYPT if crypt else ())]
    optional += [module for name in _compressors(kernel, swap) for module in index.find(name)]
    for name in optional:
        if name in index.files:
            add(name, True)
    return [Module(index.folder / index.files[name], chosen[name]) for name in chosen]


def contents(path: Path) -> bytes:
    """A module file's contents, decompressed. UserError (3) if it is damaged."""
    try:
        data = path.read_bytes()
        if path.suffix == ".xz":
            data = lzma.decompress(data)
        elif path.suffix == ".gz":
            data = gzip.decompress(data)
        elif path.suffix == ".zst":
            data = apt.run_bytes(["zstd", "-dcq", path], what=f"unpacking {path.name}")
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise UserError(f"cannot read the module {path}: {error}") from None
    if data[:4] != b"\x7fELF":
        raise UserError(f"{path} is not a kernel module")
    return data
