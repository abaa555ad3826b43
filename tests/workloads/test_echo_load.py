# SPDX-License-Identifier: GPL-2.0-or-later
"""The echo load on this kernel, and what of it stands in options, plans and results."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from contract.results_memory import FILES
from contract.run_files import appended_files
from echo_load import echo as echo_module
from echo_load.echo import Echo, exchange
from errors import UserError
from run.arguments import parse
from run.dry_run import lines as dry_run
from run.measure_command import measure_argv
from tests.run.test_campaign import finish, opened, plan
from workloads import companions, desktop
from workloads.registry import stream_names

pytestmark = pytest.mark.clock

SUITE = Path(__file__).resolve().parents[2]
ATOMIC = ["--atomic-order", "2", "--atomic-rate", "250"]


def raw_sockets() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    except OSError:
        return False
    return True


needs_raw = pytest.mark.skipif(not raw_sockets(), reason="no raw sockets here")


@needs_raw
def test_each_echo_has_its_reply() -> None:
    assert exchange(2, 50) == 50
    assert exchange(3, 5) == 5


NOT_REPLIED = """\
import fcntl, socket, struct
from pathlib import Path
from measure.echo_check import checked
from errors import UserError
Path("/proc/sys/net/ipv4/icmp_echo_ignore_all").write_text("1")
with socket.socket() as lo:
    fcntl.ioctl(lo, 0x8914, struct.pack("16sh22x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
try:
    checked(2, 100)
except UserError as error:
    print(error)
"""


def test_a_machine_that_does_not_reply_is_told_to() -> None:
    # In a network of its own: nothing of this machine's is changed.
    command = ["unshare", "--net", sys.executable, "-c"]
    if subprocess.run([*command, ""], capture_output=True).returncode:
        pytest.skip("a network namespace needs root")
    done = subprocess.run([*command, NOT_REPLIED], cwd=SUITE, capture_output=True, text=True)
    assert "nothing replies to ICMP echoes to 127.0.0.1" in done.stdout, done.stderr
    assert "icmp_echo_ignore_all" in done.stdout and done.stdout.count("\n") == 1


@needs_raw
def test_a_reply_that_never_comes_is_lost_and_a_late_look_loses_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(echo_module, "REPLY_S", 0.2)
    echo = Echo(2)
    assert echo.send() and echo.waiting == 1
    time.sleep(0.3)  # its reply lies in the socket, unread
    assert (echo.look(), echo.waiting) == (0, 0)
    echo.close()
    silent = Echo(2)
    assert silent.send()
    silent._socket.setsockopt(255, 1, b"\xff\xff\xff\xff")  # from now on the kernel drops replies
    silent.look()
    silent.send()
    time.sleep(0.3)
    assert silent.look() == 1 and silent.sent == 2
    silent.close()


@needs_raw
def test_lines_count_on_and_a_stopped_load_does_not_catch_up() -> None:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "echo_load", "--rate", "200"],
        stdout=subprocess.PIPE,
        cwd=SUITE,
        text=True,
    )
    assert process.stdout
    first = process.stdout.readline()  # it has begun
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(process.pid, signal.SIGCONT)
    lines = [first.rstrip()]
    while lines[-1].endswith(" missed 0") and time.monotonic() < began + 40:
        lines.append(process.stdout.readline().rstrip())  # those before the stop come first
    process.terminate()
    lines += process.stdout.read().splitlines()
    assert process.wait(10) == 0
    found = [re.fullmatch(r"echo (\d+) lost (\d+) missed (\d+)", line) for line in lines]
    assert len(lines) >= 2 and all(found)
    counts = [tuple(map(int, one.groups())) for one in found if one]
    assert counts == sorted(counts)
    sent, lost, missed = counts[-1]
    assert lost == 0 and missed >= 200  # 1.5 s of 200 a second
    # What it sent and what it missed was due: nothing was made up for twice.
    assert sent + missed <= 200 * (time.monotonic() - began) + 1


def test_options_and_what_the_guest_is_told() -> None:
    options = parse(["--kernel", "debian:6.1", *ATOMIC])
    assert (options.atomic_order, options.atomic_rate) == (2, 250)
    argv = measure_argv(options, options.variants[0], repo="/r", music="/m", run_dir="/d")
    inner = parse(["--device", "/dev/x", *argv])
    assert (inner.atomic_order, inner.atomic_rate) == (2, 250)
    assert inner.live_lock_after == options.live_lock_after == 180
    none = parse([])
    assert (none.atomic_order, none.atomic_rate) == (0, 0)
    assert parse(["--atomic-order", "3"]).atomic_rate == 100
    assert any("250 echoes a second" in line for line in dry_run(options))


@pytest.mark.parametrize(
    "argv",
    [
        ["--atomic-order", "1"],
        ["--atomic-order", "4"],
        ["--atomic-rate", "100"],
        ["--atomic-order", "2", "--atomic-rate", "0"],
        ["--atomic-order", "2", "--atomic-rate", "10001"],
        ["--live-lock-after", "-1"],
    ],
)
def test_what_cannot_be_is_a_usage_error(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    assert ended.value.code == 2


def test_it_is_one_more_stream_and_no_end_of_the_test() -> None:
    assert stream_names(parse(["--gitk", "1"])) == ["heartbeat", "player", "gitk-1"]
    assert stream_names(parse([*ATOMIC, "--gitk", "1"])) == [
        *("heartbeat", "player", "echo", "gitk-1")
    ]
    most = appended_files(stream_names(parse([*ATOMIC, "--gitk", "16"])))
    assert "latency-echo.log" in most
    assert len(most) <= FILES
    options = parse(ATOMIC)
    programs = {one.name: one.argv for one in companions.programs(options, Path("/s"))}
    assert programs["echo"][-6:] == ["echo_load", "--order", "2", "--rate", "250", "--wait"]
    assert "echo" not in desktop.WORKLOAD.finite(options)


def test_a_campaign_keeps_its_load(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), "--kernel", "debian:6.1", *ATOMIC))
    stored = plan(out)["parameters"]
    assert (stored["atomic_order"], stored["atomic_rate"]) == (2, 250)
    again = parse(["--resume", str(out)])
    assert again.atomic_order == 2
    with pytest.raises(UserError, match="atomic_rate 250"):
        opened(out, "--resume", str(out), "--atomic-order", "2", "--atomic-rate", "9")
