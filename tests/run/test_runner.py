# SPDX-License-Identifier: GPL-2.0-or-later
"""The order of a campaign's runs and its end; what a VM would measure is played here.

tests/in_vm/test_campaign_in_vm.py does the same on real kernels.
"""

import errno
import json
import random
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchmarks.synthetic_results.make import line_log, meta, write_run
from errors import Exit, UserError
from run.arguments import parse
from run.campaign import Campaign
from run.clock import parallel_jobs
from run.jobs.local import Local
from run.main import exit_status
from run.preparation import PreparedVariant
from run.runner import Outcome, Runner
from tests.run.test_campaign import kernel
from vm import session, speed
from vm.guest import Guest, GuestJob, Timing
from vm.qemu import GUEST, HOST

Played = Callable[[str, int], tuple[str, float]]  # (label, attempt) -> state, stalled seconds


class Play:
    """A campaign whose VMs are played: which runs were asked for, in order, is in `ran`."""

    def __init__(
        self,
        folder: Path,
        argv: list[str],
        played: Played,
        monkeypatch: pytest.MonkeyPatch,
        clock: str = HOST,
    ) -> None:
        self.ran: list[str] = []
        self._begins = threading.Lock()
        self.stopped = False
        self._played = played
        self._folder = folder
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
        monkeypatch.setattr(session, "run", self._run)
        where = [] if "--resume" in argv else ["--out", str(folder)]
        options = parse([*argv, *where, "--profile", "quick"])
        campaign = Campaign(options, argv)
        found = [(one, kernel(one.kernel.removeprefix("debian:"))) for one in options.variants]
        ready: Any = {
            variant.label: PreparedVariant(
                variant,
                cast(Guest, SimpleNamespace(accel="tcg", timing=Timing(clock, ""), kernel=one)),
            )
            for variant, (_, one) in zip(campaign.enter(found), found, strict=True)
        }
        jobs = parallel_jobs(options, [clock])
        self.outcome = Runner(options, campaign, ready, Local(jobs), lambda: self.stopped).go()

    def _run(
        self, guest: Any, guest_job: GuestJob, run_dir: Path, *, facts: dict[str, Any], **_: Any
    ) -> tuple[str, str]:
        label = run_dir.parent.name
        with self._begins:
            self.ran.append(f"{label}/{run_dir.name}")
            attempt = len(self.ran)
        state, stalled = self._played(label, attempt)
        if state == "interrupted":
            self.stopped, state = True, "aborted"
        gaps = [(0.05, "pass 1 commits 100"), (stalled, "pass 1 commits 200")]
        logs = {f"latency-gitk-{n}.log": line_log(gaps, 0.01) for n in range(1, 5)}
        told = meta(**facts)
        write_run(run_dir, {**logs, "meta.json": json.dumps(told)}, state)
        return state, "as played"


TWO = ["--kernel", "debian:6.1", "--kernel", "debian:7.2"]


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        ([], None),
        (["--workload", "gitk"], 294 << 20),
        (["--screen"], 294 << 20),
        (["--workload", "gitk", "--memory", "400M"], 294 << 20),
        (["--workload", "seqio"], 256 << 20),
    ],
)
def test_the_memory_of_a_workload_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], recorded: int | None
) -> None:
    Play(tmp_path / "c", words, lambda *_: ("completed", 2.0), monkeypatch)
    (path,) = (tmp_path / "c").glob("*/1/meta.json")
    facts = json.loads(path.read_text())
    assert facts.get("memory_of_workload") == recorded
    is_own = "--memory" not in words
    assert recorded is None or (facts["parameters"]["memory"] == recorded) is is_own


def test_it_stops_at_the_first_look_at_which_all_is_decided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    play = Play(
        tmp_path / "c",
        [*TWO, "--stop-when-sure", "20"],
        lambda label, _: ("completed", rng.uniform(1, 2) * (1 if label == "6.1" else 8)),
        monkeypatch,
    )
    # Looks at 5, 7, 10, 14, 20: 5 v 5 runs without overlap give p = 0.0079 <= 0.01.
    assert play.ran == [f"{label}/{n}" for n in range(1, 6) for label in ("6.1", "7.2")]


def test_each_run_says_how_long_the_rest_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "known", lambda qemu: 347e6)
    argv = [*TWO, "--runs", "2", "--jobs", "1"]
    Play(tmp_path / "c", argv, lambda *_: ("hung", 2.0), monkeypatch, GUEST)
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("run ")]
    assert [line.rpartition(" (")[2] for line in said] == [
        "1 of 4, about 7 to 16 min left)",
        "2 of 4, about 5 to 12 min left)",
        "3 of 4, about 3 to 8 min left)",
        "4 of 4, about 2 to 4 min left)",
    ]
    Play(tmp_path / "one", TWO[:2], lambda *_: ("completed", 2.0), monkeypatch, GUEST)
    assert "/1 (about 2 to 4 min)\n" in capsys.readouterr().out


def test_it_goes_on_to_the_limit_if_it_is_never_sure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 1.3 times the stalls in each run, in an order that no exact test of 7 v 7 can decide at 0.025.
    lengths = {"6.1": [1.5, 3.0] * 4, "7.2": [1.6, 3.2] * 4}
    play = Play(
        tmp_path / "c",
        [*TWO, "--stop-when-sure", "7"],
        lambda label, attempt: ("completed", lengths[label][(attempt - 1) // 2]),
        monkeypatch,
    )
    assert len(play.ran) == 14
    assert not play.outcome.left


def test_a_hang_is_a_result_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(
        tmp_path / "c",
        [*TWO, "--runs", "2"],
        lambda label, _: ("hung" if label == "7.2" else "completed", 2.0),
        monkeypatch,
    )
    assert play.ran == ["6.1/1", "7.2/1", "6.1/2", "7.2/2"]
    assert exit_status(play.outcome, False) is Exit.KERNEL_LOST


def test_what_was_cut_short_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(
        tmp_path / "c",
        [*TWO, "--runs", "2"],
        lambda _, attempt: ("aborted" if attempt == 2 else "completed", 2.0),
        monkeypatch,
    )
    assert play.ran == ["6.1/1", "7.2/1", "7.2/1", "6.1/2", "7.2/2"]
    assert (tmp_path / "c/7.2/1.cut-1/status.json").exists()
    assert exit_status(play.outcome, False) is Exit.OK


def test_a_variant_that_is_cut_short_twice_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = Play(
        tmp_path / "c",
        [*TWO, "--runs", "2"],
        lambda label, _: ("aborted" if label == "7.2" else "completed", 2.0),
        monkeypatch,
    )
    assert play.ran == ["6.1/1", "7.2/1", "7.2/1", "6.1/2"]
    assert "7.2" in play.outcome.left
    assert exit_status(play.outcome, False) is Exit.MISSING


def test_ctrl_c_ends_it_and_resume_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    play = Play(
        folder,
        [*TWO, "--runs", "2"],
        lambda _, attempt: ("interrupted" if attempt == 3 else "completed", 2.0),
        monkeypatch,
    )
    assert play.ran == ["6.1/1", "7.2/1", "6.1/2"]
    assert "2 of 4 runs are missing" in play.outcome.left
    assert exit_status(play.outcome, True) is Exit.INTERRUPTED
    again = Play(folder, ["--resume", str(folder)], lambda *_: ("completed", 2.0), monkeypatch)
    assert again.ran == ["6.1/2", "7.2/2"]
    assert exit_status(again.outcome, False) is Exit.OK


def test_one_run_alone_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play(
        tmp_path / "c", ["--kernel", "debian:6.1"], lambda *_: ("aborted", 2.0), monkeypatch
    )
    assert play.ran == ["6.1/1"]
    assert (tmp_path / "c/6.1/1/status.json").exists()
    assert exit_status(play.outcome, False) is Exit.MISSING


def test_the_status_of_a_command() -> None:
    folder = Path()
    assert exit_status(Outcome(folder, []), False) is Exit.OK
    assert exit_status(Outcome(folder, ["completed", "oom"]), False) is Exit.OK
    assert exit_status(Outcome(folder, ["lost", "completed"]), False) is Exit.KERNEL_LOST


@pytest.mark.parametrize(
    "error",
    [
        UserError("QEMU did not start: cannot allocate memory"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_a_vm_that_does_not_start_ends_a_run_not_the_campaign(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played(label: str, attempt: int) -> tuple[str, float]:
        if attempt == 2:
            raise error
        return "completed", 2.0

    play = Play(tmp_path / "c", [*TWO, "--runs", "2"], played, monkeypatch)
    assert play.ran == ["6.1/1", "7.2/1", "7.2/1", "6.1/2", "7.2/2"]
    assert not play.outcome.left


def test_the_last_missing_run_is_tried_twice_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "c"
    Play(
        folder,
        [*TWO, "--runs", "2"],
        lambda _, attempt: ("interrupted" if attempt == 4 else "completed", 2.0),
        monkeypatch,
    )
    again = Play(
        folder,
        ["--resume", str(folder)],
        lambda _, attempt: ("aborted" if attempt == 1 else "completed", 2.0),
        monkeypatch,
    )
    assert again.ran == ["7.2/2", "7.2/2"]
    assert exit_status(again.outcome, False) is Exit.OK


def test_on_the_guests_clock_several_are_done_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3)

    def played(label: str, attempt: int) -> tuple[str, float]:
        together.wait(20)  # broken unless three are under way at once
        return "aborted" if attempt == 2 else "completed", 2.0

    play = Play(tmp_path / "c", [*TWO, "--runs", "4", "--jobs", "3"], played, monkeypatch, GUEST)
    assert sorted(play.ran) == sorted(
        [f"{label}/{n}" for n in range(1, 5) for label in ("6.1", "7.2")] + [play.ran[1]]
    )
    assert not play.outcome.left
    plan = tomllib.loads((tmp_path / "c" / "plan.toml").read_text())
    assert sorted(run["order"] for run in plan["run"]) == list(range(1, 10))


def test_on_the_hosts_clock_there_is_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    under_way: list[str] = []

    def played(label: str, attempt: int) -> tuple[str, float]:
        under_way.append(label)
        time.sleep(0.05)
        assert under_way.pop() == label and not under_way
        return "completed", 2.0

    play = Play(tmp_path / "c", [*TWO, "--runs", "2", "--jobs", "3"], played, monkeypatch)
    assert play.ran == ["6.1/1", "7.2/1", "6.1/2", "7.2/2"]
    assert "one run at a time" in capsys.readouterr().out


def test_a_bug_in_one_ends_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def played(label: str, attempt: int) -> tuple[str, float]:
        if attempt == 2:
            raise ZeroDivisionError
        return "completed", 2.0

    with pytest.raises(ZeroDivisionError):
        Play(tmp_path / "c", [*TWO, "--runs", "9", "--jobs", "2"], played, monkeypatch, GUEST)
    assert len(list((tmp_path / "c").glob("*/*/status.json"))) < 17


def test_two_that_are_cut_short_once_each_are_both_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)

    def played(label: str, attempt: int) -> tuple[str, float]:
        together.wait(20)
        return "aborted" if attempt <= 2 else "completed", 2.0

    argv = ["--kernel", "debian:6.1", "--runs", "4", "--jobs", "2"]
    play = Play(tmp_path / "c", argv, played, monkeypatch, GUEST)
    assert sorted(play.ran) == ["6.1/1", "6.1/1", "6.1/2", "6.1/2", "6.1/3", "6.1/4"]
    assert not play.outcome.left


def test_what_is_given_up_stays_so_beside_a_run_that_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_began = threading.Barrier(3)

    def played(_: str, attempt: int) -> tuple[str, float]:
        if attempt <= 3:
            all_began.wait(60)
        return "aborted" if attempt in (1, 4) else "completed", 2.0

    argv = ["--kernel", "debian:6.1", "--runs", "3", "--jobs", "3"]
    play = Play(tmp_path / "c", argv, played, monkeypatch, GUEST)
    assert "given up after a run was cut short 2 times: 6.1" in play.outcome.left
