# SPDX-License-Identifier: GPL-2.0-or-later
"""What the VM tests share: a guest made ready once, runs in it, and the search for leftovers."""

import contextlib
import dataclasses
import functools
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from contract.options import Options
from contract.run_record import read_events
from run import machine_lock
from run.arguments import parse
from run.measure_command import GUEST_PROGRAM, guest_job
from run.preparation import make_ready
from setup import cache, guest_suite
from vm import session
from vm.classify import QEMU_DIED
from vm.guest import Guest
from vm.machine import Machine
from vm.qemu import GUEST

SUITE = Path(__file__).resolve().parents[2]
# In the environment of all that a test process starts, so that each looks for its own only.
STARTED_BY = "DESKTOP_FREEZE_TESTS"
os.environ[STARTED_BY] = str(os.getpid())
# What only a test's programs need in a guest.
FOR_TESTS = ("contract", "machines", "run", "setup", "tests/guest", "vm")
START_S = 300.0  # within which the workload of a run has to start
# On the host's clock: these tests stop, hang and crash a guest at moments of the host's.
SMALL = ["--profile", "quick", "--commits", "6000", "--gitk", "2", "--accel", "tcg"]
SMALL += ["--machine", "host", "--memory", "248M"]
# The same on a clock of its own: nothing there is at a moment of the host's.
COUNTED = ["--cpus", "1", "--cpu-mips", "500", "--clock", "guest"]
OWN_CLOCK = [*SMALL, *COUNTED]


# A fault of a kernel, but for the panics that tests bring about.
FAULT = re.compile(
    r"^.*(?:\bOops: |BUG: unable to handle|general protection fault|PANIC: double fault"
    r"|kernel BUG at|Kernel panic - not syncing: (?!sysrq triggered crash|NMI)).*$",
    re.MULTILINE,
)
FAULT_LINES = 60
LAST_LINES = 40
QEMU_CRASHED = re.compile(rf"{QEMU_DIED}SIG(?:SEGV|ABRT|BUS|ILL|FPE)\b")


class EmulatorFailed(Exception):
    """QEMU or a guest's kernel died of a fault that no test asked for: it is tried once more.

    About one guest in 40 does under QEMU 7.2's emulation, whose CPU at times loses the flags of an
    interrupted program (vm.classify); one QEMU was seen to die of SIGSEGV while its guest looked
    for PCI devices. tests/conftest.py prints what each said.
    """


def must_be_the_kernels(folder: Path) -> None:
    """EmulatorFailed, with QEMU's or the kernel's words, if a run below folder died so."""
    for status in sorted(folder.rglob("status.json")):
        if QEMU_CRASHED.search(status.read_text()):
            raise EmulatorFailed(f"{status}:\n{status.read_text()}")
    for console in sorted(folder.rglob("console.log")):
        said = console.read_text(errors="replace")
        if fault := FAULT.search(said):
            lines = said[fault.start() :].splitlines()[:FAULT_LINES]
            raise EmulatorFailed(f"{console}:\n" + "\n".join(lines))


@functools.cache
def guest(*argv: str) -> Guest:
    """Everything a run needs, made once for a test session."""
    return make_ready(parse(list(argv)))[0].guest


def options(*more: str) -> Options:
    """A small run's options."""
    return parse([*SMALL, *more])


def for_tests(ready: Guest) -> Guest:
    """The guest, with the tests' programs beside the suite's."""
    return dataclasses.replace(
        ready, files=ready.files._replace(suite=guest_suite.folder(FOR_TESTS))
    )


def run_in_vm(
    run_dir: Path,
    opts: Options,
    *,
    ready: Guest | None = None,
    stopped: Callable[[], bool] = lambda: False,
    booted: "WhenUnderWay | None" = None,
    label: str = "test",
    program: str = GUEST_PROGRAM,
    seed: int = 1,
) -> tuple[str, str]:
    """One run in a fresh VM, in this process: (state, why). Nothing may be left of it.

    ready: another guest than a small run's. Raises what went wrong in booted's thread.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    watcher = booted or WhenUnderWay(run_dir, 0, None)
    machine = ready or guest(*SMALL)
    if program != GUEST_PROGRAM:
        machine = for_tests(machine)
    try:
        with nothing_left(), machine_lock.held(machine.timing.clock == GUEST) as lock:
            if machine.timing.clock == GUEST:
                lock.share()
            state, why = session.run(
                machine,
                guest_job(
                    opts,
                    opts.variants[0],
                    program,
                    clock=machine.timing.clock,
                    seed=seed,
                ),
                run_dir,
                tick=lambda: None,
                stopped=lambda: stopped() or watcher.error is not None,
                facts={"label": label, "variant": label, "parameters": opts.parameters},
                booted=watcher,
            )
    except BaseException as error:  # pytest's own, of a test that takes too long, is no Exception
        error.add_note(f"the guest's last words:\n{last_words(run_dir)}")
        raise
    finally:
        watcher.run_is_over()
    must_be_the_kernels(run_dir)
    if watcher.error is not None:
        watcher.error.add_note(f"the run ended as {state}: {why}")
        raise watcher.error
    return state, why


def disk_speeds(run_dir: Path, *argv: str, more_disks: int = 0) -> dict[str, float]:
    """What the disks of a guest do, by its clock: tests/guest/disk_speed.py says which figures."""
    made = guest(*argv)
    hardware = dataclasses.replace(made.hardware, more_disks=more_disks)
    ready = dataclasses.replace(made, hardware=hardware)
    program = "python3 /suite/tests/guest/disk_speed.py"
    run_in_vm(run_dir, parse(list(argv)), ready=ready, program=program)
    console = (run_dir / "console.log").read_text()
    said = re.search(r"^.*DISK-SPEED (.*)$", console, re.MULTILINE)
    assert said, "the guest did not say how fast its disk is"
    found: dict[str, float] = json.loads(said[1])
    return found


def last_words(run_dir: Path) -> str:
    """The end of a guest's console."""
    console = run_dir / "console.log"
    said = console.read_text(errors="replace") if console.exists() else ""
    return "\n".join(said.splitlines()[-LAST_LINES:])


def wait_for(what: Callable[[], bool], seconds: float) -> bool:
    """Whether what() became true within that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def started(run_dir: Path) -> bool:
    """Whether the workload of a run has started."""
    return any(event["event"] == "start" for event in read_events(run_dir / "events.jsonl"))


def wait_for_start(run_dir: Path, going: Callable[[], bool]) -> float:
    """Wait for the workload's start: when (time.monotonic()) the host saw it, a little after it.

    AssertionError if it does not come in time, or if going() turns false before it.
    """
    came = wait_for(lambda: started(run_dir) or not going(), START_S)
    began = time.monotonic()
    assert came, f"the workload did not start within {START_S:.0f} s"
    assert started(run_dir), "the run ended before the workload started"
    return began


class WhenUnderWay:
    """A `booted` that calls act(machine, began) when the workload has run for that many seconds.

    began is what wait_for_start gives. What goes wrong, in act or on the way to it, is kept in
    `error`: run_in_vm ends the run for it, and raises it in the test's own thread.
    """

    def __init__(
        self, run_dir: Path, seconds: float, act: Callable[[Machine, float], None] | None
    ) -> None:
        self.error: BaseException | None = None
        self._run_dir = run_dir
        self._seconds = seconds
        self._act = act
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __call__(self, machine: Machine) -> None:
        if self._act is not None:
            self._thread = threading.Thread(
                target=self._watch, args=(machine, self._act), daemon=True
            )
            self._thread.start()

    def run_is_over(self) -> None:
        """Tell the thread, and wait for its end."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(30)
            if self._thread.is_alive() and self.error is None:
                self.error = AssertionError("what was to be done to the machine did not end")

    def _watch(self, machine: Machine, act: Callable[[Machine, float], None]) -> None:
        try:
            began = wait_for_start(self._run_dir, lambda: not self._over.is_set())
            early = self._over.wait(self._seconds)
            assert not early, f"the run ended within {self._seconds} s of the workload's start"
            act(machine, began)
        except BaseException as error:  # pytest's own outcomes are no Exceptions
            self.error = error


@contextlib.contextmanager
def command(*argv: str, **env: str) -> Iterator["subprocess.Popen[str]"]:
    """./run_test.sh as a user starts it, in a process group of its own; ended with the test.

    EmulatorFailed on leaving, if a guest in the folder of its --out died of the emulation.
    """
    process = subprocess.Popen(
        [str(SUITE / "run_test.sh"), "--no-install", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, **env},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        if "--out" in argv:
            must_be_the_kernels(Path(argv[argv.index("--out") + 1]))


def one_small_run(
    out: Path, kernel: str, workload: str, load: str, *more: str, within_s: float
) -> Path:
    """The campaign folder of one run of a workload, with its report; within_s of the host's."""
    argv = ["--kernel", kernel, "--label", "one", "--profile", "quick", "--accel", "tcg"]
    argv += ["--workload", workload, "--load", load, *more, "--out", str(out)]
    with nothing_left(), command(*argv) as process:
        printed, errors = process.communicate(timeout=within_s)
    assert process.returncode == 0, printed + errors
    assert "Traceback" not in errors
    return out


def processes() -> list[str]:
    """Command lines of QEMUs and music servers of the suite that these tests have running now."""
    mark = f"{STARTED_BY}={os.environ[STARTED_BY]}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if mark not in path.with_name("environ").read_bytes().split(b"\0"):
                continue
        except OSError:
            continue
        if "-name desktop-freeze" in line or ("rsync --daemon" in line and "rsyncd.conf" in line):
            found.append(line)
    return found


def machine_state() -> dict[str, Any]:
    """What a run might leave behind on the host, other programs' mounts and loop devices not."""
    loops = subprocess.run(["/sbin/losetup", "-l", "-n"], capture_output=True, text=True).stdout
    mappings = (str(path) for path in Path("/dev/mapper").glob("*"))
    return {
        "mounts": _ours(Path("/proc/self/mounts").read_text().splitlines()),
        "swaps": _ours(Path("/proc/swaps").read_text().splitlines()),
        "loops": _ours(loops.splitlines()),
        "mappings": _ours(mappings),
        "scratch": sorted(path.name for path in cache.abandoned(session.SCRATCH)),
    }


def _ours(lines: Iterable[str]) -> list[str]:
    """Those that name what is the suite's own: its cache, its stack, a test's folder."""
    marks = (str(cache.place()), "crypt-", "/scratch", "/pytest-")
    return sorted(line for line in lines if any(mark in line for mark in marks))


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Assert that what runs within leaves no process, mount, swap, loop, mapping or scratch."""
    before = machine_state()
    assert wait_for(lambda: processes() == [], 10), "what a test before has left"
    yield
    assert wait_for(lambda: processes() == [], 10), processes()
    # A run that another test has killed leaves its own until the next one sweeps (cache.sweep).
    known = set(before.pop("scratch"))
    assert wait_for(lambda: set(machine_state()["scratch"]) <= known, 30), machine_state()
    after = machine_state()
    del after["scratch"]
    assert after == before
