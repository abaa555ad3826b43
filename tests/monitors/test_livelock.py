# SPDX-License-Identifier: GPL-2.0-or-later
"""When a run is a live-lock, and when it is not."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from monitors.beacon import Beacon
from monitors.evidence.livelock import LiveLock, Watch, pages
from monitors.launch import EvidenceProcess, Observer

PAGES = 131_072  # 512 MiB
AFTER = 180.0


def fired(
    seconds: Iterator[tuple[float, int, int, int, int]] | list[tuple[float, int, int, int, int]],
) -> tuple[float, str] | None:
    """(when, why) of the first that says so."""
    watch = LiveLock(AFTER, PAGES)
    for sample in seconds:
        if why := watch.feed(*sample):
            return sample[0], why
    return None


def run(
    lines: float = 0.0,
    scan: float = 0.0,
    taken: float = 0.0,
    records: float = 0.0,
    seconds: int = 600,
) -> list[tuple[float, int, int, int, int]]:
    """Samples of a machine at so much a second of each."""
    rates = (lines, scan, taken, records)
    return [(100.0 + n, *(int(rate * n) for rate in rates)) for n in range(seconds)]  # type: ignore[misc]


def test_no_progress_while_reclaim_runs_flat_out() -> None:
    found = fired(run(scan=40_000, taken=300))
    assert found is not None and found[0] == 100 + AFTER
    assert found[1] == (
        "live-lock: 0 lines of all gitk's in 180 s, while the kernel scanned 40000 pages a second, "
        "took 300 of them, and its log got 0 warnings"
    )


def test_no_progress_while_warnings_pour_in() -> None:
    assert fired(run(records=30))
    assert fired(run(lines=1 / 70, scan=40_000))  # nearly nothing


def test_a_quarter_of_memory_is_much_whatever_its_size() -> None:
    for pages_there, scan in ((PAGES, 40_000), (PAGES // 4, 10_000), (PAGES * 64, 50_000)):
        watch = LiveLock(AFTER, pages_there)
        assert any([watch.feed(*sample) for sample in run(scan=scan)])
        watch = LiveLock(AFTER, pages_there)
        assert not any([watch.feed(*sample) for sample in run(scan=0.7 * scan)])


def test_four_gitks_that_wait_for_a_slow_disk_are_none() -> None:
    # 50 reads a second, swap readahead of 8 pages, and as many pages taken for them: by reclaim
    # that passes over much, even flat out.
    for scan in (2_000, 4_000, 45_000):
        swapped_in = max(400.0, 0.12 * scan)
        assert fired(run(scan=scan, taken=swapped_in, records=0.5)) is None


def test_what_is_none() -> None:
    assert fired(run()) is None  # a frozen disk: nothing moves, nobody works
    assert fired(run(scan=300, records=0.2)) is None
    assert fired(run(lines=0.1, scan=50_000)) is None  # slow, but it goes on
    assert fired(run(scan=40_000, seconds=170)) is None


def test_a_stall_of_most_of_the_time_that_ends_is_none() -> None:
    samples = [
        (at, lines + (50 * (at // 150) if at else 0), *rest)
        for at, lines, *rest in run(scan=40_000)
    ]
    assert fired([(float(at), int(lines), *rest) for at, lines, *rest in samples]) is None  # type: ignore[misc]


def test_a_machine_that_was_stopped_begins_anew() -> None:
    stopped = [(at + (4000 if at >= 200 else 0), *rest) for at, *rest in run(scan=40_000)]
    found = fired(stopped)  # type: ignore[arg-type]
    assert found is not None and found[0] >= 4200 + AFTER


def test_idle_half_of_the_time_is_none_and_a_tenth_is_one() -> None:
    def bursts(idle: int) -> list[tuple[float, int, int, int, int]]:
        total, found = 0, []
        for n in range(600):
            total += 0 if n % 10 < idle else 40_000
            found.append((100.0 + n, 0, total, 0, 0))
        return found

    assert fired(bursts(5)) is None
    assert fired(bursts(1)) is not None


@given(st.lists(st.tuples(st.floats(0, 30), *[st.integers(0, 10**6)] * 4), max_size=400))
def test_nothing_fed_raises_and_none_fires_early(
    steps: list[tuple[float, int, int, int, int]],
) -> None:
    watch, now, sums = LiveLock(AFTER, PAGES), 0.0, [0, 0, 0, 0]
    for spent, *more in steps:
        now += spent
        sums = [a + b for a, b in zip(sums, more, strict=True)]
        why = watch.feed(now, *sums)
        assert not (why and now < AFTER)


def test_pages_scanned_are_those_of_this_kernel() -> None:
    vmstat = Path("/proc/vmstat").read_bytes()
    assert pages(vmstat, b"pgscan") >= pages(vmstat, b"pgsteal") >= 0
    text = b"pgscan_kswapd 5\npgscan_direct 7\npgscan_direct_throttle 100\npgscan_anon 12\n"
    assert pages(text, b"pgscan") == 12 and pages(text, b"pgsteal") == 0
    text = (
        b"pgscan_kswapd_dma 1\npgscan_kswapd_normal 2\npgscan_direct_normal 4\npgsteal_direct 9\n"
    )
    assert pages(text, b"pgscan") == 7 and pages(text, b"pgsteal") == 9


def observer(program: str, kind: type[Observer] = Observer) -> Observer:
    """A process that speaks as an observer does."""
    made = kind.__new__(kind)
    Observer.__init__(made, f"import sys\n{program}", [])
    return made


SAYS = 'print(\'{"live_lock": "nothing moves"}\', flush=True)\n'
ENDS = "sys.stdin.read()\nprint('{\"observer\": {}}', flush=True)\n"


def test_the_runner_hears_of_it_and_still_gets_the_facts() -> None:
    evidence, recorder = observer(SAYS + ENDS, EvidenceProcess), observer(ENDS)
    assert isinstance(evidence, EvidenceProcess)
    assert evidence.live_lock(recorder) == "nothing moves"  # type: ignore[arg-type]
    assert evidence.stop() == {"observer": {}}
    assert recorder.finish(10.0) == {"observer": {}}


def test_a_recorder_that_ends_first_and_evidence_that_dies_are_no_live_lock() -> None:
    late, done = observer(f"sys.stdin.readline()\n{SAYS}{ENDS}", EvidenceProcess), observer(SAYS)
    assert isinstance(late, EvidenceProcess)
    assert late.live_lock(done) == ""  # type: ignore[arg-type]
    late.tell(b"now\n")
    assert late.stop() == {"observer": {}}  # what it said too late is no facts
    dead, going = observer("pass", EvidenceProcess), observer(ENDS)
    assert isinstance(dead, EvidenceProcess)
    assert dead.live_lock(going) == ""  # type: ignore[arg-type]
    assert dead.stop() is None
    for one in (done, going):
        one.finish(10.0)


def test_the_watch_of_this_machine() -> None:
    beacon = Beacon(["heartbeat", "gitk-1"])
    reader, log = os.pipe2(os.O_DIRECT)  # a record a read, as /dev/kmsg gives them
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 1 << 20)
    watch = Watch(beacon, 1.0, f"/proc/self/fd/{reader}")
    watch.rehearse()
    assert [watch.look(at) for at in (10.0, 10.5, 11.0, 12.0)] == [""] * 4

    def look(at: float, level: int) -> str:
        for number in range(10):
            os.write(log, b"%d,%d,1,-;it goes wrong\n" % (level, number))
        return watch.look(at)

    assert [look(12.0 + n, 6) for n in range(1, 5)] == [""] * 4  # infos are no warnings
    said = [look(16.0 + n, 8 | 4) for n in range(1, 5)]  # level 4 of facility 1
    assert "live-lock: 0 lines" in "".join(said)
    assert look(21.0, 4) == ""  # said once
    beacon.close()
    os.close(reader)
    os.close(log)
