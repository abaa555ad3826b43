# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a variant swaps to, and how that is spelled: `zram,size=256M,algorithm=lz4`."""

from dataclasses import dataclass

from contract.values import Refused, sized, up_to
from contract.values import size as size_of

DISK, ZRAM, ZSWAP, NONE = "disk", "zram", "zswap", "none"
PARAMETERS = {DISK: (), ZRAM: ("size", "algorithm"), ZSWAP: ("pool", "algorithm"), NONE: ()}
KINDS = tuple(PARAMETERS)
# What zram and zswap of 5.10 to 7.3 may have been built with.
ALGORITHMS = ("lzo", "lzo-rle", "lz4", "lz4hc", "zstd", "deflate", "842")
LEAST_SIZE = 1 << 20
MOST_SHARE = 1000  # % of the memory


@dataclass(frozen=True)
class Swap:
    """A kind of swap; None: the default, of `size` half of the memory, of the rest the kernel's.

    size: of the zram device in bytes, or share: in % of the memory; pool: zswap's max_pool_percent.
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
        said = [f"{name}={value}" for name, value in parts.items() if value is not None]
        return ",".join([self.kind, *said])

    @property
    def label(self) -> str:
        """As a part of a variant's label: `zram-256M-lz4`, `zram-100pc`, `zswap-pool20`."""
        text = str(self).replace("%", "pc")
        return text.replace(",size=", "-").replace(",algorithm=", "-").replace(",pool=", "-pool")

    @property
    def words(self) -> str:
        """What it is, for --dry-run."""
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
    """The swap of `disk`, `zram[,size=SIZE][,algorithm=NAME]`, `zswap[,pool=N][,…]` or `none`.

    SIZE may be a share of the memory: `100%`.
    """
    kind, *words = text.split(",")
    if kind not in KINDS:
        raise Refused(f"not a swap: {text[:100]!r} (there are {', '.join(KINDS)})")
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name in found or name not in PARAMETERS[kind]:
            may = ", ".join(f"{one}=" for one in PARAMETERS[kind]) or "nothing"
            raise Refused(f"{word[:50]!r} in {text[:100]!r}: {kind} takes {may}, each once")
        found[name] = value
    algorithm = found.get("algorithm")
    if algorithm not in (None, *ALGORITHMS):
        raise Refused(f"no such algorithm: {algorithm!r:.50} (there are {', '.join(ALGORITHMS)})")
    size = share = None
    if (said := found.get("size", "")).endswith("%"):
        share = up_to(MOST_SHARE)(said.removesuffix("%"))
    elif "size" in found:
        size = size_of(said)
    if size is not None and not LEAST_SIZE <= size < 1 << 50:
        raise Refused(f"from {LEAST_SIZE >> 20}M on: {found['size'][:50]!r}")
    pool = up_to(100)(found["pool"]) if "pool" in found else None
    return Swap(kind, size, algorithm, pool, share)
