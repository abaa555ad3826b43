# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of mail.txt about the runs: kernels, machine, memory, and which parts are real."""

from collections.abc import Iterator

from analysis.reading.load import Run
from analysis.reading.words import safe_line
from analysis.text.layout import paragraph
from analysis.text.machine import memory, reference
from contract.run_files import PLAYER
from graphs.bug_report.reproduce import DEBIAN_VERSION


def scene(old: list[Run], new: list[Run]) -> Iterator[str]:
    """A line or two about each; compared runs share machine and memory."""
    run = new[0]
    yield from paragraph(f"Kernels: {_kernel(old[0])}; {_kernel(run)}.", "  ")
    if modelled := reference(run):
        yield from paragraph(f"Machine: {modelled}.", "  ")
    has = memory([*old, *new])
    if run.fact("parameters", "memory"):
        yield from paragraph(f"VM: {has} (the rest is the kernel's own).", "  ")
    elif has:
        yield from paragraph(f"Memory: {has}.", "  ")
    yield from paragraph(_real(run), "  ")


def _kernel(run: Run) -> str:
    release = safe_line(run.fact("kernel", "release"), 60)
    debian = DEBIAN_VERSION.search(safe_line(run.fact("kernel", "version")))
    return release + (f" (Debian {debian[1]})" if debian else "")


def _real(run: Run) -> str:
    """Which parts are real, and which are stand-ins."""
    crypt = isinstance(run.fact("crypt"), str) and run.fact("crypt") != "none"
    real = ["kernel", *(["dm-crypt"] if crypt else []), "LVM", safe_line(run.fact("fs"), 10)]
    names = [stream.partition("-")[0] for stream in run.streams]
    stands = ["fake_gitk"] * ("gitk" in names) + ["music"] * (PLAYER in names)
    stands += ["CPU"] * (run.fact("clock", "kind") == "guest")
    stands += ["disk"] * (run.fact("disk", "kind") is not None)
    made = f" Stand-ins: {', '.join(stands)}." if stands else ""
    return f"Real: {', '.join(real)}.{made}"
