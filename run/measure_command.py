# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of a measurement, in a guest or on this machine, with every parameter."""

import shlex
from pathlib import Path

from contract.option_rows import IN_MACHINE, PARAMETERS, VM
from contract.option_table import ROWS
from contract.options import Options, spelled
from contract.run_files import appended_files
from contract.variant import Variant
from vm.guest import GuestJob
from vm.qemu import GUEST, HOST, MUSIC_ADDRESS
from workloads.registry import find, progress_streams, stream_names

GUEST_PROGRAM = "/suite/run_test.sh"
GUEST_MUSIC = "/music/music"


def measure_argv(
    options: Options, variant: Variant, *, repo: str | Path, music: str, run_dir: str | Path
) -> list[str]:
    """The words after `run_test.sh --device DEV`; nothing is left to a profile's default."""
    options = options.of(variant)
    argv = ["--bare", "--run-dir", str(run_dir), "--no-install"]
    instead = {"repo": str(repo), "music": music}
    for name, row in ROWS.items():
        applies = row.only != VM and row.applies(options.gitks)
        if row.table in (PARAMETERS, IN_MACHINE) and applies:
            argv += spelled(name, instead.get(name, getattr(options, name)))
    argv += spelled("swap", (variant.swap,))
    argv += spelled("remedy", (variant.remedy,) if variant.remedy else ())
    argv += spelled("daemon", variant.daemon or None) + spelled("slice", variant.slice)
    return argv + spelled("destroy_data", options.destroy_data) + spelled("knob", variant.knobs)


def guest_command(
    options: Options, variant: Variant, program: str = GUEST_PROGRAM, clock: str = HOST
) -> str:
    """The shell script that the guest runs: program with the arguments of the measurement."""
    module = "music"
    if (options.music or "").startswith("rsync://"):
        module = str(options.music).removeprefix("rsync://").partition("/")[2]
    argv = measure_argv(
        options,
        variant,
        repo="/history/history.git",
        music=GUEST_MUSIC if clock == GUEST else f"rsync://{MUSIC_ADDRESS}/{module}",
        run_dir="/run/results",
    )
    return f'{program} --device "$WORK" {shlex.join(argv)}\n'


def guest_job(
    options: Options,
    variant: Variant,
    program: str = GUEST_PROGRAM,
    *,
    clock: str = HOST,
    seed: int = 1,
) -> GuestJob:
    """The job of a guest with this clock for one run of this variant."""
    alone = options.of(variant)
    return GuestJob(
        command=guest_command(options, variant, program, clock),
        files=appended_files(stream_names(alone), slabs=bool(find(alone.workload).slabs)),
        timeout_s=options.timeout,
        hang_after_s=options.hang_after,
        progress=progress_streams(alone),
        seed=seed,
    )
