# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of run_test.sh's options: each field is an option, and its row has its properties.

These are derived from the table: the parser (contract.command_line), the keys of plan.toml
(contract.plan), the command line of a measurement (run.measure_command), --dry-run, and "how to
reproduce" in a bug report. A new option is one field here, and the code that uses it.
"""

from dataclasses import dataclass, fields

from contract import machine_model, swap, values
from contract.option_rows import (
    CAMPAIGN,
    DEVICE,
    FAKE_GITKS,
    GITKS,
    IN_MACHINE,
    MANY,
    MODELLED,
    PLAN,
    PROFILED,
    PROFILES,
    REST,
    TESTED,
    VM,
    Row,
    of_machine,
    option,
    parameter,
    setting,
)
from contract.swap import Swap
from contract.workload import DESKTOP

MOST_COPIES = 100  # --commit-copies


@dataclass(frozen=True)
class OptionTable:
    """Each field is an option."""

    kernel: tuple[str, ...] = option(
        TESTED,
        "debian:SUITE, debian:VERSION (debian:7.2), host, a bzImage or vmlinuz with its "
        "modules beside it, PATH,modules=DIR, a kernel build tree, or one that is built here: "
        "git:PATH@REV, git:PATH, debian-source:VERSION (docs/guides/own-kernel-and-patches.md; "
        "default: debian:stable); may be repeated. Debian's are of the flavour cloud-amd64, the "
        "smallest; debian:6.12/amd64 is what desktops run, /rt-amd64 the real-time one "
        "(docs/findings/debian-flavours.md)",
        metavar="SPEC",
        default=(),
        repeated=True,
        only=VM,
    )
    device: str | None = option(
        TESTED,
        "test this machine, on this unused and empty block device (or file); needs root",
        metavar="DEV",
    )
    destroy_data: str | None = option(
        TESTED,
        "repeat DEV here to confirm: all its data will be destroyed",
        metavar="DEV",
        only=DEVICE,
    )
    label: tuple[str, ...] = option(
        TESTED,
        "name of the variant in graphs and folders; one for each --kernel (and each --swap of it)",
        values.label,
        default=(),
        repeated=True,
    )
    append: str | None = option(
        TESTED,
        "more of the kernel's command line, for each --kernel here",
        values.append,
        "TEXT",
        only=VM,
    )
    swap: tuple[Swap, ...] = option(
        TESTED,
        "where each --kernel here swaps to: disk (default), zram[,size=SIZE|PERCENT%%]"
        "[,algorithm=NAME], zswap[,pool=PERCENT][,algorithm=NAME] or none "
        "(docs/guides/compare-kernels.md); if repeated, each kernel is tested with each",
        swap.read,
        "KIND",
        default=(),
        repeated=True,
    )
    knob: tuple[tuple[str, str], ...] = option(
        TESTED,
        "a file of /sys or /proc/sys to write before the workload ({disk}, {crypt}, {swap} "
        "and {fs} in PATH stand for the block devices' names); may be repeated",
        values.knob,
        "PATH=VALUE",
        default=(),
        repeated=True,
    )

    remedy: tuple[str, ...] = option(
        TESTED,
        "beside each --kernel, or without it beside each untreated variant of --resume, the same "
        "with this remedy (remedies/NAME.toml); may be repeated",
        values.remedy,
        "NAME",
        default=(),
        repeated=True,
    )
    remedies: bool = option(
        TESTED,
        "the same as --remedy with each remedy of remedies/, by itself",
        default=False,
        only=VM,
    )
    daemon: str | None = option(
        TESTED,
        "with --device: a daemon that runs beside the workload, as a remedy has one",
        values.daemon,
        "COMMAND",
        only=DEVICE,
    )
    slice: tuple[tuple[str, str], ...] = option(
        TESTED,
        "with --device: a setting of the control group that the workload's programs are in, as a "
        "remedy has one (memory.low=50%%); may be repeated",
        values.slice,
        "FILE=VALUE",
        default=(),
        repeated=True,
        only=DEVICE,
    )

    runs: int = option(
        MANY, "runs of each variant (default: 1)", values.count, "N", table=PLAN, only=CAMPAIGN
    )
    plan: str | None = option(
        MANY, "variants and the rest from a plan.toml", metavar="FILE", only=CAMPAIGN
    )
    resume: str | None = option(
        MANY,
        "go on with that campaign: what is complete stays, what is missing is run",
        metavar="DIR",
        only=CAMPAIGN,
    )
    jobs: int | None = option(
        MANY,
        "runs at a time, on the guest's clock (default: one for each core, as far as memory and "
        "disk allow; docs/guides/compare-kernels.md)",
        values.up_to(256),
        "N",
        only=CAMPAIGN,
    )
    stop_when_sure: int | None = option(
        MANY,
        "go on until each comparison has a verdict, up to N runs of each variant",
        values.count,
        "N",
        table=PLAN,
        only=CAMPAIGN,
    )
    baseline: str | None = option(
        MANY,
        "the variant that the others are compared to: its label, or its --kernel",
        values.baseline,
        "VARIANT",
        table=PLAN,
    )
    margin: float | None = option(
        MANY,
        "ratios from 1/(1+R) to 1+R are equivalent (default: 0.1)",
        values.margin,
        "R",
        table=PLAN,
    )
    # It belongs to a command, not to a campaign, and so it is in no plan.
    fail_on: tuple[str, ...] = option(
        MANY,
        f"end with status 5 if a variant's verdict, or a run, is one of these: "
        f"{', '.join(values.FAIL_ON)}, with commas (docs/reference/exit-statuses.md)",
        values.fail_on,
        "WORD,…",
        default=(),
    )

    profile: str = parameter(
        "size of the test: its defaults are in docs/reference/options.md (default: standard)",
        choices=tuple(sorted(PROFILES)),
        default="standard",
    )
    memory: int = parameter(
        "memory of the VM", values.memory, "512M", default=PROFILED, only=VM, none=0
    )
    workload: str = parameter(
        "what loads the machine: desktop, or another one of docs/reference/workloads.md",
        values.workload,
        "NAME",
        default=DESKTOP,
    )
    load: str = parameter(
        "parameters of a workload that is not desktop, for example limit=50M,size=1G",
        values.load,
        "NAME=VALUE,…",
        default="",
        none="",
    )
    # At most 16: each stream needs a port of the guest's virtio-serial bus.
    gitk: int = parameter("how many gitk's", values.up_to(16), "4", default=4, of_gitks=GITKS)
    commits: int = parameter(
        "length of the history; how far a real one (--repo) is read, from its newest commit",
        values.count,
        "N",
        default=PROFILED,
        none=0,
        of_gitks=GITKS,
    )
    every: int = parameter("commits per line", values.count, "100", default=100, of_gitks=GITKS)
    passes: int = parameter(
        "times that each gitk reads it", values.count, "N", default=PROFILED, of_gitks=(FAKE_GITKS,)
    )
    touch: float = parameter(
        "earlier commits looked up for each one loaded",
        values.touch,
        "F",
        default=PROFILED,
        of_gitks=(FAKE_GITKS,),
    )
    step: int = parameter(
        "commits loaded between two of its looks back, on average (default: 512)",
        values.step,
        "N",
        default=512,
        of_gitks=(FAKE_GITKS,),
    )
    commit_copies: int = parameter(
        "copies kept of each commit; with 8, 20,000 are as large as in the real gitk "
        "(docs/developer/fake-gitk.md; default: 1)",
        values.up_to(MOST_COPIES),
        "N",
        default=1,
        of_gitks=(FAKE_GITKS,),
    )
    screen: bool = parameter(
        "also press keys in real windows, an editor's and a gitk's, in an X server without a "
        "screen, and time them until their pixels are there (docs/explain/keys.md)",
        default=False,
    )
    repo: str | None = parameter(
        "a real git repository instead of a made one, of which --commits are read",
        metavar="PATH",
        source=True,
        of_gitks=GITKS,
    )
    music: str | None = parameter(
        "the music (default: made, incompressible)", metavar="PATH|rsync://…", source=True
    )
    fs: str = parameter(None, choices=("ext4", "ext3", "ext2", "xfs"), default="ext4")
    crypt: bool = parameter("LVM without dm-crypt below it", default=True)
    atomic_order: int = parameter(
        "add echoes whose replies need order-N atomic memory (docs/findings/atomic-allocations.md)",
        int,
        choices=(2, 3),
        default=0,
        none=0,
    )
    # At most 10,000: a reply may take 1 s, and a sequence number has 16 bits.
    atomic_rate: int = parameter(
        "so many echoes a second (default: 100)",
        values.up_to(10_000),
        "N",
        default=100,
        needs="atomic_order",
        none=0,
    )

    accel: str = setting(
        "auto (default): emulated, on the guest's clock, where the other options allow it, also "
        "where KVM works: such figures are the same on every host; else KVM if it works. kvm: on "
        "the host's clock (docs/explain/machines-and-clocks.md)",
        choices=("auto", "kvm", "tcg"),
        default="auto",
        only=VM,
        may_differ=True,
    )
    machine: str = setting(
        f"{', '.join(machine_model.named())}, or a file (docs/explain/machines-and-clocks.md; "
        "default: laptop)",
        machine_model.known,
        "NAME|FILE.toml",
        default="laptop",
        only=VM,
    )
    qemu: str = setting(
        "suite (default: the suite's own, the same on every host), host (qemu-system-x86_64 of "
        "this machine), or a program",
        values.emulator,
        "suite|host|PATH",
        default="suite",
        only=VM,
        may_differ=True,
    )
    clock: str = setting(
        "which clock counts the seconds: the guest's, by its own instructions, or the host's "
        "(default: auto: the guest's where --accel and the machine allow it)",
        choices=("auto", "guest", "host"),
        default="auto",
        only=VM,
    )
    cpus: int = setting("CPUs of the VM", values.count, "N", default=MODELLED, only=VM)
    cpu_mips: int | None = of_machine(
        "millions of instructions a second of the guest's clock", int, choices=machine_model.MIPS
    )
    disk_kind: str | None = of_machine(None, choices=machine_model.KINDS)
    disk_iops: int | None = of_machine(
        "accesses a second of the VM's disk, one after the other", values.count, "N"
    )
    disk_bps: int | None = of_machine(
        "bytes a second of the VM's disk, for example 80M", values.size, "N"
    )
    disk_parallel: int | None = of_machine(
        "accesses of the VM's disk at a time (flash)", machine_model.READERS["disk_parallel"], "N"
    )
    disk_depth: int | None = of_machine(
        "requests that the VM's disk takes at a time", machine_model.READERS["disk_depth"], "N"
    )
    disk_queues: int | None = of_machine(
        "queues of the VM's disk", machine_model.READERS["disk_queues"], "N"
    )
    timeout: int = setting("end the run after S seconds", values.count, "S", default=PROFILED)
    live_lock_after: int = setting(
        "end the run as hung when the programs it waits for print next to nothing for S seconds "
        "while the kernel only reclaims in vain or warns (docs/developer/live-lock.md; default: "
        "180; 0: never; needs the evidence observer)",
        values.seconds_or_0,
        "S",
        default=180,
    )

    out: str | None = option(
        REST, "campaign folder (default: results/<date>-<profile>)", metavar="DIR"
    )
    mirror: str | None = option(
        REST,
        "Debian mirror (default: the one of this machine's apt sources, else mmdebstrap's)",
        metavar="URL",
        table=IN_MACHINE,
        source=True,
        only=VM,
        may_differ=True,
    )
    evidence: bool = option(
        REST,
        "without the observer that records why programs stall",
        default=True,
        table=IN_MACHINE,
    )
    dry_run: bool = option(REST, "say what would be done, touch nothing", default=False)
    install: bool = option(REST, "install nothing; say what is missing", default=True)
    bare: bool = option(
        REST,
        "with --device: measure only, with the standard library and pexpect; no live view, no "
        "pictures (what the VM runs inside)",
        default=False,
        only=DEVICE,
    )
    run_dir: str | None = option(
        REST, "with --bare: the folder of this run's own files", metavar="DIR", only=DEVICE
    )


ROWS: dict[str, Row] = {one.name: one.metadata["row"] for one in fields(OptionTable)}
# Parameters that a plan keeps beside the options, and the row of the option each comes from.
NOTED = {"history": ROWS["repo"], "music_kind": ROWS["music"]}
