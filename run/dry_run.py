# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh --dry-run: prints everything that a run would do, and changes nothing.

It refuses what the run would refuse, as far as that is known without fetching anything.
"""

import itertools
import shlex
import subprocess
import sys
from dataclasses import replace

from contract import checkout
from contract.option_rows import REAL_GITKS
from contract.options import Options
from contract.swap import ON_DISK
from contract.variant import Variant
from errors import UserError, run_command
from run import campaign, checks, demands
from run.arguments import parse
from run.clock import at_once, expected_clock, modelled
from run.estimates import first_estimate
from run.hosts import host_list, opening
from run.identity import identified
from run.measure_command import guest_command, measure_argv
from run.preparation import images_packages
from run.run_folders import folder
from setup import image, kconfig, kernels
from setup.crypt_lvm import activation, stack_build
from setup.userland import tools
from vm import emulator
from vm.guest import append
from vm.qemu import GUEST
from vm.room import WORK_DISK_BYTES
from workloads import registry


def lines(options: Options, where: str = host_list.LOCAL) -> list[str]:
    """The steps of the run, one per line; where: the value of --on."""
    check = subprocess.run(
        [
            str(checkout.ROOT / "setup" / "packages.sh"),
            "--no-install",
            *(["--device"] if options.device else []),
        ],
        capture_output=True,
        text=True,
    )
    missing = "; ".join(check.stderr.strip().splitlines())
    if check.returncode and not options.install:
        raise UserError(missing)
    packages = "all there" if check.returncode == 0 else missing
    stack = "dm-crypt (random key, in memory only) -> " if options.crypt else ""
    by_workload = _alike(options)
    workload = [
        *_history(options),
        f"music: {options.music or 'made, incompressible'}, by rsync with a bandwidth limit",
        *(
            f"workload: heartbeat, player, {_load(item)}; "
            f"ended after {options.timeout} s at the latest"
            for item in by_workload
        ),
        *(
            [
                f"atomic load: {options.atomic_rate} echoes a second to 127.0.0.1 whose replies "
                f"need order-{options.atomic_order} GFP_ATOMIC memory"
            ]
            if options.atomic_order
            else []
        ),
        "recorded: every line's latency, how long keys typed at idle programs take"
        f"{', also in windows' if options.screen else ''}, /proc/vmstat, meminfo, pressure, "
        "diskstats, kernel log"
        + "".join(f", slab {name}" for name in _slabs(by_workload))
        + (", what silent programs wait for" if options.evidence else ""),
        *demands.memory_warnings(options),
    ]
    swap = f"swap of {stack_build.SWAP_BYTES >> 30} GiB (less on a small disk)"
    build = f"{stack}LVM -> {options.fs} + {swap}"
    report = f"results: {folder(options)}, with pictures and summary.txt in report/"
    if options.device is not None:
        destroy = " (it may hold data: they would be destroyed)" if options.destroy_data else ""
        return [
            f"packages: {packages}",
            f"device: {options.device}, which may be used as it is now{destroy}",
            f"build on it: {build}, mounted at {activation.MOUNT}",
            f"swap: {options.variants[0].swap.words}",
            "all other swap of this machine: off, and on again after",
            *workload,
            f"measured by: run_test.sh --device {options.device} {_measured(options)}",
            "then: unmount, swap off, destroy the stack, swap as before",
            report,
        ]
    clock = expected_clock(options)
    opened = campaign.Campaign(options, ())
    return [
        f"packages: {packages}",
        *(_variant(variant, options, opened.pinned(variant)) for variant in options.variants),
        *_programs(options),
        *(image.describe(more) for more in images_packages(options)),
        f"accelerator: {_accelerator(options, clock)}",
        *dict.fromkeys(_vm(item, clock) for item in by_workload),
        *(
            f"inside: {guest_command(item, item.variants[0], clock=clock).strip()}"
            for item in by_workload
        ),
        f"build there: {build}",
        *workload,
        *_order(options, where),
        report,
    ]


def _programs(options: Options) -> list[str]:
    """The origin of QEMU and of the programs that make the guest's disks."""
    own = [tools.describe()]
    return (
        own
        if options.qemu == emulator.SUITE
        else [*own, f"QEMU that runs the guest: {options.qemu}"]
    )


def _alike(options: Options) -> list[Options]:
    """The options of the first variant of each workload."""
    by_workload: dict[str, Options] = {}
    for variant_options in map(options.of, options.variants):
        by_workload.setdefault(variant_options.workload, variant_options)
    return list(by_workload.values())


def _vm(options: Options, clock: str) -> str:
    return (
        f"VM: {options.machine}: {options.memory >> 20} MiB, {_many(options.cpus, 'CPU')}"
        + (f" of {options.cpu_mips} MIPS" if options.cpu_mips and clock == GUEST else "")
        + f", {_disks(options)} of {WORK_DISK_BYTES >> 30} GiB{_disk(options)}; on the {clock}'s "
        f"clock{_depends(options, clock)}"
    )


def _accelerator(options: Options, clock: str) -> str:
    """The accelerator; with `auto` KVM is tried only if the guest cannot have its own clock."""
    if options.accel != "auto":
        return options.accel
    if clock == GUEST:
        return "tcg, for the guest's clock (--accel kvm asks for KVM)"
    return "auto (KVM if a kernel boots under it here, else TCG)"


def _depends(options: Options, clock: str) -> str:
    """What clock and disk depend on: only a run builds the disk model and tries it."""
    takes = "QEMU takes the disk model"
    if clock != GUEST:
        return f"; the disk by QEMU's throttle unless {takes}" if modelled(options) else ""
    if options.clock == GUEST:
        return f"; refused unless {takes}"
    return f" if {takes}, else on the host's"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _slabs(alike: list[Options]) -> list[str]:
    slabs = (registry.find(variant_options.workload).slabs for variant_options in alike)
    return list(dict.fromkeys(itertools.chain.from_iterable(slabs)))


def _history(options: Options) -> list[str]:
    if not options.gitks:
        return []
    size = f"{options.commits:,} commits"
    source = f"the newest of {options.repo}" if options.repo else "made, as long as linux-2.6's"
    return [f"history: {size} ({source}), cloned to {activation.MOUNT}/linux-2.6"]


def _load(options: Options) -> str:
    workload = registry.find(options.workload)
    lines = f"a line every {options.every} commits"
    gitks = f"{options.gitk} gitk's, " + (
        lines
        if workload.gitks == REAL_GITKS
        else f"{options.passes} pass(es), {lines}, touch {options.touch:g}, step {options.step}, "
        f"commit copies {options.commit_copies}"
    )
    summary = workload.describe(options).summary
    described = f"{summary} ({options.load})" if options.load else summary
    own = [described] if options.load or not options.gitks else []
    return "; ".join([*([gitks] if options.gitks else []), *own])


def _disks(options: Options) -> str:
    more = registry.find(options.workload).more_disks
    return f"{1 + more} throw-away disks, each" if more else "a throw-away disk"


def _disk(options: Options) -> str:
    parts = [f"{options.disk_iops:,} accesses/s"] if options.disk_iops else []
    if options.disk_bps:
        parts.append(f"{options.disk_bps:,} bytes/s")
    kind = f", {options.disk_kind}" if modelled(options) else ""
    return f"{kind} at {', '.join(parts)}" if parts else ""


def _measured(options: Options) -> str:
    """The arguments of the measurement on a device; capitals stand for paths made later."""
    repo, music = options.repo or "HISTORY", options.music or "MUSIC"
    variant = options.variants[0]
    return shlex.join(measure_argv(options, variant, repo=repo, music=music, run_dir="RUN"))


def _variant(variant: Variant, options: Options, kernel: str) -> str:
    label = variant.name(variant.kernel, options.variants)
    name = "kernel" if label == variant.kernel else f"variant {label}"
    line = append("kvm" if options.accel == "kvm" else "tcg", variant.append)
    text = f"{name}: {kernels.describe(kernel)}; command line: {line}"
    knobs = "; ".join(f"{path} = {value}" for path, value in variant.knobs)
    text += f"; swap: {variant.swap.words}" if variant.swap != ON_DISK else ""
    if variant.workload:
        text += f"; workload: {variant.workload}, with {variant.memory >> 20} MiB"
    text += f"; knobs: {knobs}" if knobs else ""
    text += f"; daemon: {variant.daemon}" if variant.daemon else ""
    files = "; ".join(f"{file} = {value}" for file, value in variant.slice)
    text += f"; the programs' control group: {files}" if files else ""
    resolved = kernels.as_it_is(kernel) if variant.remedy else None
    lacking = "" if resolved is None else kconfig.remedy_lacks(resolved, variant)
    return text + (f"; LEFT OUT: this kernel lacks {lacking}" if lacking else "")


def _order(options: Options, where: str) -> list[str]:
    """The runs to do: their order, place and estimated time."""
    todo = campaign.remaining(options)
    if not todo:
        return ["runs: nothing is missing"]
    jobs = at_once(options, expected_clock(options))
    side_by_side = f"{jobs} at a time" + (" (1 on the host's clock)" if jobs > 1 else "")
    of_label = dict(zip(campaign.names(options), map(options.of, options.variants), strict=True))
    clock = expected_clock(options)
    accel = "tcg" if clock == GUEST else options.accel
    todo_options = [of_label[label] for label, _ in todo]
    time = first_estimate.sentence(todo_options, accel, jobs, clock, options.qemu)
    hosts = host_list.hosts(where)
    if where != host_list.LOCAL:
        slots = host_list.slots(where)
        if hosts and clock != GUEST:
            slots, hosts = len(hosts), [replace(host, slots=1) for host in hosts]
        side_by_side = f"{slots} at a time"
        time = "no time estimate for other hosts"
    shown = ", ".join(f"{label} {number}" for label, number in todo[:60])
    variants = _many(len(options.variants), "variant")
    lines = [
        f"runs: {len(todo)} ({variants}, up to {options.runs} each), {side_by_side}, {time}",
        f"order: {shown}{', …' if len(todo) > 60 else ''}",
    ]
    if warning := campaign.few_runs_warning(options):
        lines.append(warning)
    proof = "the same short run" if clock == GUEST else "a short run with the same facts"
    if hosts:
        named = ", ".join(f"{host.name} ({host.slots} at a time)" for host in hosts)
        lines.append(f"done by ssh on {named}, once each has made {proof}")
    elif where != host_list.LOCAL:
        alone = "" if clock == GUEST else ", each run alone on its node"
        lines.append(f"done by Slurm, on nodes that have made {proof}{alone}")
    if options.looks:
        looks = ", ".join(str(look) for look in options.looks)
        lines.append(f"looked at after {looks} runs of each; ended once all is decided")
    return lines


def main() -> int:
    """Print the steps of the run."""
    options = parse(sys.argv[1:])
    demands.check(options)
    options = identified(options)
    where = opening.chosen(sys.argv[1:], folder(options))
    checks.check(options, elsewhere=where != host_list.LOCAL)
    print(f"dry run of: run_test.sh {shlex.join(sys.argv[1:])}")
    if options.device is None:
        opening.check(where, options, [expected_clock(options)])
    for number, line in enumerate(lines(options, where), start=1):
        print(f"{number:3}. {line}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
