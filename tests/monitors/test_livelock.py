# SPDX-License-Identifier: GPL-2.0-or-later
"""When a run is a live-lock, and when it is not."""

import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.launch import EvidenceProcess, Observer
from tests.support.evidence_parts import LiveLock, Parts

PAGES = 131_072  # 512 MiB
AFTER = 180.0

Samples = list[tuple[float, int, int, int, int]]


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with LiveLock() as found:
        yield found


def fed(parts: Parts, samples: Samples, pages: int = PAGES, after: float = AFTER) -> list[str]:
    """What is said at each of them, by a new one."""
    _, *said = parts.all([("livelock", after, pages), *(("feed", *one) for one in samples)])
    return said


def fired(parts: Parts, samples: Samples, after: float = AFTER) -> tuple[float, str] | None:
    """(when, why) of the first that says so."""
    for sample, why in zip(samples, fed(parts, samples, after=after), strict=True):
        if why:
            return sample[0], why
    return None


def run(
    lines: float = 0.0,
    scan: float = 0.0,
    taken: float = 0.0,
    records: float = 0.0,
    seconds: int = 600,
) -> Samples:
    """Samples of a machine at so much a second of each."""
    rates = (lines, scan, taken, records)
    return [(100.0 + n, *(int(rate * n) for rate in rates)) for n in range(seconds)]  # type: ignore[misc]


def test_no_progress_while_reclaim_runs_flat_out(parts: Parts) -> None:
    found = fired(parts, run(scan=40_000, taken=300))
    assert found is not None and found[0] == 100 + AFTER
    assert found[1] == (
        "live-lock: 0 lines of what should end in 180 s, while the kernel scanned 40000 pages a "
        "second, took 300 of them, and its log got 0 warnings"
    )


def test_no_progress_while_warnings_pour_in(parts: Parts) -> None:
    assert fired(parts, run(records=30))
    assert fired(parts, run(lines=1 / 70, scan=40_000))  # nearly nothing


def test_a_quarter_of_memory_is_much_whatever_its_size(parts: Parts) -> None:
    for pages_there, scan in ((PAGES, 40_000), (PAGES // 4, 10_000), (PAGES * 64, 50_000)):
        assert any(fed(parts, run(scan=scan), pages_there))
        assert not any(fed(parts, run(scan=0.7 * scan), pages_there))


def test_four_gitks_that_wait_for_a_slow_disk_are_none(parts: Parts) -> None:
    # 50 reads a second, swap readahead of 8 pages, and as many pages taken for them: by reclaim
    # that passes over much, even flat out.
    for scan in (2_000, 4_000, 45_000):
        swapped_in = max(400.0, 0.12 * scan)
        assert fired(parts, run(scan=scan, taken=swapped_in, records=0.5)) is None


def test_what_is_none(parts: Parts) -> None:
    assert fired(parts, run()) is None  # a frozen disk: nothing moves, nobody works
    assert fired(parts, run(scan=300, records=0.2)) is None
    assert fired(parts, run(lines=0.1, scan=50_000)) is None  # slow, but it goes on
    assert fired(parts, run(scan=40_000, seconds=170)) is None


def test_a_stall_of_most_of_the_time_that_ends_is_none(parts: Parts) -> None:
    samples = [
        (at, lines + (50 * (at // 150) if at else 0), *rest)
        for at, lines, *rest in run(scan=40_000)
    ]
    assert fired(parts, [(float(at), int(lines), *rest) for at, lines, *rest in samples]) is None  # type: ignore[misc]


def test_a_machine_that_was_stopped_begins_anew(parts: Parts) -> None:
    stopped = [(at + (4000 if at >= 200 else 0), *rest) for at, *rest in run(scan=40_000)]
    found = fired(parts, stopped)  # type: ignore[arg-type]
    assert found is not None and found[0] >= 4200 + AFTER


def test_idle_half_of_the_time_is_none_and_a_tenth_is_one(parts: Parts) -> None:
    def bursts(idle: int) -> Samples:
        total, found = 0, []
        for n in range(600):
            total += 0 if n % 10 < idle else 40_000
            found.append((100.0 + n, 0, total, 0, 0))
        return found

    assert fired(parts, bursts(5)) is None
    assert fired(parts, bursts(1)) is not None


@pytest.mark.parametrize("after", [1.0, 200.0, 921.0, 922.0, 3600.0, 100_000.0])
def test_a_window_of_any_length_has_its_room_at_once(parts: Parts, after: float) -> None:
    (room,) = parts.numbers("livelock", after, PAGES)
    assert 4 <= room <= 1024
    # It moves at 50 s: from there on it takes so long, and up to two samples more.
    step = 1.0 if after < 10_000 else 9.0
    samples = [
        (100.0 + n * step, int(n * step >= 50) * 10**6, int(40_000 * n * step), 0, 0)
        for n in range(2 + int((50 + after * 1.02) / step))
    ]
    found = fired(parts, samples, after)
    if after < 50:
        assert found and found[0] == 100 + after
        return
    assert found
    assert 149 + after <= found[0] <= 151 + after + 2 * (after / (room - 4) + step)
    # One that works half of the time is none.
    half = [(at, 0, sum_of // 80_000 * 40_000, 0, 0) for at, _, sum_of, _, _ in samples]
    assert fired(parts, half, after) is None


def test_samples_that_come_too_fast_find_room(parts: Parts) -> None:
    samples = [(100.0 + n / 100, 0, 400 * n, 0, 0) for n in range(20_000)]
    found = fired(parts, samples)
    assert found and AFTER <= found[0] - 100 <= AFTER + 1


@given(st.lists(st.tuples(st.floats(0, 30), *[st.integers(0, 10**6)] * 4), max_size=400))
def test_nothing_fed_raises_and_none_fires_early(
    parts: Parts, steps: list[tuple[float, int, int, int, int]]
) -> None:
    now, sums, samples = 0.0, [0, 0, 0, 0], []
    for spent, *more in steps:
        now += spent
        sums = [a + b for a, b in zip(sums, more, strict=True)]
        samples.append((now, *sums))
    for (at, *_), why in zip(samples, fed(parts, samples), strict=True):  # type: ignore[arg-type]
        assert not (why and at < AFTER)


def test_pages_scanned_are_those_of_this_kernel(parts: Parts) -> None:
    def pages(vmstat: bytes) -> list[int]:
        return parts.numbers("pages", vmstat)

    scanned, taken = pages(Path("/proc/vmstat").read_bytes())
    assert scanned >= taken >= 0
    text = b"pgscan_kswapd 5\npgscan_direct 7\npgscan_direct_throttle 100\npgscan_anon 12\n"
    assert pages(text) == [12, 0]
    text = (
        b"pgscan_kswapd_dma 1\npgscan_kswapd_normal 2\npgscan_direct_normal 4\npgsteal_direct 9\n"
    )
    assert pages(text) == [7, 9]
    assert pages(b"") == [0, 0]


def observer(program: str, kind: type[Observer] = Observer) -> Observer:
    """A process that speaks as an observer does."""
    made = kind.__new__(kind)
    Observer.__init__(made, Path(sys.executable), "-c", [f"import sys\n{program}"])
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
    reader, log = os.pipe2(os.O_DIRECT)  # a record a read, as /dev/kmsg gives them
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 1 << 20)
    with LiveLock((reader,)) as parts:
        parts("watch", 1.0, f"/proc/self/fd/{reader}")
        assert [parts("watched", at) for at in (10.0, 10.5, 11.0, 12.0)] == [""] * 4

        def look(at: float, level: int) -> str:
            for number in range(10):
                os.write(log, b"%d,%d,1,-;it goes wrong\n" % (level, number))
            return parts("watched", at)

        assert [look(12.0 + n, 6) for n in range(1, 5)] == [""] * 4  # infos are no warnings
        for n in range(1, 5):
            parts("said", 1, n)
            assert look(16.0 + n, 4) == ""  # it goes on
        said = []
        for n in range(1, 5):
            parts("said", 0, n)  # a heartbeat is no progress
            said.append(look(20.0 + n, 8 | 4))  # level 4 of facility 1
        assert "live-lock: 0 lines" in "".join(said)
        assert look(25.0, 4) == ""  # said once
    os.close(reader)
    os.close(log)


def test_a_watch_without_a_log(tmp_path: Path) -> None:
    with LiveLock() as parts:
        parts("watch", 1.0, tmp_path / "none")
        assert [parts("watched", at) for at in (10.0, 11.0, 12.0)] == [""] * 3
