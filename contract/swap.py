# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a variant swaps to, and its spelling: `zram,size=256M,algorithm=lz4`."""

from dataclasses import dataclass

from contract.values import Refused, sized, up_to
from contract.values import size as size_of

DISK, ZRAM, ZSWAP, NONE = "disk", "zram", "zswap", "none"
PARAMETERS = {DISK: (), ZRAM: ("size", "algorithm"), ZSWAP: ("pool", "algorithm"), NONE: ()}
KINDS = tuple(PARAMETERS)
# The compressors that zram and zswap of kernels 5.10 to 7.3 can be built with.
ALGORITHMS = ("lzo", "lzo-rle", "lz4", "lz4hc", "zstd", "deflate", "842")
LEAST_SIZE = 1 << 20
MOST_SHARE = 1000  # % of the memory


@dataclass(frozen=True)
class Swap:
    """A kind of swap. None means the default: half of the memory for `size`, else the kernel's.

    size: the zram device's in bytes; or share: in % of the memory; pool: zswap's max_pool_percent.
    """

    kind: str = DISK
    size: int | None = None
    algorithm: str | None = None
    pool: int | None = None
    share: int | None = None

    def __str__(self) -> str:
        share = None if self.share is None else f"{self.share}%"
        parts = {
            "size": share if self.size is None else sized(self.size),
            "pool": self.pool,
            "algorithm": self.algorithm,
        }
        settings = [f"{name}={value}" for name, value in parts.items() if value is not None]
        return ",".join([self.kind, *settings])

    @property
    def label(self) -> str:
        """Its part of a variant's label: `zram-256M-lz4`, `zram-100pc`, `zswap-pool20`."""
        text = str(self).replace("%", "pc")
        return text.replace(",size=", "-").replace(",algorithm=", "-").replace(",pool=", "-pool")

    @property
    def words(self) -> str:
        """The description for --dry-run."""
        algorithm = self.algorithm or "the kernel's own algorithm"
        if self.kind == ZRAM:
            size = "half of the memory (4 GiB at most)" if self.size is None else sized(self.size)
            size = size if self.share is None else f"{self.share} % of the memory"
            return f"on zram, {size}, {algorithm}; the volume for it stays off"
        if self.kind == ZSWAP:
            pool = "the kernel's own share" if self.pool is None else f"at most {self.pool} %"
            return f"on the disk behind zswap, {pool} of the memory, {algorithm}"
        return "none; the volume for it stays off" if self.kind == NONE else "on the disk"


ON_DISK = Swap()


def read(text: str) -> Swap:
    """Parse `disk`, `zram[,size=SIZE][,algorithm=NAME]`, `zswap[,pool=N][,…]` or `none`.

    SIZE may be a share of the memory: `100%`.
    """
    kind, *words = text.split(",")
    if kind not in KINDS:
        raise Refused(f"not a swap: {text[:100]!r} (there are {', '.join(KINDS)})")
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in settings or name not in PARAMETERS[kind]:
            may = ", ".join(f"{key}=" for key in PARAMETERS[kind]) or "nothing"
            raise Refused(f"{word[:50]!r} in {text[:100]!r}: {kind} takes {may}, each once")
        settings[name] = value
    algorithm = settings.get("algorithm")
    if algorithm not in (None, *ALGORITHMS):
        raise Refused(f"no such algorithm: {algorithm!r:.50} (there are {', '.join(ALGORITHMS)})")
    size = share = None
    if (spelled := settings.get("size", "")).endswith("%"):
        share = up_to(MOST_SHARE)(spelled.removesuffix("%"))
    elif "size" in settings:
        size = size_of(spelled)
    if size is not None and not LEAST_SIZE <= size < 1 << 50:
        raise Refused(f"from {LEAST_SIZE >> 20}M on: {settings['size'][:50]!r}")
    pool = up_to(100)(settings["pool"]) if "pool" in settings else None
    return Swap(kind, size, algorithm, pool, share)
