# SPDX-License-Identifier: GPL-2.0-or-later
"""latency_output.py with known answers: stamps, escaping, ends, outputs that fail."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.lines import LineLog, escape
from tests.support.kernel_logs import TICKING, add_up, is_gone, parse, python, wait_for, whole_lines

pytestmark = pytest.mark.clock

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, str(ROOT / "latency_output.py")]


def unescape(text: str) -> bytes:
    """The bytes that escape() made this text of."""

    def byte(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else "\\"

    return re.sub(r"\\(?:x([0-9a-f]{2})|\\)", byte, text).encode("latin-1")


@given(st.binary(max_size=300))
def test_escaping_is_printable_and_reversible(raw: bytes) -> None:
    text = escape(raw)
    assert text.isascii() and text.isprintable() and text != "[end]"
    assert unescape(text) == raw


def test_own_end_line_cannot_pass_for_the_last() -> None:
    assert escape(b"[end]") == "\\x5bend]"
    assert escape("ü\t\\x".encode()) == "\\xc3\\xbc\\x09\\\\x"


@settings(max_examples=200)
@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\0", b"\n"))).map(b"".join),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3_000_000_000)), max_size=20),
)
def test_split_anywhere_gives_the_same_lines(data: bytes, cuts: list[tuple[int, int]]) -> None:
    log = LineLog(0)
    now, rest, text = 0, data, b""
    for size, pause in cuts:
        now += pause
        text += log.feed(rest[:size], now)
        rest = rest[size:]
    text += log.feed(rest, now) + log.end(now + 1_499_999)
    rows = parse(text.decode())
    add_up(rows)
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert [unescape(line) for _, _, line in rows[:-1]] == expected
    assert rows[-1][2] == "[end]" and log.lines == len(expected)


@pytest.mark.parametrize("piece", [1000, 4096, 65536, 10_000_000])
def test_long_line_is_cut_and_its_length_kept(piece: int) -> None:
    log = LineLog(0)
    data = b"x" * 4096 + b"y" * 3_000_000 + b"\nshort\n" + b"z" * 5000
    text = b"".join(log.feed(data[i : i + piece], i) for i in range(0, len(data), piece))
    rows = parse((text + log.end(len(data))).decode())
    cut = "x" * 4096 + "…[3004096 bytes]"
    assert [r[2] for r in rows] == [cut, "short", "z" * 4096 + "…[5000 bytes]", "[end]"]
    exact = LineLog(0).feed(b"x" * 4096 + b"\n", 0)
    assert exact == b"0.000 0.000 " + b"x" * 4096 + b"\n"


def test_unfinished_line_is_stamped_when_its_last_bytes_came() -> None:
    log = LineLog(1_000_000_000)
    text = log.feed(b"a\nb", 2_000_000_000) + log.feed(b"c", 3_000_400_000) + log.end(9_000_000_000)
    assert text == b"1.000 1.000 a\n2.000 1.000 bc\n8.000 6.000 [end]\n"


def test_pipe_in_bounded_memory_with_binary_and_no_final_newline(tmp_path: Path) -> None:
    make = "import os\nfor i in range(200): os.write(1, b'A'*1000000)\n"
    make += "os.write(1, b'\\n'); os.write(1, bytes(range(256))); os.write(1, b'end')"
    source = subprocess.Popen(python(make), stdout=subprocess.PIPE)
    with open(tmp_path / "out", "wb") as out:
        # From a small parent: a process begins with the peak of the one that it was forked from.
        measure = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n"
        measure += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)"
        done = subprocess.run(
            [*python(measure), *COMMAND], stdin=source.stdout, stdout=out, stderr=subprocess.PIPE
        )
    source.wait()
    assert done.returncode == 0 and int(done.stderr) < 60_000  # KiB
    rows = parse((tmp_path / "out").read_text())
    add_up(rows)
    assert rows[0][2] == "A" * 4096 + "…[200000000 bytes]"
    middle, _, after = bytes(range(256)).partition(b"\n")
    assert [unescape(row[2]) for row in rows[1:]] == [middle, after + b"end", b"[end]"]


@pytest.mark.parametrize(
    ("command", "status"), [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("", 0)]
)
def test_exit_status_is_the_commands(command: str, status: int) -> None:
    done = subprocess.run([*COMMAND, "--", "sh", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, "")
    assert [row[2] for row in parse(done.stdout)] == ["[end]"]


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    for arguments, status in (
        (["--", "/no/such/command"], 3),
        (["-o", str(tmp_path / "no" / "file"), "--", "true"], 2),
    ):
        done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True)
        assert done.returncode == status and done.stderr.count("\n") == 1, done.stderr
    for arguments in (["--"], ["true"]):
        assert subprocess.run([*COMMAND, *arguments], capture_output=True).returncode == 2


def test_a_program_is_what_its_name_says(tmp_path: Path) -> None:
    """Blanks, quotes and backslashes in it included; without arguments, too."""
    program = tmp_path / "a b" / 'it\'s "so" \\n'
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$# arguments"\n')
    program.chmod(0o755)
    for arguments in ([], ["x y"], [""]):
        command = [*COMMAND, "--", str(program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert [row[2] for row in parse(done.stdout)] == [f"{len(arguments)} arguments", "[end]"]


@pytest.mark.parametrize(
    ("shell", "status", "said"),
    [
        ('"$@" -- ""', 3, "cannot start output: no such program: ''"),
        ('"$@" -- echo hi >&-', 2, "the standard output is closed (-o FILE)"),
        ('"$@" <&-', 2, "the standard input is closed (-- CMD)"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(shell: str, status: int, said: str) -> None:
    done = subprocess.run(["sh", "-c", shell, "sh", *COMMAND], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (status, f"latency_output.py: {said}\n")


def test_a_file_gets_the_lines_where_the_output_is_closed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    shell = '"$@" -o "$OUT" -- echo hi <&- >&- 2>&-'
    subprocess.run(
        ["sh", "-c", shell, "sh", *COMMAND], check=True, env={**os.environ, "OUT": str(out)}
    )
    assert [row[2] for row in parse(out.read_text())] == ["hi", "[end]"]


def test_a_pipe_is_stamped_without_pexpect(tmp_path: Path) -> None:
    """The standard library is enough for that; a command is refused in a line."""
    (tmp_path / "pexpect.py").write_text("raise ImportError('not here')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(COMMAND, input="hi\n", capture_output=True, text=True, env=env)
    assert [row[2] for row in parse(done.stdout)] == ["hi", "[end]"] and done.stderr == ""
    command = [*COMMAND, "--", "echo", "hi"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 3 and done.stdout == ""
    assert re.fullmatch(r"latency_output.py: CMD needs pexpect .*\n", done.stderr)


def test_command_has_a_terminal_and_its_bytes_are_unchanged() -> None:
    code = "import sys; print(sys.stdout.isatty()); print('a\\tb\\r')"
    done = subprocess.run([*COMMAND, "--", *python(code)], capture_output=True, text=True)
    assert [row[2] for row in parse(done.stdout)] == ["True", "a\\x09b\\x0d", "[end]"]


def test_a_terminal_makes_a_program_print_line_by_line() -> None:
    code = "import time\nfor i in range(4): print('line', i); time.sleep(0.25)\n"
    command = ["env", "-u", "PYTHONUNBUFFERED", *python(code)]
    done = subprocess.run([*COMMAND, "--", *command], capture_output=True, text=True)
    rows = parse(done.stdout)
    add_up(rows)
    assert [row[2] for row in rows] == [*(f"line {i}" for i in range(4)), "[end]"]
    assert 0.5 < rows[3][0] - rows[0][0] < 10


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("trap '' TERM HUP; sleep 100 & echo $!; wait; wait; sleep 100", 143),  # killed in the end
        ("trap '' HUP; sleep 100 & echo $!; exit 5", 5),  # the shell's end is its children's
    ],
)
def test_grandchildren_and_the_unwilling_die_too(script: str, status: int) -> None:
    arguments = ["--", "sh", "-c", script]
    recording = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE)
    assert recording.stdout
    grandchild = int(recording.stdout.readline().split()[2])
    if status > 128:
        recording.terminate()
    assert recording.wait(20) == status
    wait_for(lambda: is_gone(grandchild))


def test_stopped_program_is_a_gap_of_that_length(tmp_path: Path) -> None:
    out = tmp_path / "log"
    code = "import os; os.write(1, b'%d\\n' % os.getpid())\n" + TICKING % (1000, "0.02")
    recording = subprocess.Popen([*COMMAND, "-o", str(out), "--", *python(code)])
    wait_for(lambda: whole_lines(out).count("\n") > 5)
    pid = int(parse(whole_lines(out))[0][2])
    before = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.2)
    os.kill(pid, signal.SIGCONT)
    stopped = time.monotonic() - before
    wait_for(lambda: max(row[1] for row in parse(whole_lines(out))) > 1)
    recording.terminate()
    assert recording.wait(20) == 143
    rows = parse(out.read_text())
    add_up(rows)
    assert rows[-1][2] == "[end]" and is_gone(pid)
    longest = max(row[1] for row in rows)
    assert stopped - 0.1 < longest < stopped + 1
    assert sum(row[1] > 1 for row in rows) == 1


def test_sigterm_in_a_pipe_writes_the_open_gap(tmp_path: Path) -> None:
    out = tmp_path / "log"
    recording = subprocess.Popen([*COMMAND, "-o", str(out)], stdin=subprocess.PIPE)
    assert recording.stdin
    recording.stdin.write(b"one\ntwo")
    recording.stdin.flush()
    wait_for(lambda: "one" in whole_lines(out))
    time.sleep(0.5)
    recording.terminate()
    assert recording.wait(20) == 143
    rows = parse(out.read_text())
    assert [row[2] for row in rows] == ["one", "two", "[end]"] and rows[-1][1] >= 0.45


def test_reader_that_goes_away_ends_it_with_its_program() -> None:
    code = "import os; print(os.getpid(), flush=True)\n" + TICKING % (100000, "0.01")
    recording = subprocess.Popen([*COMMAND, "--", *python(code)], stdout=subprocess.PIPE)
    assert recording.stdout
    pid = int(recording.stdout.readline().split()[2])
    recording.stdout.close()
    assert recording.wait(20) == 141 and is_gone(pid)


def test_own_file_loses_nothing_when_the_reader_goes_away(tmp_path: Path) -> None:
    out = tmp_path / "latency-x.log"
    arguments = ["-o", str(tmp_path), "--stream", "x", "--", *python(TICKING % (50, "0.005"))]
    recording = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE)
    assert recording.stdout
    recording.stdout.close()
    assert recording.wait(20) == 0
    assert [r[2] for r in parse(out.read_text())] == [*(f"tick {i}" for i in range(50)), "[end]"]


def test_full_output_is_said() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "--", "echo", "one"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert re.fullmatch(
        r"latency_output.py: output: lost 2 lines \(\d+ bytes\): output is full\n", done.stderr
    )
    assert done.returncode == 0


def test_more_than_is_kept_for_a_full_output_is_counted() -> None:
    flood = "yes 'more than is kept' | head -n 400000"
    with open("/dev/full", "wb") as full:
        source = subprocess.Popen(["sh", "-c", flood], stdout=subprocess.PIPE)
        done = subprocess.run(
            COMMAND, stdin=source.stdout, stdout=full, stderr=subprocess.PIPE, text=True
        )
    source.wait()
    assert "lost 400001 lines" in done.stderr and done.returncode == 0


def test_stamping_does_not_wait_for_a_slow_reader() -> None:
    code = TICKING.replace("tick", "x" * 1000) % (200, "0.01")
    recording = subprocess.Popen([*COMMAND, "--", *python(code)], stdout=subprocess.PIPE)
    assert recording.stdout
    fcntl.fcntl(recording.stdout, fcntl.F_SETPIPE_SZ, 4096)
    time.sleep(3)
    rows = parse(recording.stdout.read().decode())
    assert recording.wait(20) == 0
    assert [row[2] for row in rows] == [*(f"{'x' * 1000} {i}" for i in range(200)), "[end]"]
    assert max(row[1] for row in rows) < 1.5
