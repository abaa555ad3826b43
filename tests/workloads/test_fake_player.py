# SPDX-License-Identifier: GPL-2.0-or-later
"""The player's clock and its skips, rsync for real, the heartbeat, each with a known answer."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fake_player.heartbeat import size_of
from fake_player.pace import late_by
from fake_player.player import Music, Skips
from tests.support.kernel_logs import wait_for

pytestmark = pytest.mark.clock

ROOT = Path(__file__).resolve().parents[2]
needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


def start(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-S", "-m", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end_after(process: "subprocess.Popen[str]", seconds: float) -> tuple[list[str], list[str]]:
    """SIGTERM after some seconds; what it said on stdout and stderr."""
    time.sleep(seconds)
    process.terminate()
    # communicate() would lose the lines that readline() has read ahead.
    assert process.stdout and process.stderr
    out, err = process.stdout.read(), process.stderr.read()
    assert process.wait(20) == 0, err
    return out.splitlines(), err.splitlines()


def lateness(lines: list[str], word: str) -> list[float]:
    """Of the lines `WORD K late S`, which must count from 0 and leave nothing out."""
    found = [re.fullmatch(rf"{word} (\d+) late (\d+\.\d{{3}})", line) for line in lines]
    rows = [(int(match[1]), float(match[2])) for match in found if match]
    assert [number for number, _ in rows] == list(range(len(rows)))
    return [late for _, late in rows]


def in_group(group: int) -> list[str]:
    done = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True)
    rows = [line.split(None, 2) for line in done.stdout.splitlines()]
    return [row[2] for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


def test_skips() -> None:
    skips = Skips()
    for late in (0.0, 0.2, 2.0, 1.9, 0.3, 0.1, 0.0, 0.25, 0.4, 0.0):
        skips.chunk(late)
    assert (skips.count, round(skips.length, 3)) == (2, 2.4)
    skips.chunk(5.0)
    skips.end()
    assert (skips.count, round(skips.length, 3)) == (3, 7.4)


def test_milliseconds_are_cut() -> None:
    assert late_by(time.monotonic() + 5) == 0
    late = late_by(time.monotonic() - 61.2)
    assert 61.2 <= late < 63 and round(late * 1000) / 1000 == late


def test_music_grows_in_the_order_of_names_and_begins_again(tmp_path: Path) -> None:
    done = False
    music = Music(tmp_path, lambda: done)
    assert music.read(10) == 0 and music.arrived() == 0
    (tmp_path / "a").write_bytes(b"1" * 15)
    assert [music.read(10), music.read(10), music.read(10)] == [10, 5, 0]
    with open(tmp_path / "a", "ab") as file:
        file.write(b"2" * 7)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"3" * 4)
    (tmp_path / ".hidden").write_bytes(b"4" * 9)
    assert music.arrived() == 26
    assert [music.read(10), music.read(10), music.read(10)] == [7, 4, 0]
    done = True
    assert [music.read(30), music.read(30), music.read(30)] == [22, 4, 22]


FEEDER = """\
import sys, time
with open(sys.argv[1], "ab", buffering=0) as song:
    song.write(b"x" * 2000)
    print("there", flush=True)
    sys.stdin.readline()
    time.sleep(3.5)
    song.write(b"x" * 3000)
    print(time.monotonic(), flush=True)
    time.sleep(60)
"""


def test_late_arrival_is_one_skip_of_known_length(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-c", FEEDER, str(tmp_path / "song")]
    pipe = subprocess.PIPE
    feeder = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert feeder.stdin and feeder.stdout
    assert feeder.stdout.readline() == "there\n"
    arguments = ["--music", str(tmp_path), "--rate", "1000", "--feeder", str(feeder.pid)]
    earliest = time.monotonic()
    player = start("fake_player.player", *arguments)
    assert player.stdout
    first = player.stdout.readline()
    latest = time.monotonic()
    feeder.stdin.write("go\n")
    feeder.stdin.flush()
    arrived = float(feeder.stdout.readline())
    rest = [player.stdout.readline() for _ in range(22)]
    lines, _ = end_after(player, 0)
    feeder.kill()
    feeder.wait()
    # Two seconds of audio, the rest after 3.5 s and more: silence from chunk 20 on.
    late = lateness([line.rstrip() for line in (first, *rest)] + lines, "chunk")
    assert late[20] == max(late) and late[20] >= round(arrived - latest - 2, 3) - 0.001
    assert late[21] <= late[20] < time.monotonic() - earliest - 2
    match = re.fullmatch(r"skips (\d+) length ([\d.]+)", lines[-1])
    assert match and int(match[1]) >= 1 and float(match[2]) >= late[20] - 0.001


def test_whole_music_begins_again_without_a_skip(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 700)
    player = start("fake_player.player", "--music", str(tmp_path), "--rate", "1000")
    assert player.stdout
    chunks = [player.stdout.readline().rstrip() for _ in range(15)]
    lines, _ = end_after(player, 0)
    assert len(lateness(chunks + lines, "chunk")) >= 15
    assert re.fullmatch(r"skips \d+ length [\d.]+", lines[-1])


def test_player_mistakes(tmp_path: Path) -> None:
    for arguments in (
        ["fake_player.player", "--music", str(tmp_path / "no")],
        ["fake_player.player", "--music", str(tmp_path), "--rate", "1"],
        ["fake_player", "--music-from", str(tmp_path / "no"), "--to", str(tmp_path)],
    ):
        process = start(*arguments)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 2 and "Traceback" not in err


@needs_rsync
def test_rsync_fills_the_folder_while_it_plays(tmp_path: Path) -> None:
    source = tmp_path / "from here"
    source.mkdir()
    songs = {name: os.urandom(60_000) for name in ("1.ogg", "2.ogg")}
    for name, data in songs.items():
        (source / name).write_bytes(data)
    to = tmp_path / "music"
    arguments = ["--music-from", str(source), "--to", str(to), "--bwlimit", "60"]
    player = start("fake_player", *arguments, "--rate", "20000")
    wait_for(lambda: to.exists() and {path.name for path in to.iterdir()} == set(songs))
    wait_for(lambda: not any("rsync" in line for line in in_group(player.pid)))
    lines, err = end_after(player, 1)
    assert err == []
    assert {path.name: path.read_bytes() for path in to.iterdir()} == songs
    assert len(lateness(lines, "chunk")) > 5 and lines[-1].startswith("skips ")
    assert in_group(player.pid) == []


@needs_rsync
def test_sigterm_ends_rsync_too(tmp_path: Path) -> None:
    source = tmp_path / "from"
    source.mkdir()
    (source / "song").write_bytes(os.urandom(3_000_000))
    to = str(tmp_path / "to")
    player = start("fake_player", "--music-from", str(source), "--to", to, "--bwlimit", "20")
    wait_for(lambda: any("rsync" in line for line in in_group(player.pid)))
    end_after(player, 0)
    wait_for(lambda: in_group(player.pid) == [])


@needs_rsync
def test_failing_rsync_is_said_and_tried_again(tmp_path: Path) -> None:
    player = start("fake_player", "--music-from", "rsync://127.0.0.1:1/x", "--to", str(tmp_path))
    assert player.stderr
    said = [player.stderr.readline() for _ in range(2)]
    lines, err = end_after(player, 0)
    assert all(re.match(r"rsync ended with status 10, again", e) for e in said + err)
    assert lines == ["skips 0 length 0.000"]


@needs_rsync
def test_feed_becomes_rsync(tmp_path: Path) -> None:
    source = tmp_path / "from"
    source.mkdir()
    (source / "song").write_bytes(os.urandom(50_000))
    to = tmp_path / "to"
    feed = start("fake_player.feed", "--from", str(source), "--to", str(to), "--bwlimit", "0")
    assert feed.communicate(timeout=20) == ("", "") and feed.returncode == 0
    assert (to / "song").read_bytes() == (source / "song").read_bytes()


def test_heartbeat_leaves_no_missed_beat_out() -> None:
    heart = start("fake_player.heartbeat", "--working-set", "1M")
    assert heart.stdout
    first = heart.stdout.readline().rstrip()
    before = time.monotonic()
    os.kill(heart.pid, signal.SIGSTOP)
    time.sleep(1.2)
    os.kill(heart.pid, signal.SIGCONT)
    stopped = time.monotonic() - before
    rest = [heart.stdout.readline().rstrip() for _ in range(20)]
    lines, _ = end_after(heart, 0)
    late = lateness([first, *rest, *lines], "beat")
    assert stopped - 0.3 < max(late) < stopped + 0.3
    at = late.index(max(late))
    # Made up for at once, each a tenth of a second less late than the one before.
    assert late[at + 5] == pytest.approx(late[at] - 0.5, abs=0.1)
    assert lines[-1] == f"missed {sum(s > 0.1 for s in late)}"
    assert sum(s > 0.1 for s in late) >= 8


def begins_at_a_line(process: "subprocess.Popen[str]", word: str) -> None:
    """It says `ready`, then nothing until a line comes; its clock begins only then."""
    assert process.stdin and process.stdout
    assert process.stdout.readline() == "ready\n"
    assert select.select([process.stdout], [], [], 1.5)[0] == []
    process.stdin.write("go\n")
    process.stdin.flush()
    first = process.stdout.readline().rstrip()
    lines, err = end_after(process, 0)
    assert err == []
    late = lateness([first, *lines], word)
    # What came before the line is not made up for: 1.5 s would be 15 late ones.
    assert late and late[0] < 1


def test_heartbeat_that_waits() -> None:
    begins_at_a_line(start("fake_player.heartbeat", "--working-set", "1M", "--wait"), "beat")


@needs_rsync
def test_player_that_waits_has_a_full_buffer_first(tmp_path: Path) -> None:
    source, to = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    (source / "song").write_bytes(os.urandom(100_000))
    arguments = ["--music-from", str(source), "--to", str(to), "--bwlimit", "0"]
    player = start("fake_player", *arguments, "--rate", "20000", "--wait")
    begins_at_a_line(player, "chunk")
    assert (to / "song").stat().st_size >= 20_000 and in_group(player.pid) == []


def test_sizes() -> None:
    assert size_of("8M") == 8 << 20 and size_of("100K") == 100 << 10
    for wrong in ("8m", "", "0", "4K", "-1M"):
        with pytest.raises(Exception, match="not a size"):
            size_of(wrong)
