# SPDX-License-Identifier: GPL-2.0-or-later
"""Two figures of a remedy: what its runs say was killed, when it is idle, what it trades."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from analysis.figures.lost_programs import LostProgram, lost_programs
from analysis.figures.metrics import failed, unfinished
from analysis.reading.load import load_campaign
from analysis.text import compare_text, summary_files
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import table
from tests.support.verdicts import cut_at_the_limit, stalling_run

KILLED, DONE = -15, 0
LOG = ['sending SIGTERM to process 812 uid 0 "python3": badness 812, VmRSS 61 MiB']
OOMD = [
    "Considered 10 cgroups for killing, top candidates were:",
    "Killed /desktop-freeze-slice/eater.scope due to memory used (185556992) / total (196116480)",
]
SETTINGS = ["mem total: 196 MiB", "sending SIGTERM when mem <= 10.00% and swap <= 10.00%,"]


def run(
    folder: Path,
    stalled: float,
    ends: Mapping[str, tuple[float, int]],
    *,
    outcome: str = "done",
    state: str = "completed",
    log: Sequence[str] = (),
    oom_kills: int = 0,
    early: Sequence[str] = (),
) -> None:
    """A run of one gitk; ends: stream -> (elapsed, status)."""
    end = max(at for at, _ in ends.values())
    remedy = {"name": "earlyoom", "daemon": "earlyoom -r 3600", "log": list(log)}
    stalling_run(folder, stalled, remedy=remedy)
    events = [
        {"t": 1.0 + at, "event": "stream-end", "stream": name, "elapsed": at, "status": status}
        for name, (at, status) in ends.items()
    ]
    events.append({"t": 99.0, "event": "observer", "name": "recorder", "outcome": outcome})
    events[-1] |= {"elapsed": end, "early": dict.fromkeys(early, "its last line")}
    (folder / "events.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in events))
    (folder / "status.json").write_text(
        json.dumps({"format": 1, "state": state, "why": "x", "elapsed_s": end})
    )
    (folder / "vmstat.tsv").write_text(
        table({"elapsed_s": [0.0, end], "late_s": [0, 0], "oom_kill": [3, 3 + oom_kills]})
    )


def campaign(folder: Path, treated: str, remedy: str = "earlyoom") -> Compared:
    plan = "\n".join(
        f'[[variant]]\nlabel = "{label}"\nkernel = "debian:6.12"\nremedy = "{name}"'
        for label, name in (("plain", ""), (treated, remedy))
    )
    (folder / "plan.toml").write_text(f'baseline = "plain"\n{plan}\n')
    return compare(load_campaign(folder))


def untreated(folder: Path, runs: int = 6) -> None:
    for n in range(1, runs + 1):
        run(folder / "plain" / str(n), 40.0 + n, {"gitk-1": (45.0 + n, DONE)})


def test_who_is_killed_by_a_daemon_and_who_by_the_end_of_the_run(tmp_path: Path) -> None:
    ends = {"gitk-1": (30.0, KILLED), "heartbeat": (45.0, KILLED), "player": (45.0, KILLED)}
    run(tmp_path / "v" / "1", 20.0, ends, outcome="deadline", state="unfinished")
    (one,) = load_campaign(tmp_path).runs
    # The stall of 20 s is from 5 s on; those that end with the run were ended by the recorder.
    assert lost_programs(one) == [LostProgram("gitk-1", 30.0, 20.0)]
    run(tmp_path / "v" / "1", 20.0, {"gitk-1": (15.0, KILLED), "player": (15.0, KILLED)})
    (one,) = load_campaign(tmp_path).runs
    # The last gitk's end is the run's; half of the stall was over by then.
    assert lost_programs(one) == [LostProgram("gitk-1", 15.0, 10.0)]


def test_fewer_seconds_for_programs_is_a_trade(tmp_path: Path) -> None:
    untreated(tmp_path)
    for n in range(1, 7):
        ends = {"gitk-1": (9.0, KILLED), "heartbeat": (9.0, KILLED)}
        run(tmp_path / "treated" / str(n), 1.0 + n / 10, ends, state="oom", log=LOG)
    compared = campaign(tmp_path, "treated")
    one = compared.primary["treated"]
    assert (one.verdict, one.lost, one.base_lost) == ("trades", 1, 0)
    assert not any(failed(each) for each in compared.campaign.runs)
    said = compared.sentences["treated"]
    assert said.startswith("treated trades 1 program a run for 42.1 s of plain's")
    text = compare_text.text(compared)
    assert "treated, run 1: gitk-1 after 9.0 s (frozen for" in text and "killed" in text
    (_, told) = json.loads(export.json_text(compared))["variants"]
    assert told["verdict"] == "trades" and told["programs_lost"] == {"mean": 1, "base_mean": 0}
    assert " trades " in summary_files.summary(compared.campaign, compared)


def test_a_trade_for_a_freeze_whose_end_was_not_awaited(tmp_path: Path) -> None:
    untreated(tmp_path)
    cut_at_the_limit(tmp_path / "plain")
    for n in range(1, 7):
        ends = {"gitk-1": (9.0, KILLED), "heartbeat": (9.0, KILLED)}
        run(tmp_path / "treated" / str(n), 1.0 + n / 10, ends, state="oom", log=LOG)
    sentence = campaign(tmp_path, "treated").sentences["treated"]
    assert sentence.startswith("treated trades 1 program a run for at least 42.1 s of plain's")


def test_a_lost_run_is_no_run_without_kills(tmp_path: Path) -> None:
    untreated(tmp_path)
    for n in range(1, 7):
        ends = {"gitk-1": (9.0, KILLED), "heartbeat": (9.0, KILLED)}
        run(tmp_path / "treated" / str(n), 1.0 + n / 10, ends, state="oom", log=LOG)
    gone = tmp_path / "treated" / "7"
    run(gone, 1.0, {"gitk-1": (9.0, KILLED)}, state="lost", log=LOG)
    (gone / "events.jsonl").write_text("")  # the recorder was killed, too
    assert campaign(tmp_path, "treated").primary["treated"].lost == 1


def test_the_player_killed_is_a_failed_run(tmp_path: Path) -> None:
    untreated(tmp_path)
    for n in range(1, 7):
        # Asked to end by SIGTERM it ends with status 0, and should not have ended.
        ends = {"gitk-1": (30.0, DONE), "player": (9.0, 0)}
        run(tmp_path / "treated" / str(n), 1.0, ends, state="oom", log=LOG, early=["player"])
    compared = campaign(tmp_path, "treated")
    assert compared.primary["treated"].verdict == "regressed"
    assert all(failed(each) for each in compared.campaign.variants()["treated"])


@pytest.mark.parametrize(
    ("log", "oom_kills", "verdict"),
    [
        *((SETTINGS, 0, "idle"), ((), 0, "idle"), (OOMD[:1], 0, "idle")),
        *((LOG, 0, "equivalent"), (OOMD, 0, "equivalent"), ((), 1, "equivalent")),
    ],
)
def test_what_never_acted_is_idle(
    tmp_path: Path, log: Sequence[str], oom_kills: int, verdict: str
) -> None:
    untreated(tmp_path, 7)
    for n in range(1, 8):
        ends = {"gitk-1": (45.0 + n, DONE)}
        run(tmp_path / "treated" / str(n), 40.0 + n, ends, log=log, oom_kills=oom_kills)
    compared = campaign(tmp_path, "treated")
    assert compared.primary["treated"].verdict == verdict


def test_an_oom_kill_is_a_failed_run_where_no_remedy_is_tried(tmp_path: Path) -> None:
    run(tmp_path / "v" / "1", 20.0, {"gitk-1": (30.0, KILLED)}, state="oom", oom_kills=1)
    (one,) = load_campaign(tmp_path).runs
    assert failed(one) and not one.treated


def test_a_limit_makes_seconds_at_least_so_many(tmp_path: Path) -> None:
    untreated(tmp_path, 1)
    ends = {"gitk-1": (9.0, KILLED), "heartbeat": (40.0, KILLED)}
    run(tmp_path / "treated" / "1", 1.0, ends, state="oom", outcome="deadline", oom_kills=1)
    compared = campaign(tmp_path, "treated")
    assert [unfinished(each) for each in compared.campaign.variants()["treated"]] == [True]


def test_the_versions_of_daemons_are_named_in_each_text(tmp_path: Path) -> None:
    untreated(tmp_path, 2)
    for n in (1, 2):
        run(tmp_path / "treated" / str(n), 40.0, {"gitk-1": (45.0, DONE)}, log=LOG)
        path = tmp_path / "treated" / str(n) / "meta.json"
        meta = json.loads(path.read_text())
        meta["packages"] = {"earlyoom": "1.7-1", "nohang": "0.2.0-1"}
        path.write_text(json.dumps(meta))
    compared = campaign(tmp_path, "treated")
    for text in (
        compare_text.text(compared),
        summary_files.summary(compared.campaign, compared),
    ):
        assert "\nDaemons: earlyoom 1.7-1: treated.\n" in text and "nohang" not in text
    for strange in (["earlyoom"], {"earlyoom": None}, {"earlyoom": ["1.7"]}, "earlyoom"):
        meta["packages"] = strange
        path.write_text(json.dumps(meta))
        assert "\nDaemons: earlyoom 1.7-1: treated" in compare_text.text(
            campaign(tmp_path, "treated")
        )
    for n in range(3, 60):
        run(tmp_path / "treated" / str(n), 40.0, {"gitk-1": (45.0, DONE)}, log=LOG)
        meta["packages"] = {"earlyoom": f"{n}"}
        (tmp_path / "treated" / str(n) / "meta.json").write_text(json.dumps(meta))
    text = " ".join(compare_text.text(campaign(tmp_path, "treated")).split())
    assert "Daemons: earlyoom 1.7-1: treated;" in text and "; and 52 more." in text
