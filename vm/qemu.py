# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command line: one commented list, the same for all kernels of a comparison."""

from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = "qemu-system-x86_64"
MACHINE = "q35"
# Emulated without what no kernel under test needs: five-level page tables only lengthen each page
# walk, and one of some 25 guests with all of it died with impossible flags in a double fault.
CPU = {"tcg": "max,-avx,-avx2,-bmi1,-bmi2,-adx,-la57,-pku", "kvm": "host"}
CACHE = "unsafe"
# Of one virtio-serial bus, which has at most 31. The guest gives memory to queues for each port
# that its bus can have, so no bus is larger than what is on it.
BUS_PORTS = 12
MUSIC_ADDRESS = "10.0.2.100"


@dataclass(frozen=True)
class Disk:
    """A virtio-blk disk, known in the guest by its serial."""

    serial: str
    file: str
    read_only: bool = False
    snapshot: bool = False
    iops: int | None = None
    bps: int | None = None


@dataclass(frozen=True)
class Ports:
    """Files on the host that the guest's virtio-serial ports of these names write to."""

    folder: Path
    names: list[str]


@dataclass(frozen=True)
class Spec:
    """One virtual machine. memory in bytes; fds are inherited by QEMU."""

    accel: str
    kernel: Path
    initrd: Path
    append: str
    memory: int
    cpus: int
    console_log: Path
    console_fd: int = -1
    monitor_fd: int = -1
    disks: list[Disk] = field(default_factory=list)
    ports: Ports | None = None
    music_command: str | None = None
    fdsets: dict[int, list[int]] = field(default_factory=dict)


def command_line(spec: Spec) -> list[str]:
    """QEMU's argv for this machine; it dies with its parent (PR_SET_PDEATHSIG through setpriv)."""
    accel = "tcg,thread=multi" if spec.accel == "tcg" else "kvm"
    argv = ["setpriv", "--pdeathsig", "KILL", PROGRAM]
    argv += ["-name", "desktop-freeze", "-nodefaults", "-no-user-config", "-display", "none"]
    # Exactly one accelerator: with "kvm:tcg" a run could not tell which one it measured.
    argv += ["-accel", accel, "-machine", MACHINE, "-cpu", CPU[spec.accel]]
    argv += ["-smp", str(spec.cpus), "-m", f"size={spec.memory >> 20}M"]
    # A reset ends QEMU, so that a panic (panic=-1) ends the run at once.
    argv += ["-no-reboot"]
    argv += ["-kernel", str(spec.kernel), "-initrd", str(spec.initrd), "-append", spec.append]
    # The console's input side carries sysrq to a kernel that hangs; its output is logged by QEMU
    # itself, so that it is whole even if the runner dies.
    argv += [
        "-chardev",
        f"socket,id=console,fd={spec.console_fd},logfile={_quoted(spec.console_log)}",
        "-serial",
        "chardev:console",
        "-chardev",
        f"socket,id=monitor,fd={spec.monitor_fd}",
        "-mon",
        "chardev=monitor,mode=control",
    ]
    for number, fds in spec.fdsets.items():
        for fd in fds:
            argv += ["-add-fd", f"fd={fd},set={number}"]
    for disk in spec.disks:
        argv += _disk(disk)
    if spec.ports is not None:
        argv += _ports(spec.ports)
    if spec.music_command is not None:
        # "Another machine" without a port on the host: QEMU hands the guest's connection to the
        # command's standard input, and restrict=on lets the guest reach nothing else.
        argv += [
            "-netdev",
            "user,id=net,restrict=on,guestfwd=tcp:"
            f"{MUSIC_ADDRESS}:873-cmd:{spec.music_command.replace(',', ',,')}",
            "-device",
            "virtio-net-pci,netdev=net,romfile=",
        ]
    return argv


def _disk(disk: Disk) -> list[str]:
    drive = f"if=none,id={disk.serial},file={_quoted(disk.file)},format=raw,cache={CACHE}"
    if disk.read_only:
        drive += ",readonly=on"
    if disk.snapshot:
        drive += ",snapshot=on"
    if disk.iops:
        drive += f",throttling.iops-total={disk.iops}"
    if disk.bps:
        drive += f",throttling.bps-total={disk.bps}"
    return [
        "-drive",
        drive,
        "-device",
        f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}",
    ]


def _ports(ports: Ports) -> list[str]:
    argv = []
    for first in range(0, len(ports.names), BUS_PORTS):
        names = ports.names[first : first + BUS_PORTS]
        bus = f"results{first // BUS_PORTS}"
        argv += ["-device", f"virtio-serial-pci,id={bus},max_ports={len(names) + 1}"]
        for number, name in enumerate(names, start=1):
            argv += [
                "-chardev",
                f"file,id={bus}-{number},path={_quoted(ports.folder / name)}",
                "-device",
                f"virtserialport,bus={bus}.0,nr={number},chardev={bus}-{number},name={name}",
            ]
    return argv


def _quoted(path: Path | str) -> str:
    return str(path).replace(",", ",,")
