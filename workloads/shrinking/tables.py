# SPDX-License-Identifier: GPL-2.0-or-later
"""The description of `shrinker`: its figures, the tables of reference/002, and the panels."""

from contract.run_files import HEARTBEAT
from contract.workload import Curve, Description, Figure, FigureTable, Panel, TableRow
from workloads.shrinking import copying, making, mixing

PRIMARY = {
    "copy": Figure("compile", "compile beside the copy", "s", 1, "lower"),
    "fsmark": Figure("fsmark", "files made a second by fs_mark", "1/s", 0, "higher"),
    "bonnie": Figure("bonnie-seq-delete", "bonnie++'s sequential deletes", "s", 2, "lower"),
    "mix": Figure("work-rate", "steps a second of the mix", "1/s", 1, "higher"),
}
MORE = {
    "copy": (
        Figure("copy", "copy beside the compile", "s", 1, "lower"),
        Figure("walk-after", "walk over the tree after the copy", "s", 2, "lower"),
        Figure("read-after", "read again by that walk", "MiB", 1, "lower"),
    ),
    "fsmark": (),
    "bonnie": tuple(
        Figure(f"bonnie-{phase}", f"bonnie++'s {words}", "s", 2, "lower")
        for phase, words in (
            ("seq-create", "sequential creates"),
            ("random-create", "random creates"),
            ("random-delete", "random deletes"),
        )
    ),
    "mix": (
        *(
            Figure(f"{kind}-p99", f"99th percentile of a step to {kind}", "µs", 0, "lower")
            for kind in mixing.KINDS
        ),
        Figure("stall-rate", "allocation stalls a second", "1/s", 2, "lower"),
    ),
}


def description(
    name: str, load: str, parts: tuple[str, ...], values: dict[str, int], cache: str
) -> Description:
    """The figures and tables of these parts, and the panels.

    load: the load's stream; values: the parameters; cache: the slab cache of the inodes.
    """
    return Description(
        name=name,
        summary="dentries and inodes against page cache: " + ", ".join(parts),
        subject="heartbeat",
        subjects=(HEARTBEAT,),
        primary=PRIMARY[parts[0]].key,
        figures=tuple(figure for part in parts for figure in (PRIMARY[part], *MORE[part])),
        tables=(*(table for part in parts for table in tables(part, values)), *caches(parts)),
        panels=panels(load, cache),
        phases=load,
    )


def panels(load: str, cache: str) -> tuple[Panel, ...]:
    """Panels of the caches, of what shrank them, and of the pages read and files made meanwhile."""
    kib, pages = 1024.0, 256.0  # per MiB
    slabs = {"dentry": "dentry", "inode_cache": "inode_cache", cache: cache}
    return (
        Panel(
            "cached",
            "objects",
            tuple(Curve(name, f"{slab}_active", "slabinfo") for name, slab in slabs.items()),
        ),
        Panel(
            "memory of",
            "MiB",
            (
                Curve("page cache", "Cached", "meminfo", per=kib),
                Curve("SReclaimable", "SReclaimable", "meminfo", per=kib),
                Curve("free memory", "MemFree", "meminfo", per=kib),
            ),
        ),
        Panel(
            "dropped with inodes",
            "pages/s",
            tuple(
                Curve(name, name, "vmstat", rate=True)
                for name in ("pginodesteal", "kswapd_inodesteal")
            ),
        ),
        Panel(
            "read",
            "MiB/s",
            (
                Curve("page in", "pgpgin", "vmstat", rate=True, per=kib),
                Curve("refaults", "workingset_refault_file", "vmstat", rate=True, per=pages),
            ),
        ),
        Panel("new files", "1/s", (Curve("new files", "files", stream=load, rate=True),)),
    )


def tables(part: str, values: dict[str, int]) -> tuple[FigureTable, ...]:
    """The tables of one part."""
    if part == "copy":
        both = (
            TableRow("cp", ("copied", "", "copy", "copy-rate", "")),
            TableRow("gcc", ("", "objects", "compile", "", "compile-faults")),
        )
        walks = tuple(
            TableRow(words, tuple(f"{key}-{which}" for key in ("files", "walk", "read")))
            for which, words in copying.WALKS.items()
        )
        return (
            FigureTable(
                "A large file copied beside a compile",
                ("MiB", "objects", "s", "MB/s", "major faults"),
                both,
                ("", "", "lower", "higher", "lower"),
            ),
            FigureTable(
                "Each file of the tree looked up",
                ("files", "s", "MiB read"),
                walks,
                ("", "lower", "lower"),
            ),
        )
    if part == "fsmark":
        loops = [f"fsmark-{n}" for n in range(1, making.LOOPS + 1)]
        return (
            FigureTable(
                f"fs_mark, {making.THREADS} threads, empty files",
                ("files", "files/s", *(f"loop {n}" for n in range(1, len(loops) + 1))),
                (TableRow("made", ("files-fsmark", "fsmark", *loops)),),
                ("", "higher", *[""] * len(loops)),
            ),
        )
    if part == "bonnie":
        words = {"seq": "SeqCreate", "random": "RandCreate"}
        phases = {"create": "ops", "stat": "read", "delete": "del"}
        return (
            FigureTable(
                f"bonnie++, {values['bonnie'] * making.UNIT:,} empty files",
                ("s",),
                tuple(
                    TableRow(f"{order} {what}", (f"bonnie-{key}-{phase}",))
                    for key, order in words.items()
                    for phase, what in phases.items()
                ),
                ("lower",),
            ),
        )
    shares = tuple(mixing.SHARES)
    return (
        FigureTable(
            "Readers, writers and an allocator (µs)",
            ("steps", *shares),
            tuple(
                TableRow(kind, (f"{kind}-steps", *(f"{kind}-{share}" for share in shares)))
                for kind in mixing.KINDS
            ),
            ("", *["lower"] * len(shares)),
        ),
        FigureTable(
            "What they did together (1/s)",
            ("work rate", "alloc stall rate"),
            (TableRow("all", ("work-rate", "stall-rate")),),
            ("higher", "lower"),
        ),
    )


def caches(parts: tuple[str, ...]) -> tuple[FigureTable, ...]:
    """Tables of what the kernel did during each part, and of the caches' contents after it."""
    counted = {
        "seconds": "s",
        "read": "MiB read",
        "workingset_refault_file": "refaults",
        "slabs_scanned": "slabs_scanned",
        "pginodesteal": "pginodesteal",
        "kswapd_inodesteal": "kswapd_inodesteal",
        "allocstall": "allocstall",
    }
    looks = {"begin": "at the beginning"} | {part: f"after {part}" for part in parts}
    return (
        FigureTable(
            "What the kernel did meanwhile",
            tuple(counted.values()),
            tuple(TableRow(part, tuple(f"{key}-{part}" for key in counted)) for part in parts),
        ),
        FigureTable(
            "Objects in the slab caches",
            ("inodes", "dentries"),
            tuple(
                TableRow(words, (f"inodes-{when}", f"dentries-{when}"))
                for when, words in looks.items()
            ),
        ),
    )
