# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command line, the same for all kernels of a comparison."""

from dataclasses import dataclass, field
from pathlib import Path

from contract.results_memory import MEMORY_BYTES
from vm import disk_spec
from vm.disk_spec import DiskModel
from vm.emulator import Emulator

# Machine, CPU and the length of each queue are given, because QEMU's defaults differ by version.
MACHINE = "pc-q35-7.2"
# The features that QEMU emulates, without those that no kernel under test needs: five-level page
# tables only make page walks longer, and with all features about one guest in 25 died of a double
# fault with impossible flags.
FEATURES = (
    *("abm", "aes", "arat", "clflushopt", "clwb", "erms", "fsgsbase", "movbe", "pclmulqdq"),
    *("pdpe1gb", "popcnt", "rdrand", "rdtscp", "smap", "smep", "sse4.1", "sse4.2", "sse4a"),
    *("ssse3", "umip", "xgetbv1", "xsave", "xsaveopt"),
)
CPU = {"tcg": ",".join(["qemu64", "-svm", *(f"+{feature}" for feature in FEATURES)]), "kvm": "host"}
BLK_QUEUE = NET_QUEUE = 256  # descriptors
CACHE = "unsafe"
MUSIC_ADDRESS = "10.0.2.100"
GUEST, HOST = "guest", "host"  # whose clock a guest waits by
# A virtio disk's queue needs more than two entries, as requests are not split for a short queue.
LEAST_DEPTH = 4
# The start of a guest's own clock: the day of the mail (reference/001).
EPOCH = "2009-11-02T12:00:00"


@dataclass(frozen=True)
class Disk:
    """A virtio-blk disk, which the guest finds by its serial; iops and bps (bytes) per second.

    model: its model, if it has one; descriptor: then that of its file.
    """

    serial: str
    file: str
    read_only: bool = False
    iops: int | None = None
    bps: int | None = None
    model: DiskModel | None = None
    descriptor: int = -1


@dataclass(frozen=True)
class Spec:
    """One virtual machine, run by emulator. memory: bytes; QEMU inherits all descriptors.

    console: the common path of two FIFOs, without .in and .out. results: a file of MEMORY_BYTES
    to which the guest writes its results. mips: instructions per microsecond of a guest whose clock
    counts them; None: it has the host's clock. seed: for all randomness of a guest with its own
    clock. library: the disk model, preloaded.
    """

    emulator: Emulator
    accel: str
    memory: int
    cpus: int
    kernel: Path = Path()
    initrd: Path = Path()
    append: str = ""
    console_log: Path = Path()
    console: Path = Path()
    monitor_fd: int = -1
    disks: list[Disk] = field(default_factory=list)
    results: Path | None = None
    music_command: str | None = None
    fdsets: dict[int, list[int]] = field(default_factory=dict)
    mips: int | None = None
    seed: int = 0
    library: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """QEMU's environment, with the models of its disks."""
        plain = self.emulator.environment(self.library)
        if self.library is None:
            return plain
        models = [(disk.model, disk.descriptor) for disk in self.disks if disk.model]
        clock = {"DISK_MODEL_OWN_CLOCK": "1"} if self.mips else {}
        return {**plain, **clock, **disk_spec.environment(models)}


def command_line(spec: Spec) -> list[str]:
    """QEMU's argv for this machine; it dies with its parent (PR_SET_PDEATHSIG through setpriv)."""
    start = spec.emulator.command(spec.library)
    argv = ["setpriv", "--pdeathsig", "KILL", *start, *machine_words(spec)]
    argv += ["-kernel", str(spec.kernel), "-initrd", str(spec.initrd), "-append", spec.append]
    # The console's input carries sysrq to a hung kernel; QEMU itself logs the output, so that the
    # log is complete even if the runner dies. Not a socket: it is full after about 300 one-byte
    # writes, and the next write would wait for the host.
    argv += [
        "-chardev",
        f"pipe,id=console,path={_quoted(spec.console)},logfile={_quoted(spec.console_log)}",
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
        argv += disk_words(disk, spec)
    if spec.results is not None:
        # Plain memory of a PCI device: the guest's kernel has no driver for it, so that writing
        # there costs it nothing. A port of virtio_console would cost the guest a page for each
        # descriptor of its queue: 128 with QEMU 7.2, 1,024 with 10.0.
        memory = f"memory-backend-file,id=results,share=on,size={MEMORY_BYTES}"
        argv += ["-object", f"{memory},mem-path={_quoted(spec.results)}"]
        argv += ["-device", "ivshmem-plain,memdev=results"]
    if spec.music_command is not None:
        # "Another machine" without a port on the host: QEMU hands the guest's connection to the
        # command's standard input, and restrict=on lets the guest reach nothing else.
        argv += [
            "-netdev",
            "user,id=net,restrict=on,guestfwd=tcp:"
            f"{MUSIC_ADDRESS}:873-cmd:{spec.music_command.replace(',', ',,')}",
            "-device",
            f"virtio-net-pci,netdev=net,romfile=,mq=off,rx_queue_size={NET_QUEUE},"
            f"tx_queue_size={NET_QUEUE}{_at_once(spec)}",
        ]
    return argv


def machine_words(spec: Spec) -> list[str]:
    """The words for the machine without its devices, and for its clock."""
    threads = "single" if spec.mips else "multi"
    accel = f"tcg,thread={threads}" if spec.accel == "tcg" else "kvm"
    argv = ["-name", "desktop-freeze", "-nodefaults", "-no-user-config", "-display", "none"]
    # Exactly one accelerator: with "kvm:tcg" a run could not tell which one it measured.
    argv += ["-accel", accel, "-machine", MACHINE, "-cpu", CPU[spec.accel]]
    argv += ["-smp", str(spec.cpus), "-m", f"size={spec.memory >> 20}M"]
    if spec.mips:
        # The guest does not see the host's time, randomness or speed. While it waits, its time
        # leaps to the next event.
        argv += ["-icount", f"shift={(1000 // spec.mips).bit_length() - 1},sleep=off,align=off"]
        argv += ["-rtc", f"base={EPOCH},clock=vm", "-seed", str(spec.seed)]
    # A reset ends QEMU, so that a panic (panic=-1) ends the run at once.
    argv += ["-no-reboot"]
    return argv


def _at_once(spec: Spec) -> str:
    # QEMU gets a request at the end of the instruction that makes it, not when its main loop gets
    # to it.
    return ",ioeventfd=off" if spec.library else ""


def _no_cache(spec: Spec) -> str:
    # Needless flushes and discards would end in QEMU's main loop, at a time of the host's clock.
    # The model's writes end when the platter has them: it has no cache to flush.
    return ",write-cache=off,discard=off,write-zeroes=off" if spec.library else ""


def disk_words(disk: Disk, spec: Spec) -> list[str]:
    """The words for a drive and its device."""
    drive = f"if=none,id={disk.serial},file={_quoted(disk.file)},format=raw,cache={CACHE}"
    if spec.library:
        drive += ",aio=io_uring"
    if disk.read_only:
        drive += ",readonly=on"
    if disk.iops:
        drive += f",throttling.iops-total={disk.iops}"
    if disk.bps:
        drive += f",throttling.bps-total={disk.bps}"
    device = f"virtio-blk-pci,drive={disk.serial},serial={disk.serial}"
    device += _at_once(spec) + _no_cache(spec)
    queues, depth = spec.cpus, BLK_QUEUE
    if disk.model is not None:
        queues, depth = disk.model.queues, max(LEAST_DEPTH, _power_of_two(disk.model.depth))
    device += f",num-queues={queues},queue-size={depth}"
    device += f",seg-max-adjust={'on' if disk.model is None else 'off'}"
    return ["-drive", drive, "-device", device]


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _quoted(path: Path | str) -> str:
    return str(path).replace(",", ",,")
