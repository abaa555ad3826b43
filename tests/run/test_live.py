# SPDX-License-Identifier: GPL-2.0-or-later
"""What is said while a run goes on: by which clock something froze, and whose line it is."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from contract.run_record import Events
from run.live import View
from run.preparation import say
from run.screen import Screen

STREAMS = ("heartbeat", "player", "gitk-1")
MEMINFO = "elapsed_s\tlate_s\tSwapTotal\tSwapFree\n"


def begun(run_dir: Path, *, own_clock: bool, named: bool = False) -> tuple[View, Screen]:
    """A view of a run of one gitk whose workload has begun."""
    screen = Screen()
    view = View("a", screen, run_dir, STREAMS, 1000, 1, own_clock=own_clock, named=named)
    events = Events(run_dir / "events.jsonl")
    events.write("phase", name="workload")
    events.write("start", t0=1.0)
    events.close()
    with screen, view:
        view.tick()
    return view, screen


def add(path: Path, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def test_on_its_own_clock_a_slow_host_is_no_freeze(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("run.live.time.monotonic", lambda: now)
    view, _ = begun(tmp_path, own_clock=True, named=True)
    add(tmp_path / "meminfo.tsv", MEMINFO + "0.000\t0.000\t2048\t2048\n")
    for name in ("heartbeat", "player", "gitk-1"):
        add(tmp_path / f"latency-{name}.log", "0.500 0.500 line\n")
    now = 160.0  # a minute of the host's, half a second of the guest's
    view.tick()
    said = capsys.readouterr().out
    assert "froze" not in said
    assert "[  60.0 s, guest 0.5 s] a: workload, 0 s of the guest's in 60 s of the host's" in said
    add(tmp_path / "meminfo.tsv", "3.000\t0.000\t2048\t1024\n")
    add(tmp_path / "latency-player.log", "2.900 2.400 line\n")
    now = 161.0
    view.tick()
    said = capsys.readouterr().out
    assert "[  61.0 s, guest 3.0 s] a: gitk-1 froze: silent for 2.5 s" in said
    assert "[  61.0 s, guest 3.0 s] a: player was silent for 2.4 s, and goes on" in said
    add(tmp_path / "latency-gitk-1.log", "3.500 3.000 pass 1 commits 100\n")
    now = 162.0
    view.tick()
    # Its line is later than what was sampled last.
    said = capsys.readouterr().out
    assert "[  62.0 s, guest 3.5 s] a: gitk-1 was silent for 3.0 s, and goes on" in said
    table = view.table()
    assert str(table.title) == (
        "a: workload, 4 s of the guest's in 62 s of the host's, 10% of the commits, "
        "about 558 s of the host's left, 1 MiB in swap, frozen: heartbeat"
    )
    silent = dict(zip(*(list(table.columns[n].cells) for n in (0, 4)), strict=True))
    assert silent == {"heartbeat": "3.0 s", "player": "0.6 s", "gitk-1": "0.0 s"}


def test_how_long_a_run_takes_is_said_until_commits_tell(tmp_path: Path) -> None:
    screen = Screen()
    expected = "about 2 to 4 min a run"
    view = View("a", screen, tmp_path, STREAMS, 1000, 1, own_clock=True, expected=expected)
    add(tmp_path / "events.jsonl", '{"t": 1, "event": "start", "t0": 1.0}\n')
    with screen, view:
        view.tick()
        assert str(view.table().title).endswith(f" of the host's, {expected}")
        add(tmp_path / "events.jsonl", '{"t": 1, "event": "phase", "name": "workload"}\n')
        add(tmp_path / "latency-gitk-1.log", "0.500 0.500 pass 1 commits 100\n")
        view.tick()
        title = str(view.table().title)
        assert expected not in title and "10% of the commits" in title


@pytest.mark.parametrize(
    "line", ['"phase"', "[1]", "7", '{"event": "phase"}', '{"event": []}', "{"]
)
def test_a_torn_event_is_no_phase(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    view, _ = begun(tmp_path, own_clock=True)
    add(tmp_path / "events.jsonl", f"{line}\n")
    view.tick()
    add(tmp_path / "latency-gitk-1.log", "3.000 3.000 pass 1 commits 100\n")
    add(tmp_path / "meminfo.tsv", MEMINFO + "3.000\t0.000\t2048\t2048\n")
    view.tick()
    # Its phase is still the workload, of which gaps are told.
    said = capsys.readouterr().out.splitlines()
    assert ["the workload starts" in one for one in said].count(True) == 1
    assert "gitk-1 was silent for 3.0 s" in said[-1]


def test_on_the_hosts_clock_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("run.live.time.monotonic", lambda: now)
    view, _ = begun(tmp_path, own_clock=False)
    add(tmp_path / "latency-gitk-1.log", "0.500 0.500 line\n")
    view.tick()
    now = 103.0
    view.tick()
    said = capsys.readouterr().out
    assert "[   3.0 s] gitk-1 froze: silent for 3.0 s" in said and "guest" not in said
    silent = dict(zip(*(list(view.table().columns[n].cells) for n in (0, 4)), strict=True))
    assert silent["gitk-1"] == "3.0 s" and "guest" not in str(view.table().title)


def test_a_run_that_will_not_be_done_says_so_as_soon_as_that_can_be_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = Screen()
    view = View("a", screen, tmp_path, STREAMS, 1000, 1, limit_s=200.0, own_clock=True)
    events = Events(tmp_path / "events.jsonl")
    events.write("phase", name="workload")
    events.write("start", t0=1.0)
    events.close()
    warning = "will not be done in time"
    with screen, view:
        view.tick()
        assert view.so_far() == ""
        add(tmp_path / "meminfo.tsv", MEMINFO + "20.000\t0.000\t2048\t2048\n")
        add(tmp_path / "latency-gitk-1.log", "20.000 20.000 pass 1 commits 50\n")
        view.tick()  # 380 s more, but too early to tell
        assert warning not in capsys.readouterr().out
        add(tmp_path / "latency-gitk-1.log", "40.000 20.000 pass 1 commits 500\n")
        view.tick()  # 40 s more
        assert warning not in capsys.readouterr().out and view.table().title
        add(tmp_path / "latency-gitk-1.log", "150.000 110.000 pass 1 commits 600\n")
        view.tick()
        said = capsys.readouterr().out
        assert (
            "will not be done in time: about 2 min of the guest's left, and its limit in 50 s; "
            "raise --timeout S\n"
        ) in said
        late = "; about 2 min of the guest's left, and its limit in 50 s"
        assert late in str(view.table().title)
        view.tick()
        assert warning not in capsys.readouterr().out  # once
        add(tmp_path / "latency-gitk-1.log", "151.000 1.000 pass 1 commits 900\n")
        view.tick()  # 17 s more: it will be done after all
        assert late not in str(view.table().title)
    assert view.so_far() == (
        "90% of the commits were read; the rest takes 13 s at the pace of the last 50 s"
    )


def test_a_run_that_froze_late_is_not_judged_by_its_first_seconds(tmp_path: Path) -> None:
    view, screen = begun(tmp_path, own_clock=True)
    with screen, view:
        add(tmp_path / "latency-gitk-1.log", "1.000 1.000 pass 1 commits 10\n")
        add(tmp_path / "latency-gitk-1.log", "42.000 41.000 pass 1 commits 880\n")
        add(tmp_path / "meminfo.tsv", MEMINFO + "75.000\t0.000\t2048\t0\n")
        view.tick()
    assert view.so_far() == "88% of the commits were read, none in the last 33 s"


def test_no_escape_sequence_of_a_guests_reaches_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A phase's name, a kernel's last words: text that a guest wrote, and no markup either."""
    shown = io.StringIO()
    console = Console(highlight=False, force_terminal=True, file=shown, width=200)
    monkeypatch.setattr("run.screen.Console", lambda **_: console)
    screen = Screen()
    view = View("a", screen, tmp_path, STREAMS, 1000, 1)
    evil = "[/b]\x1b]0;evil\x07\x9b2J\u202e"
    events = Events(tmp_path / "events.jsonl")
    events.write("start", t0=1.0)
    events.write("phase", name=evil)
    events.close()
    with screen, view:
        assert screen.live
        view.tick()
        screen.say(f"panicked: {evil}")
        console.print(view.table())
    say(f"lost: {evil}")
    harmless = "[/b]?]0;evil??2J?"
    for said in ("] ", "panicked: ", "a: "):
        assert said + harmless in shown.getvalue()
    assert capsys.readouterr().out == f"lost: {harmless}\n"
    for sequence in ("\x1b]", "\x07", "\x9b", "\u202e"):
        assert sequence not in shown.getvalue()
