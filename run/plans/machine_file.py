# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's own machine file: a campaign keeps a copy, and can be resumed without the file."""

import os
from pathlib import Path

from contract import machine_model, values
from contract.run_record import write_whole
from errors import UserError
from run.run_folders import ELSEWHERE


def of_plan(plan: Path, machine: str, *, kept: bool) -> tuple[str, str]:
    """The machine file of a plan, and a message if it was edited since, else "".

    It is the copy beside the plan if the named file cannot be read. kept: whether the suite wrote
    the plan and the copy; then it is the copy also if the named file was edited. ValueError, in one
    line, if one of the files is not a machine file.
    """
    named = values.path(machine)
    copy = plan.absolute().parent / named.name
    if not copy.is_file():
        return machine, ""
    if not os.access(named, os.R_OK):
        return str(copy), ""
    other = _difference(copy, named) if kept else ""
    if not other:
        return machine, ""
    return str(copy), f"{named} is no longer what {plan} was made with: {other} (put it back)"


def keep(folder: Path, machine: str) -> None:
    """Copy the file into a campaign's folder; UserError if the folder has a different one."""
    copy = folder / Path(machine).name
    try:
        if not copy.exists():
            write_whole(copy, Path(machine).read_bytes())
        other = _difference(copy, Path(machine))
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(str(error)) from error
    if other:
        raise UserError(f"{folder} was begun with another {copy.name}: {other}", hint=ELSEWHERE)


def _difference(copy: Path, file: Path) -> str:
    """The first field in which a machine file differs from its copy; empty if there is none."""
    before, now = (machine_model.read(str(path)) for path in (copy, file))
    for key, was in before.items():
        if now[key] != was:
            return f"{key.replace('disk_', 'disk.')} was {was}, and is {now[key]}"
    return ""
