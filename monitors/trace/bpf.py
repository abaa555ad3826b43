# SPDX-License-Identifier: GPL-2.0-or-later
"""bpf(2) and perf_event_open(2) through ctypes: maps, programs, and where they are attached.

All of it lives as long as its file descriptors: when this process ends, however it ends, nothing
is left in the kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
from mmap import mmap
from struct import pack, pack_into, unpack_from

HASH, ARRAY, PERCPU_ARRAY = 1, 2, 6
MMAPABLE = 1 << 10
KPROBE, TRACEPOINT, TRACING = 2, 5, 26
RAW_TP = 23  # how a TRACING program is attached: to a tracepoint, by its BTF
MAP_CREATE, LOOKUP, DELETE, NEXT_KEY, PROG_LOAD = 0, 1, 3, 4, 5
RAW_OPEN, LOOKUP_AND_DELETE = 17, 21
PERF_TYPE_TRACEPOINT, PERF_FLAG_CLOEXEC, PERF_ATTR_BYTES = 2, 8, 112
IOC_ENABLE, IOC_SET_BPF = 0x2400, 0x40042408
RLIMIT_MEMLOCK = 8
# Numbers of bpf and perf_event_open: x86-64's own; arm64, riscv and loongarch share theirs.
SYSCALLS = {
    "x86_64": (321, 298),
    "aarch64": (280, 241),
    "riscv64": (280, 241),
    "loongarch64": (280, 241),
    "ppc64le": (361, 319),
    "s390x": (351, 331),
}
LOG_BYTES = 1 << 18

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_bpf_number, _perf_number = SYSCALLS.get(os.uname().machine, (0, 0))


def _syscall(number: int, *arguments: object) -> int:
    if number == 0:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    found: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def _bpf(command: int, attributes: bytes) -> int:
    return _syscall(_bpf_number, ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes)))


def unlimited_memlock() -> None:
    """Raise RLIMIT_MEMLOCK: until 5.11 (kernel commit 97306be45fbe) maps are charged to it."""
    _libc.setrlimit(RLIMIT_MEMLOCK, pack("QQ", 2**64 - 1, 2**64 - 1))


class Map:
    """One map: keys and values of fixed size. Buffers are made once: reading allocates little."""

    def __init__(self, kind: int, key: int, value: int, entries: int) -> None:
        self.fd = _bpf(MAP_CREATE, pack("IIIIIII16s", kind, key, value, entries, 0, 0, 0, b""))
        self._key = ctypes.create_string_buffer(key)
        self._value = ctypes.create_string_buffer(value)
        at, to = ctypes.addressof(self._key), ctypes.addressof(self._value)
        self._element = pack("IIQQQ", self.fd, 0, at, to, 0)
        self._delete = pack("IIQQQ", self.fd, 0, at, 0, 0)
        self._first = pack("IIQQQ", self.fd, 0, 0, at, 0)
        self._next = pack("IIQQQ", self.fd, 0, at, at, 0)
        self._pops = True

    def get(self, key: bytes) -> bytes:
        """The value of a key; KeyError."""
        self._key.raw = key
        self._do(LOOKUP, self._element)
        return self._value.raw

    def pop(self) -> tuple[bytes, bytes]:
        """Take out one entry; KeyError if there is none.

        In one step since 5.14 (kernel commit 3e87f192b405); before, what a program adds to the
        entry between its reading and its removal is lost.
        """
        self._do(NEXT_KEY, self._first)
        key = self._key.raw
        if self._pops:
            try:
                self._do(LOOKUP_AND_DELETE, self._element)
                return key, self._value.raw
            except OSError:
                self._pops = False
        self._do(LOOKUP, self._element)
        self._do(DELETE, self._delete)
        return key, self._value.raw

    def remove(self, key: bytes) -> bool:
        """Take an entry away; whether it was there."""
        self._key.raw = key
        try:
            self._do(DELETE, self._delete)
        except KeyError:
            return False
        return True

    def items(self, most: int) -> list[tuple[bytes, bytes]]:
        """All entries, or as many as can be had in `most` steps, each once.

        Where a program removes the entry that this one stands at, it begins again.
        """
        found: dict[bytes, bytes] = {}
        try:
            self._do(NEXT_KEY, self._first)
            for _ in range(most):
                key = self._key.raw
                try:  # noqa: SIM105 (contextlib is 0.3 MiB of locked memory)
                    found[key] = self.get(key)
                except KeyError:
                    pass
                self._do(NEXT_KEY, self._next)
        except KeyError:
            pass
        return list(found.items())

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)

    def _do(self, command: int, attributes: bytes) -> None:
        try:
            _bpf(command, attributes)
        except OSError as error:
            if error.errno == errno.ENOENT:
                raise KeyError from None
            raise


class Sums:
    """Signed 64-bit numbers that programs add to, mapped into this process (5.5): no call to read.

    Numbers are read and written whole, each for itself.
    """

    def __init__(self, count: int) -> None:
        attributes = pack("IIIIIII16s", ARRAY, 4, 8 * count, 1, MMAPABLE, 0, 0, b"")
        self.fd = _bpf(MAP_CREATE, attributes)
        self._layout = f"{count}q"
        self._memory = mmap(self.fd, 8 * count)

    def read(self) -> tuple[int, ...]:
        """All of them."""
        return unpack_from(self._layout, self._memory)

    def write(self, number: int, value: int) -> None:
        """Set one."""
        pack_into("q", self._memory, 8 * number, value)

    def close(self) -> None:
        """Close the descriptor; the mapping keeps the numbers."""
        os.close(self.fd)


def load(kind: int, code: bytes, name: str, btf_id: int = 0) -> int:
    """Load a program; its descriptor. OSError carries the last word of the kernel's verifier.

    btf_id: of a TRACING program the type of its tracepoint.
    """
    license = ctypes.create_string_buffer(b"GPL")
    instructions = ctypes.create_string_buffer(code, len(code))
    log = None
    while True:
        attributes = pack(
            "IIQQIIQII16s",
            kind,
            len(code) // 8,
            ctypes.addressof(instructions),
            ctypes.addressof(license),
            1 if log else 0,
            LOG_BYTES if log else 0,
            ctypes.addressof(log) if log else 0,
            0,
            0,
            name.encode()[:15],
        )
        if btf_id:
            attributes += pack("II36xI", 0, RAW_TP, btf_id)
        try:
            return _bpf(PROG_LOAD, attributes)
        except OSError as error:
            if log or error.errno in (errno.EPERM, errno.ENOSYS):
                word = _last_word(log.value) if log else ""
                raise OSError(error.errno, f"{error.strerror}{word}") from None
            log = ctypes.create_string_buffer(LOG_BYTES)


def _last_word(log: bytes) -> str:
    lines = log.decode("utf-8", "replace").strip().splitlines()
    said = [line for line in lines if not line.startswith(("processed ", "verification time"))]
    return f": {said[-1]}" if said else ""


def attach_tracing(program: int) -> int:
    """Attach a TRACING program to the tracepoint that it was loaded for; the descriptor of that."""
    return _bpf(RAW_OPEN, pack("QII", 0, program, 0))


def attach_tracepoint(program: int, event: int) -> int:
    """Attach to a tracepoint by the id of its format file.

    One event, on CPU 0, is enough: a program belongs to the tracepoint, and runs on every CPU.
    """
    return _attach(program, PERF_TYPE_TRACEPOINT, event, 0)


def kprobe_pmu(root: str = "") -> int:
    """The type of the PMU `kprobe` (4.17); OSError if there is none."""
    with open(f"{root}/sys/bus/event_source/devices/kprobe/type", "rb") as handle:
        return int(handle.read())


def attach_kprobe(program: int, kind: int, function: str) -> int:
    """Attach to the entry of a kernel function; kind: kprobe_pmu()."""
    text = ctypes.create_string_buffer(function.encode())
    return _attach(program, kind, 0, ctypes.addressof(text))


def perf_event(
    kind: int, config: int, *, config1: int = 0, flags: int = 0, pid: int, cpu: int
) -> int:
    """perf_event_open(2): the descriptor of an event of this PMU type.

    flags: the first word of perf_event_attr's bit field; pid, cpu: 0 this task, -1 any.
    """
    attributes = pack("IIQ24xQ8xQ", kind, PERF_ATTR_BYTES, config, flags, config1)
    return _syscall(
        _perf_number,
        attributes.ljust(PERF_ATTR_BYTES, b"\0"),
        ctypes.c_int(pid),
        ctypes.c_int(cpu),
        ctypes.c_int(-1),
        ctypes.c_ulong(PERF_FLAG_CLOEXEC),
    )


def _attach(program: int, kind: int, config: int, config1: int) -> int:
    import fcntl

    fd = perf_event(kind, config, config1=config1, pid=-1, cpu=0)
    try:
        fcntl.ioctl(fd, IOC_SET_BPF, program)
        fcntl.ioctl(fd, IOC_ENABLE, 0)
    except OSError:
        os.close(fd)
        raise
    return fd
