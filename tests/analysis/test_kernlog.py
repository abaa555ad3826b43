# SPDX-License-Identifier: GPL-2.0-or-later
"""analysis.kernlog: every form of a record, in every form of a log, whole or not."""

import gzip
import io
import json
import lzma
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.kernel_log import gfp, kinds
from analysis.kernel_log.lines import LONGEST
from analysis.kernel_log.open_record import MOST_LINES, Record
from analysis.kernel_log.parser import Log, parse
from analysis.kernel_log.records import CHUNK, as_json, attach, count_failures
from analysis.kernlog import main
from errors import UserError

SUITE = Path(__file__).resolve().parents[2]
GOLDEN = sorted((SUITE / "tests" / "golden" / "kernlog").glob("*.log"))
ALLOCATION = "(GFP_ATOMIC|__GFP_COMP), nodemask=(null),cpuset=/,mems_allowed=0"
WHOLE = (
    f"gitk: page allocation failure: order:2, mode:0x40820{ALLOCATION}",
    "CPU: 0 PID: 2203 Comm: gitk Not tainted 6.1.0-40-amd64 #1  Debian 6.1.153-1",
    "Call Trace:",
    " <TASK>",
    " warn_alloc+0x134/0x160",
    " ? alloc_buffers+0x1/0x2",
    " __alloc_skb+0x31/0x100",
    " crypt_map+0x31/0x100 [dm_crypt]",
    " </TASK>",
    "Mem-Info:",
    "Node 0 DMA32 free:1756kB boost:0kB min:1800kB",
    "lowmem_reserve[]: 0 0 0 0",
    "Node 0 DMA32: 327*4kB (UME) 56*8kB (UE) 0*16kB = 1756kB",
    "131069 pages RAM",
    "19281 pages reserved",
)


def records(stream: BinaryIO, log: Log | None = None) -> Iterator[Record]:
    return parse(iter(lambda: stream.read(CHUNK), b""), Log() if log is None else log)


def of(*lines: str | bytes, log: Log | None = None) -> list[Record]:
    raw = b"".join(
        (line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape")) + b"\n"
        for line in lines
    )
    return list(records(io.BytesIO(raw), log))


def one(*lines: str | bytes) -> Record:
    (record,) = of(*lines)
    return record


@pytest.mark.parametrize("log", GOLDEN, ids=lambda path: path.stem)
def test_golden_logs(log: Path) -> None:
    assert len(GOLDEN) == 11
    with log.open("rb") as stream:
        found = [as_json(record, full=True) for record in records(stream)]
    wanted = [json.loads(line) for line in log.with_suffix(".json").read_text().splitlines()]
    assert json.loads(json.dumps(found)) == wanted


def test_a_record_says_everything() -> None:
    record = one(*(f"[   12.345678] {line}" for line in WHOLE))
    assert replace(record, text=(), stack=()) == Record(
        kind="page_allocation_failure",
        line=1,
        time=12.345678,
        task="gitk",
        pid=2203,
        order=2,
        mode="0x40820",
        flags="GFP_ATOMIC|__GFP_COMP",
        caller="__alloc_skb",
        free_lists={"Node 0 DMA32": {4: 327, 8: 56, 16: 0}},
        kernel="6.1.0-40-amd64",
    )
    assert record.stack == (
        "warn_alloc+0x134/0x160",
        "? alloc_buffers+0x1/0x2",
        "__alloc_skb+0x31/0x100",
        "crypt_map+0x31/0x100 [dm_crypt]",
    )
    assert [line.strip() for line in record.text] == [line.strip() for line in WHOLE]
    text = attach([record, record])
    assert text.count("\nMem-Info:\n") == 2
    assert text.startswith("=== line 1, 12.345678, page allocation failure, gitk [2203], order:2")


# --- prefixes: each way in which a log may keep the same lines ---

PREFIXES: dict[str, Callable[[int, str], str]] = {
    "bare": lambda n, text: text.lstrip() if n else text,
    "dmesg": lambda n, text: f"[   12.{n:06}] {text}",
    "dmesg -r": lambda n, text: f"<4>[   12.{n:06}] {text}",
    "dmesg -x": lambda n, text: f"kern  :warn  : [   12.{n:06}] {text}",
    "dmesg -d": lambda n, text: f"[   12.{n:06} <    0.000001>] {text}",
    "dmesg -e": lambda n, text: f"[  +0.{n:06}] {text}" if n else f"[Nov 2 12:00] {text}",
    "dmesg -T": lambda n, text: f"[Sat Nov  2 12:00:{n:02} 2024] {text}",
    "dmesg iso": lambda n, text: f"2024-11-02T12:00:{n:02},000001+01:00 {text}",
    "dmesg with caller": lambda n, text: f"[   12.{n:06}] [ T2203] {text}",
    "console with caller": lambda n, text: f"<4>[   12.{n:06}][    C0] {text}",
    "colours": lambda n, text: f"\x1b[32m[   12.{n:06}] \x1b[0m\x1b[33m{text}\x1b[0m",
    "kmsg": lambda n, text: f"4,{n},12{n:06},-;{text}",
    "kmsg with caller": lambda n, text: f"4,{n},12{n:06},-,caller=T2203;{text}\n SUBSYSTEM=x",
    "kern.log": lambda n, text: f"[12.{n:06}] <4> {text}",
    "syslog": lambda n, text: f"Nov  2 12:00:{n:02} desk kernel: {text}",
    "syslog, stamps": lambda n, text: f"Nov  2 12:00:{n:02} desk kernel: [   12.{n:06}] {text}",
    "syslog, priority": lambda n, text: f"<4>Nov  2 12:00:{n:02} desk kernel: [  12.{n:06}] {text}",
    "busybox": lambda n, text: f"Jan  1 00:00:{n:02} box kern.warn kernel: [   12.{n:06}] {text}",
    "two stamps": lambda n, text: f"Nov 2 12:00:{n:02} h kernel: [12.{n:06}] [12.{n:06}] {text}",
    "RFC 5424": lambda n, text: f"<4>1 2024-11-02T12:00:{n:02}Z desk kernel - - - {text}",
    "rsyslog": lambda n, text: f"2024-11-02T12:00:{n:02}.1+01:00 desk kernel: [12.{n:06}] {text}",
    "journalctl iso": lambda n, text: f"2024-11-02T12:00:{n:02}+0100 desk kernel: {text}",
    "journalctl full": lambda n, text: f"Sat 2024-11-02 12:00:{n:02} CET desk kernel: {text}",
    "journalctl monotonic": lambda n, text: f"[   12.{n:06}] desk kernel: {text}",
    "journalctl unix": lambda n, text: f"1730545200.{n:06} desk kernel: {text}",
    "captured": lambda n, text: f"2024-11-02T12:00:{n:02}.123Z [   12.{n:06}] {text}",
    "CRLF": lambda n, text: f"[   12.{n:06}] {text}\r",
    "NULs": lambda n, text: f"\0\0\0[   12.{n:06}] {text}",
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("task", ["gitk", "a: b", "kernel", "page allocation failure", "ü€", "x "])
def test_the_same_record_behind_any_prefix(prefix: str, task: str) -> None:
    if prefix in ("bare", "RFC 5424") and task == "x ":
        pytest.skip("a bare line may begin anywhere")
    lines = [line.replace("gitk", task) for line in WHOLE]
    record = one(*(PREFIXES[prefix](n, line) for n, line in enumerate(lines)))
    plain = one(*(f"[   12.{n:06}] {line}" for n, line in enumerate(lines)))
    assert (record.task, record.pid) == (task, 2203)
    assert replace(record, time=plain.time) == plain
    if isinstance(record.time, float):
        assert record.time == 12.0
    else:
        assert record.time is None or "12:00" in record.time or record.time == "1730545200.000000"


MULTILINE = "active_anon:1 inactive_anon:2{0}active_file:3 inactive_file:4{0}unevictable:5 dirty:6"


@pytest.mark.parametrize(
    "lines",
    [
        [f"Nov  2 12:00:00 h kernel: {MULTILINE.format('#012 ')}"],
        [f"Nov  2 12:00:00 h kernel: [ 1.5] {MULTILINE.format('#012[ 1.5]#011')}"],
        [f"4,1,1500000,-;{MULTILINE.format(chr(92) + 'x0a ')}", " KEY=value"],
        [f"[1.500000] <4> {MULTILINE.format(chr(10) + '  ')}"],
        [f"[    1.500000] {MULTILINE.format(chr(10) + '[    1.500000]  ')}"],
        [f"Nov  2 12:00:00 h kernel: {MULTILINE.format(chr(10) + ' ' * 30)}"],
    ],
)
def test_a_message_of_several_lines(lines: list[str]) -> None:
    own = lines[0].partition("active_anon")[0]
    record = one(*(own + line for line in WHOLE[:10]), *lines, *(own + line for line in WHOLE[10:]))
    parts = MULTILINE.format("\n").split("\n")
    assert [line.strip() for line in record.text] == [
        line.strip() for line in (*WHOLE[:10], *parts, *WHOLE[10:])
    ]


def test_another_program_that_quotes_the_kernel_is_not_the_kernel() -> None:
    failure = "x: page allocation failure: order:0, mode:0x820(GFP_ATOMIC)"
    assert not of(
        f"Nov  2 12:00:00 desk sshd[811]: {failure}",
        f"2024-11-02T12:00:00.1+01:00 desk sshd[811]: {failure}",
        f"12,1,98001325,-;{failure}",
        f"daemon:warn  : [    1.000000] {failure}",
        "[    1.000000] x",
        f" {failure}",
        f"[    1.000000] x: not a {failure.partition('failure')[0]}",
    )


def test_what_terminals_obey_is_not_kept() -> None:
    record = one(b"[ 1.0] \x1b[2J\x07e\xff\x9b: page allocation failure: order:0, mode:0x0")
    assert record.task == "?e\ufffd\ufffd"
    assert "\x1b" not in attach([record])


# --- one record, or two, or none ---


def test_a_kill_is_one_record_whatever_it_prints() -> None:
    old = (
        "gitk invoked oom-killer: gfp_mask=0x201da, order=0, oom_adj=0",
        "Out of memory: kill process 2203 (gitk) score 1190 or a child",
        "Killed process 2204 (git (x)) vsz:1kB",
    )
    (first, second) = of(*(f"[    1.000000] {line}" for line in old * 2))
    assert (first.kind, first.task, first.pid) == ("oom_kill", "git (x)", 2204)
    assert (first.invoked_by, first.order, first.mode) == ("gitk", 0, "0x201da")
    assert (first.cut, second.line, len(second.text)) == (False, 4, 3)
    by_two = of(
        "[    1.000000][   T10] a invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0",
        "[    1.000000][   T11] b invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=1",
        "[    1.000000][   T10] Out of memory: Killed process 1 (v) total-vm:1kB",
        "[    1.000000][   T11] Memory cgroup out of memory: Killed process 2 (w) total-vm:1kB",
    )
    assert [(r.kind, r.invoked_by, r.task) for r in by_two] == [
        ("oom_kill", "a", "v"),
        ("memcg_oom_kill", "b", "w"),
    ]
    unnamed = one("[ 1.0] a invoked oom-killer: gfp_mask=0xcc0, nodemask=0-1, order=-1")
    assert (unnamed.cut, unnamed.task, unnamed.order) == (True, None, -1)
    assert count_failures(["a invoked oom-killer: gfp_mask=0xcc0, order=0"]).oom_kills == 0


RCU = (
    "INFO: RCU detected CPU 1 stall (t=10000 jiffies)",
    "INFO: RCU detected CPU stalls: 1 3 (detected by 0, t=10002 jiffies)",
    "INFO: rcu_sched self-detected stall on CPU { 0}  (t=6000 jiffies g=1 c=0 q=1)",
    "INFO: rcu_bh detected stalls on CPUs/tasks: { 1} (detected by 0, t=6002 jiffies)",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
    "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
    "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-... } 6 jiffies s: 85",
    "INFO: rcu_tasks detected stalls on tasks:",
)
HARD = (
    "BUG: NMI Watchdog detected LOCKUP on CPU1, ip ffffffff81092f33, registers:",
    "Kernel panic - not syncing: Watchdog detected hard LOCKUP on cpu 1",
    "NMI watchdog: Watchdog detected hard LOCKUP on cpu 1",
    "watchdog: Watchdog detected hard LOCKUP on cpu 1",
    "watchdog: CPU 1 Hard LOCKUP",
)


@pytest.mark.parametrize("text", RCU)
def test_every_wording_of_an_rcu_stall(text: str) -> None:
    assert one(f"[    1.000000] {text}").kind == "rcu_stall"


@pytest.mark.parametrize("text", HARD)
def test_every_wording_of_a_hard_lockup(text: str) -> None:
    record = one(f"[    1.000000] {text}")
    assert (record.kind, record.cpu) == ("hard_lockup", 1)


@pytest.mark.parametrize(
    "text",
    [
        "rcu: Hierarchical RCU implementation, stall warnings off",
        "ata1: link is slow to respond, wait for more than 5 s",
        "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled",
        "Out of memory and no killable processes...",
        "random: 7 urandom warning(s) missed due to ratelimiting",
        "net_ratelimit: 12 callbacks suppressed",
    ],
)
def test_what_only_looks_like_a_record(text: str) -> None:
    log = Log()
    assert not of(f"[    1.000000] {text}", log=log)
    assert not log.suppressed


def test_what_the_kernel_left_out_goes_with_the_failure_that_follows() -> None:
    first, _, second = (f"[    1.000000] {line}" for line in (WHOLE[0], "", WHOLE[0]))
    for printer in ("warn_alloc: 14 callbacks", "warn_alloc_failed: 14 callbacks"):
        log = Log()
        found = of(first, f"[    2.000000] {printer} suppressed", second, log=log)
        assert ([r.suppressed for r in found], log.suppressed) == ([None, 14], 14)
    (record,) = of("[ 1.0] printk: 3 messages suppressed.", first)
    assert record.suppressed == 3
    assert not of("[ 1.0] printk: 3 messages suppressed.", "[ 1.0] ip: table full")


def test_a_stack_of_somebody_else_is_not_taken() -> None:
    others = ("BUG: unable to handle page fault for address: 0", "Call Trace:", " theirs+0x1/0x2")
    (record,) = of(*(f"[    1.000000] {line}" for line in (*WHOLE[:9], *others)))
    assert not any("theirs" in line for line in record.text)


def test_a_lockup_or_a_restart_cuts_a_record_and_keeps_it() -> None:
    lockup = "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [a b:2203]"
    for breaks in (lockup, "Kernel panic - not syncing: x", "Linux version 6.1.0 (x)"):
        lines = [*WHOLE[:7], breaks, *["something else"] * 500]
        record = of(*(f"[    1.000000] {line}" for line in lines))[0]
        assert record.cut and len(record.text) == 7
        named = [f"[    1.000000][    T5] {line}" for line in WHOLE]
        named.insert(7, f"[    1.000000][    C1] {breaks}")
        assert of(*named)[0].cut == ("Linux" in breaks)
    assert one("[ 1.0] " + lockup).task == "a b"
    ratelimited = of(*(f"[    1.000000] {line}" for line in (*WHOLE[:9], *["other"] * 500)))
    assert not ratelimited[0].cut


# --- gfp ---


@pytest.mark.parametrize(
    ("mask", "release", "names"),
    [
        (0x20, "2.6.31.5", "GFP_ATOMIC"),
        (0x4020, "2.6.31", "GFP_ATOMIC|__GFP_COMP"),
        (0x201DA, "2.6.32", "GFP_HIGHUSER_MOVABLE|__GFP_COLD"),
        (0x1200D2, "2.6.30.10", "GFP_HIGHUSER_MOVABLE"),
        (0x4D0, "2.6.37", "GFP_KERNEL|__GFP_REPEAT"),
        (0x4D0, None, None),
        (0x400000, "2.6.37", None),
        (0x400020, "2.6.38", "GFP_ATOMIC|__GFP_NO_KSWAPD"),
        (0x4352DA, "3.2.0-4-amd64", "GFP_TRANSHUGE"),
        (0x4352CA, "4.4.0", "GFP_TRANSHUGE"),
        (0x2000, "3.5.7", None),
        (0x2000, "3.6", "__GFP_MEMALLOC"),
        (0x100000, "3.8.13", "__GFP_KMEMCG"),
        (0x100000, "3.16.7", None),
        (0x100000, "4.1.2", "__GFP_NOACCOUNT"),
        (0x0, "3.16", "GFP_NOWAIT"),
        (0x2080020, "4.4.0-21", "GFP_ATOMIC"),
        (0x24000C0, "4.4.0-21", "GFP_KERNEL"),
        (0x26040D0, "4.5.2", "GFP_TEMPORARY|__GFP_COMP|__GFP_NOTRACK"),
        (0x20, "4.4", "__GFP_HIGH"),
        (0x20, "4.6", None),
        (0x20, "2.4.20", None),
        (0x20, "desk", None),
    ],
)
def test_gfp_masks_of_each_kernel(mask: int, release: str | None, names: str | None) -> None:
    assert gfp.decode(mask, release) == names


@given(st.integers(0, 2**64), st.text(alphabet="0123456789.-rc", max_size=12))
def test_a_decoded_mask_names_no_bit_twice(mask: int, release: str) -> None:
    names = (gfp.decode(mask, release) or "").split("|")
    assert len(set(names)) == len(names)


# --- properties ---

PIECES = [line.encode() for path in GOLDEN for line in path.read_text("utf-8").splitlines()]
LITERAL = re.compile(b"|".join(re.escape(word) for word in kinds.LITERALS))
JUNK = st.lists(st.one_of(st.binary(max_size=80), st.sampled_from(PIECES)), max_size=60)


@given(JUNK, st.sampled_from([b"\n", b"\r\n", b"", b"\0", b" "]))
def test_no_bytes_break_the_parser(lines: list[bytes], end: bytes) -> None:
    raw = end.join(lines)
    found = list(records(io.BytesIO(raw)))
    assert len(found) <= sum(len(LITERAL.findall(line)) for line in raw.split(b"\n"))
    assert [r.line for r in found] == sorted(r.line for r in found)
    for record in found:
        json.dumps(as_json(record, full=True))
        assert attach([record]).replace("\n", "").isprintable()
    count_failures(raw.decode("utf-8", "replace").split("\n"))


@given(st.data())
def test_two_records_told_apart_by_who_prints(data: st.DataObject) -> None:
    other = [line.replace("gitk", "b").replace("2203", "7").replace("327*", "9*") for line in WHOLE]
    queues = [
        [f"[    1.000000][{who}] {line}" for line in lines]
        for who, lines in (("  T10", WHOLE), ("   C1", other), ("   T1", ["x", "Call Trace:"] * 9))
    ]
    merged = []
    while any(queues):
        queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
        merged.append(queue.pop(0))
    found = {record.task: record for record in of(*merged)}
    for task, lines in (("gitk", WHOLE), ("b", other)):
        assert [line.strip() for line in found[task].text] == [line.strip() for line in lines]
        assert not found[task].cut and not found[task].mixed


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 120), st.sampled_from(sorted(PREFIXES)))
def test_a_log_cut_anywhere_gives_what_it_holds(last: int, at: int, prefix: str) -> None:
    lines = [PREFIXES[prefix](n, line) for n, line in enumerate(WHOLE[: last + 1])]
    raw = "\n".join([*lines[:-1], lines[-1][:at]]).encode()
    found = list(records(io.BytesIO(raw)))
    assert len(found) == (b"gitk: page allocation failure:" in raw)
    for record in found:
        text = [line.strip() for line in record.text]
        assert record.cut == (b"pages reserved" not in raw)
        assert text[:last] == [line.strip() for line in WHOLE[:last]]
        # What is left of the last line may be no more than a part of its prefix.
        assert len(text) <= last + 1
        assert record.order in (None, 2) and record.mode in (
            None,
            "0x40820"[: len(record.mode or "")],
        )


@given(st.integers(1, 400))
def test_the_size_of_the_pieces_read_does_not_matter(size: int) -> None:
    class Slow(io.BytesIO):
        def read(self, _: int | None = None, /) -> bytes:
            return super().read(size)

    for log in GOLDEN[:3]:
        raw = log.read_bytes()
        assert list(records(Slow(raw))) == list(records(io.BytesIO(raw)))


# --- size ---


def test_what_is_kept_of_a_record_and_of_a_line_has_a_limit() -> None:
    flood = [*WHOLE[:10], *["Node 0 DMA32 free:1kB " + "x" * 9000] * (MOST_LINES + 7)]
    record = one(*(f"[    1.000000] {line}" for line in flood))
    assert len(record.text) == MOST_LINES + 1 and record.text[-1] == "… 17 more lines"
    assert max(len(line) for line in record.text) < 2100
    long = b"[ 1.0] " + b"x" * (3 * LONGEST) + b": page allocation failure: order:1, mode:0x0"
    assert not of(long)
    assert one(long, "[ 1.0] a: page allocation failure: order:1, mode:0x0").line == 2


def test_many_records_at_once_stay_in_order() -> None:
    lines = [f"[    1.000000][{f'T{n % 90}':>6}] {WHOLE[0]}" for n in range(300)]
    assert [record.line for record in of(*lines)] == list(range(1, 301))


# --- the command ---


def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "analysis.kernlog", *arguments]
    return subprocess.run(command, cwd=SUITE, input=given, capture_output=True, check=False)


def test_the_command_counts_lists_and_attaches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = GOLDEN[0].read_bytes()
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(raw))
    (tmp_path / "b.log.xz").write_bytes(lzma.compress(raw))
    names = [str(tmp_path / "a.log.gz"), str(tmp_path / "b.log.xz")]
    assert main(names) == 0
    text = capsys.readouterr().out
    assert text.count("at least 2 page allocation failures") == 2
    assert "    2  GFP_ATOMIC|__GFP_COMP, __alloc_skb\n" in text
    assert text.index("1 OOM kill") < text.index("line 3, 210.118000")
    assert main([names[0], "--full"]) == 0
    assert "\nMem-Info:\n" in capsys.readouterr().out
    assert main([*names, "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [o["file"] for o in objects] == [names[0]] * 4 + [names[1]] * 4
    assert objects[1] == {
        "kind": "page_allocation_failure",
        "line": 31,
        "time": 215.200004,
        "task": "swapper",
        "pid": 0,
        "order": 0,
        "mode": "0x20",
        "flags": "GFP_ATOMIC",
        "suppressed": 14,
        "kernel": "2.6.31.5",
        "file": names[0],
    }


def test_standard_input_missing_and_damaged_files(tmp_path: Path) -> None:
    raw = GOLDEN[0].read_bytes()
    assert run(given=raw).stdout == run("-", given=raw).stdout
    assert run(given=raw).stdout.startswith(b"(standard input):\n  at least 2 page")
    for quiet in (b"", b"\n", b"-- No entries --\n", b"-- Boot 0a1b --\n\n-- No entries --\n"):
        for options in ([], ["--json"]):
            ended = run(*options, given=quiet)
            assert (ended.returncode, ended.stdout) == (3, b"") and ended.stderr.count(b"\n") == 1
            assert b"empty, so nothing is known (read a journal with sudo" in ended.stderr
        (tmp_path / "quiet").write_bytes(quiet)
        ended = run(str(tmp_path / "quiet"))
        assert ended.returncode == 3 and b"/quiet: empty, so nothing is known" in ended.stderr
    for healthy in (b"[    1.000000] x\n", b"x", b"-- No entries --\n[    1.000000] x\n"):
        assert run(given=healthy).stdout.strip().endswith(b"no record")
    (tmp_path / "x.gz").write_bytes(gzip.compress(raw)[:900])
    (tmp_path / "x.xz").write_bytes(b"not xz")
    for name in ("no\x1bfile", str(tmp_path), str(tmp_path / "x.gz"), str(tmp_path / "x.xz")):
        ended = run(name)
        assert ended.returncode == 3
        assert ended.stderr.count(b"\n") == 1 and b"\x1b" not in ended.stderr
    with pytest.raises(UserError) as caught:
        main(["/var/log/missing/kern.log"])
    # Debian 12 has no kern.log: the line says what to do there.
    assert "no such file (journalctl -k -b -1 | python3 -m analysis.kernlog -)" in str(caught.value)


def test_a_log_of_empty_lines_takes_no_longer_than_another() -> None:
    ended = run(given=b"\n" * (4 << 20))
    assert ended.returncode == 3 and b"empty" in ended.stderr


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"[    1.000000][   T1] {WHOLE[0]}\n" * 5000)
    command = [sys.executable, "-m", "analysis.kernlog", "--json", str(log)]
    with subprocess.Popen(
        command, cwd=SUITE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout and child.stderr
        os.read(child.stdout.fileno(), 10)
        child.stdout.close()
        assert child.stderr.read() == b""
