# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases: which results are damaged how, and which command reads them; each from its number."""

import contextlib
import io
import shutil
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.synthetic_results.make import make_campaign
from graphs.__main__ import main as make_report
from tests.fuzz import child
from tests.fuzz.mutations import OF_BUNDLES, OF_FOLDERS

GOLDEN = Path(__file__).parents[1] / "golden/causes"
REAL = ("5.10", "7.2", "7.3")  # runs of real kernels
BUNDLE = "bug-report.tar.gz"
# How often of a hundred, and the arguments behind the results; REPORT stands for a new folder.
READERS = (
    (30, "analysis.compare", ()),
    (10, "analysis.compare", ("--json",)),
    (25, "analysis.causes", ()),
    (10, "analysis.trend", ()),
    (10, "analysis.reclaim_tables", ()),
    (15, "graphs.__main__", ("-o", "REPORT")),
)


@dataclass(frozen=True)
class Case:
    """What was done, and how the command that read it ended."""

    number: int
    of: str
    mutations: tuple[str, ...]
    command: str
    ended: child.Ended = field(compare=False)


def make_bases(folder: Path) -> list[Path]:
    """Whole results: made ones, a stranger's, real kernels' runs, and a bundle."""
    bases = [
        make_campaign(folder / "made", 2, 3, with_evidence=True),
        make_campaign(folder / "strange", 3, 2, is_hostile=True),
    ]
    for name in REAL:
        with tarfile.open(GOLDEN / f"{name}.tar.xz") as archive:
            archive.extractall(folder / name)
        bases.append(folder / name)
    with contextlib.redirect_stdout(io.StringIO()):
        make_report([str(bases[0]), "-o", str(folder / "report")])
    (folder / "bundle").mkdir()
    shutil.move(folder / "report" / BUNDLE, folder / "bundle" / BUNDLE)
    return [*bases, folder / "bundle"]


def play(seed: int, number: int, bases: Sequence[Path], place: Path) -> Case:
    """The case of this number: the same for the same seed, whichever were played before."""
    rng = Random(f"{seed}:{number}")
    base = rng.choice(bases)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(base, place / "results", symlinks=True)
    bundle = place / "results" / BUNDLE
    kinds = OF_BUNDLES if bundle.exists() else OF_FOLDERS
    chosen = tuple(rng.choice(sorted(kinds)) for _ in range(rng.choice((1, 1, 2, 4))))
    for name in chosen:
        target = bundle if kinds is OF_BUNDLES else place / "results"
        with contextlib.suppress(OSError, tarfile.TarError, EOFError, zlib.error):
            kinds[name](rng, target)
    weights = [weight for weight, _, _ in READERS]
    ((_, module, more),) = rng.choices(READERS, weights)
    target = bundle if kinds is OF_BUNDLES else place / "results"
    argv = [str(target), *(str(place / "report") if one == "REPORT" else one for one in more)]
    ended = child.run(module, argv, place / "log")
    return Case(number, base.name, chosen, f"{module} {' '.join(more)}".strip(), ended)
