# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of the run_test.sh that measures, in a guest and on this machine alike."""

from pathlib import Path

from workloads.options import Options
from workloads.plan import Variant


def inner_argv(
    options: Options, variant: Variant, *, repo: str | Path, music: str, run_dir: str | Path
) -> list[str]:
    """What follows `run_test.sh --device DEV`: every parameter said, no profile's default left."""
    p = options.parameters
    argv = ["--bare", "--run-dir", str(run_dir), "--no-install"]
    argv += ["--profile", p.profile, "--gitk", str(p.gitk), "--every", str(p.every)]
    argv += ["--passes", str(p.passes), "--touch", str(p.touch), "--fs", p.fs]
    argv += ["--repo", str(repo), "--music", music, "--timeout", str(options.timeout)]
    argv += ["--live-lock-after", str(options.live_lock_after)]
    if p.atomic_order:
        argv += ["--atomic-order", str(p.atomic_order), "--atomic-rate", str(p.atomic_rate)]
    if not p.crypt:
        argv.append("--no-crypt")
    if not options.evidence:
        argv.append("--no-evidence")
    if options.destroy_data is not None:
        argv += ["--destroy-data", options.destroy_data]
    for path, value in variant.knobs:
        argv += ["--knob", f"{path}={value}"]
    return argv
