# SPDX-License-Identifier: GPL-2.0-or-later
"""What a remedy adds to a run: its daemon's life and log, the share of memory, the group."""

import subprocess
import sys
from pathlib import Path

import pytest

from contract import values
from contract.variant import Variant
from errors import UserError
from measure import remedy
from monitors.streams import Stream
from workloads import memcg
from workloads.load_output import SCOPE
from workloads.memcg import Memcg

SUITE = Path(__file__).resolve().parents[2]
TALKS = "import time; print('sending SIGTERM when', flush=True); time.sleep(60)"


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy, "LOG", tmp_path / "daemon.log")
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:         200000 kB\n")
    monkeypatch.setattr(remedy, "MEMINFO", meminfo)
    monkeypatch.setattr(memcg, "hierarchy", lambda _: (tmp_path, False))


def script(tmp_path: Path, text: str) -> str:
    file = tmp_path / "daemon.py"
    file.write_text(text)
    return f"{sys.executable} {file}"


def test_a_daemon_lives_as_long_as_the_run_and_its_log_is_kept(tmp_path: Path) -> None:
    variant = Variant("k", remedy="talker", daemon=script(tmp_path, TALKS))
    with remedy.around(variant) as facts:
        assert facts["name"] == "talker" and "log" not in facts
    assert facts["log"] == ["sending SIGTERM when"] and facts["daemon_alive"] is True
    assert facts["daemon"] == variant.daemon


def test_a_daemon_that_will_not_do_says_why(tmp_path: Path) -> None:
    ended = script(tmp_path, "import sys; sys.exit('no such config')")
    with (
        pytest.raises(UserError, match="ended with status 1: no such config"),
        remedy.around(Variant("k", daemon=ended)),
    ):
        pass
    with (
        pytest.raises(UserError, match="no-such-daemon is not installed on this machine"),
        remedy.around(Variant("k", daemon="no-such-daemon -v")),
    ):
        pass


def test_control_groups_of_version_1_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcg, "hierarchy", lambda _: (Path("/sys/fs/cgroup/memory"), True))
    with (
        pytest.raises(UserError, match="this machine's are of version 1"),
        remedy.around(Variant("k", slice=(("memory.low", "50%"),))),
    ):
        pass


def test_a_run_without_a_remedy_does_not_even_read_the_module(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from contract.run_record import Events
from contract.variant import Variant
from measure import one_run
events = Events(Path(sys.argv[1]))
with one_run.remedy_applied(Variant("k"), events):
    assert one_run.with_group([], Variant("k")) == []
assert "measure.remedy" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "events.jsonl")], cwd=SUITE)
    assert done.returncode == 0
    assert (tmp_path / "events.jsonl").read_text() == ""


def test_without_properties_of_systemd_oomd_nothing_listens(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from contract.variant import Variant
from measure import remedy
remedy.LOG = Path(sys.argv[1])
with remedy.around(Variant("k", remedy="sleeper", daemon="sleep 60")) as facts:
    assert "managed" not in facts and "measure.managed_oom" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "log")], cwd=SUITE)
    assert done.returncode == 0


def test_programs_begin_in_the_group_and_a_share_is_of_the_memory() -> None:
    protected = Variant("k", slice=(("memory.low", "50%"),))
    (stream,) = remedy.inside([Stream("gitk-1", ["git", "log"], {})], protected)
    assert stream.argv[0] == "sh" and stream.argv[-2:] == ["git", "log"]
    assert stream.argv[-3].endswith("/desktop-freeze-slice/cgroup.procs")
    assert remedy.absolute("50%") == str(100_000 << 10)
    assert remedy.absolute("1000") == "1000"


def test_scopes_are_groups_in_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remedy, "group", lambda: Memcg(tmp_path, old=False))
    streams = [Stream(name, ["true"], {}) for name in ("gitk-1", "player")]
    programs = remedy.inside(streams, Variant("k", slice=(values.SCOPE_PER_PROGRAM,)))
    assert [program.argv[-2] for program in programs] == [
        f"{tmp_path}/{name}.scope/cgroup.procs" for name in ("gitk-1", "player")
    ]
    assert [program.env[SCOPE] for program in programs] == [
        str(tmp_path / f"{name}.scope") for name in ("gitk-1", "player")
    ]
    assert all((tmp_path / f"{name}.scope").is_dir() for name in ("gitk-1", "player"))
