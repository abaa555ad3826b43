# SPDX-License-Identifier: GPL-2.0-or-later
"""nightly.sh: measures new kernels, in a folder for the night, and then draws the trend.

A kernel is measured once: on the guest's clock the same kernel and seed give the same run. Thus a
night measures new kernels only, and most nights have none.
"""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract import checkout
from contract.run_files import PLAN_FILE
from errors import Exit, UserError, run_command
from run.nightly_options import parse
from run.plans.stored import read_plan
from run.preparation import say
from run.run_folders import completed
from setup import debian, kernels, package_lists
from setup.kernels import Kernel

TREND = "trend"  # folder beside the nights' folders
KEPT_ON = (Exit.OK, Exit.KERNEL_LOST, Exit.UNFINISHED)  # a kernel that hangs is a result
REGRESSED = "regressed"


@dataclass(frozen=True)
class New:
    """A kernel that no night has measured, and its label."""

    spec: str
    label: str
    kernel: Kernel


def nights_of(folder: Path) -> list[Path]:
    """The folders of the nights, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(
        plan.parent for plan in folder.glob(f"*/{PLAN_FILE}") if plan.parent.name != TREND
    )


def is_unfinished(night: Path) -> bool:
    """Whether runs of the night's plan are missing."""
    plan = read_plan(night)
    wanted = int(plan.get("runs", 0))
    return any(len(completed(night / entry["label"])) < wanted for entry in plan.get("variant", []))


def specs_of(asked: Sequence[str], mirror: str | None) -> list[str]:
    """The kernels to follow: those given, or Debian's newest kernel of each series."""
    if asked:
        return list(asked)
    lists = package_lists.update(mirror)
    series = debian.newest_of_series(lists.packages, debian.FLAVOUR)
    if not series:
        raise UserError("Debian's lists have no kernel", hint="name one: --kernel")
    return [f"debian:{name}" for name in series]


def new_kernels(resolved: Iterable[tuple[str, Kernel]], nights: Iterable[Path]) -> list[New]:
    """The kernels that no night has measured, each once, with unique labels."""
    measured: dict[str, str] = {}
    for night in nights:
        for entry in read_plan(night).get("variant", []):
            measured[str(entry.get("image_digest"))] = entry["label"]
    taken = set(measured.values())
    new = []
    for spec, kernel in resolved:
        if kernel.image_digest in measured:
            say(f"{spec} is {kernel.label}: measured as {measured[kernel.image_digest]}")
            continue
        label = kernel.label
        if label in taken and kernel.package:  # a rebuild: 6.12.118-1, 6.12.118-2
            label = kernel.package.rpartition(":")[2].replace("~", "-")
        if label in taken:
            label = f"{kernel.label}-{kernel.image_digest[:8]}"
        taken.add(label)
        measured[kernel.image_digest] = label
        new.append(New(spec, label, kernel))
        say(f"{spec} is {label}: new")
    return new


def command_of(night: Path, new: Sequence[New], runs: int, options: Sequence[str]) -> list[str]:
    """The run_test.sh command for a night with these kernels."""
    command = [str(checkout.ROOT / "run_test.sh"), "--out", str(night), "--runs", str(runs)]
    for kernel in new:
        command += ["--kernel", kernel.spec, "--label", kernel.label]
    return [*command, *(options or ["--profile", "quick"])]


def main(arguments: list[str] | None = None) -> int:
    """Do one night; returns the exit status."""
    asked = parse(arguments)
    mirror = ["--mirror", asked.mirror] if asked.mirror else []
    statuses = []
    for night in filter(is_unfinished, nights_of(asked.dir)):
        say(f"{night}: not finished, going on")
        resume = [str(checkout.ROOT / "run_test.sh"), "--resume", str(night), *mirror]
        statuses.append(_run(resume, asked.dry_run))
    resolved = []
    for spec in specs_of(asked.kernel, asked.mirror):
        try:
            resolved.append((kernels.absolute(spec), kernels.resolve(spec, mirror=asked.mirror)))
        except UserError as error:
            say(f"{spec}: left out this night: {error}")
            statuses.append(error.status)
    if new := new_kernels(resolved, nights_of(asked.dir)):
        night = _free(asked.dir)
        statuses.append(
            _run(command_of(night, new, asked.runs, [*asked.options, *mirror]), asked.dry_run)
        )
    if asked.dry_run:
        return int(Exit.OK)
    failed = [status for status in statuses if status not in KEPT_ON]
    return int(failed[0]) if failed else _trend(asked.dir)


def _run(command: Sequence[str], dry_run: bool) -> int:
    if dry_run:
        say(shlex.join(command))
        return int(Exit.OK)
    return subprocess.run(command, check=False).returncode


def _free(folder: Path) -> Path:
    """A new folder for this night, with a number if the day has one already."""
    day, count = time.strftime("%Y-%m-%d"), 1
    while (path := folder / (day if count == 1 else f"{day}-{count}")).exists():
        count += 1
    return path


def _trend(folder: Path) -> int:
    """Draw and print the trend in separate processes; returns the exit status."""
    nights = [str(night) for night in nights_of(folder)]
    if not nights:
        raise UserError(f"{folder}: no night has measured a kernel")
    by = ["--by", "date"]
    draw = [sys.executable, "-m", "graphs", "--trend", *nights, *by, "-o", str(folder / TREND)]
    drawn = subprocess.run(draw, check=False).returncode
    tell = [sys.executable, "-m", "analysis.trend", *nights, *by, "--fail-on", REGRESSED]
    return subprocess.run(tell, check=False).returncode or drawn


if __name__ == "__main__":
    sys.exit(run_command("nightly.sh", main))
