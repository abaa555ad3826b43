# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh --dry-run: says everything that a run would do, and touches nothing."""

import shlex
import subprocess
import sys

from setup import device_check, image, kernels
from setup.errors import UserError, run_command
from vm.session import WORK_DISK_BYTES, append, guest_command
from workloads import campaign, durations, measure, suite
from workloads.identity import identified
from workloads.options import Options, parse
from workloads.plan import Variant


def lines(options: Options) -> list[str]:
    """What would be done, a step a line."""
    p = options.parameters
    check = subprocess.run(
        [
            str(suite.ROOT / "setup" / "packages.sh"),
            "--no-install",
            *(["--device"] if options.device else []),
        ],
        capture_output=True,
        text=True,
    )
    missing = check.stderr.strip().splitlines()
    packages = "all there" if check.returncode == 0 else "; ".join(missing)
    install = "" if options.install else " (--no-install: it would end here if any is missing)"
    size = f"{p.commits:,} commits" if p.commits else "all of its commits"
    source = options.repo or "made, as long as linux-2.6's" if p.commits else options.repo
    stack = "dm-crypt (random key, in memory only) -> " if p.crypt else ""
    workload = [
        f"history: {size} ({source}), cloned to {measure.SCRATCH}/linux-2.6",
        f"music: {options.music or 'made, incompressible'}, by rsync with a bandwidth limit",
        f"workload: heartbeat, player, {p.gitk} gitk's, {p.passes} pass(es), a line every "
        f"{p.every} commits, touch {p.touch:g}; ended after {options.timeout} s at the latest",
        *(
            [
                f"atomic load: {p.atomic_rate} echoes a second to 127.0.0.1 whose replies need "
                f"order-{p.atomic_order} GFP_ATOMIC memory"
            ]
            if p.atomic_order
            else []
        ),
        "recorded: every line's latency, /proc/vmstat, meminfo, pressure, diskstats, kernel log"
        + (", what silent programs wait for" if options.evidence else ""),
    ]
    build = f"{stack}LVM -> {p.fs} + swap of {measure.SWAP_BYTES >> 30} GiB (less on a small disk)"
    report = f"results: {campaign.folder(options)}, with pictures and summary.txt in report/"
    if options.device is not None:
        destroy = " (it may hold data: they would be destroyed)" if options.destroy_data else ""
        return [
            f"packages: {packages}{install}",
            f"device: {options.device}, unless it is in use or not empty{destroy}",
            f"as of now: {verdict(options)}",
            f"build on it: {build}, mounted at {measure.SCRATCH}",
            "all other swap of this machine: off, and on again after",
            *workload,
            "then: unmount, swap off, destroy the stack, swap as before",
            report,
        ]
    throttle = []
    if options.disk_iops:
        throttle.append(f"{options.disk_iops} IO/s")
    if options.disk_bps:
        throttle.append(f"{options.disk_bps} bytes/s")
    return [
        f"packages: {packages}{install}",
        *(_variant(variant, options) for variant in options.variants),
        image.describe(),
        f"accelerator: {options.accel}"
        + (" (KVM if a kernel boots under it here, else TCG)" if options.accel == "auto" else ""),
        f"VM: {p.memory >> 20} MiB, {options.cpus} CPUs, a throw-away disk of "
        f"{WORK_DISK_BYTES >> 30} GiB" + (f" at {', '.join(throttle)}" if throttle else ""),
        f"inside: {guest_command(options, options.variants[0]).strip()}",
        f"build there: {build}",
        *workload,
        *_order(options),
        report,
    ]


def _variant(variant: Variant, options: Options) -> str:
    name = f"variant {variant.label}" if variant.label else "kernel"
    line = append("kvm" if options.accel == "kvm" else "tcg", variant.append)
    text = f"{name}: {kernels.describe(variant.kernel)}; command line: {line}"
    knobs = "; ".join(f"{path} = {value}" for path, value in variant.knobs)
    return text + (f"; knobs: {knobs}" if knobs else "")


def _order(options: Options) -> list[str]:
    """Which runs, in which order, and how long they will take."""
    todo = campaign.remaining(campaign.folder(options), options)
    if not todo:
        return ["runs: nothing is missing"]
    about = durations.estimate(options.parameters, options.accel, len(todo))
    time = (
        f"about {durations.words(about)}" if about else "how long is not known yet on this machine"
    )
    shown = ", ".join(f"{label} {number}" for label, number in todo[:60])
    lines = [
        f"runs: {len(todo)} ({len(options.variants)} variants, up to {options.runs} each), {time}",
        f"order: {shown}{', …' if len(todo) > 60 else ''}",
    ]
    if options.looks:
        looks = ", ".join(str(look) for look in options.looks)
        lines.append(f"looked at after {looks} runs of each; ended once all is decided")
    return lines


def verdict(options: Options) -> str:
    """What a run would say of the device now; only reads."""
    assert options.device is not None
    try:
        device_check.check_device(options.device, destroy_data=options.destroy_data)
    except UserError as error:
        return f"refused: {error}"
    return "it may be used"


def main() -> int:
    """Print the steps."""
    options = identified(parse(sys.argv[1:]))
    print(f"dry run of: run_test.sh {shlex.join(sys.argv[1:])}")
    for number, line in enumerate(lines(options), start=1):
        print(f"{number:3}. {line}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
