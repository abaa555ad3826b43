# SPDX-License-Identifier: GPL-2.0-or-later
"""What the load of memcg-dirty makes of the kernel's counters; in a guest: test_workloads_in_vm."""

import json
from pathlib import Path

import pytest

from run.arguments import parse
from workloads import memcg_dirty_load
from workloads.memcg import Memcg
from workloads.memcg_dirty import WORKLOAD
from workloads.memcg_dirty_load import CPU, IOSTAT, cpu_shares, iostat

BEFORE = {
    "writes": 100.0,
    "merged": 10.0,
    "sectors": 800.0,
    "write_ms": 50.0,
    "busy_ms": 40.0,
    "weighted_ms": 60.0,
    "": 0.0,
}


def test_the_devices_columns_are_iostats() -> None:
    after = {
        "writes": 300.0,
        "merged": 50.0,
        "sectors": 40800.0,
        "write_ms": 4050.0,
        "busy_ms": 1840.0,
        "weighted_ms": 5060.0,
        "": 3.0,
    }
    assert iostat(BEFORE, after, 2.0) == {
        "wrqm": 20.0,
        "w": 100.0,
        "wkb": 10_000.0,
        "wareq": 100.0,
        "aqu": 2.5,
        "await": 20.0,
        "util": 90.0,
    }
    idle = iostat(BEFORE, BEFORE, 2.0)
    assert "await" not in idle and idle["wkb"] == 0
    assert iostat({}, {}, 2.0) == {}


def test_the_cpus_shares_are_all_of_the_time() -> None:
    shares = cpu_shares([0] * 8, [10, 10, 30, 20, 20, 4, 6, 0])
    assert shares == {"user": 20.0, "system": 40.0, "iowait": 20.0, "idle": 20.0}
    assert cpu_shares([1] * 8, [1] * 8) == {}


def test_every_cell_of_its_tables_is_a_figure_of_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two small dd outside any group: the figures by the same keys as the tables'."""
    monkeypatch.setattr(memcg_dirty_load, "PLACES", ("outside",))
    monkeypatch.setattr(memcg_dirty_load, "device", lambda _: dict(BEFORE))
    group = Memcg(tmp_path, old=False)
    (tmp_path / "memory.stat").write_text("anon 1\nfile_dirty 3145728\nfile_writeback 1048576\n")
    (tmp_path / "memory.events").write_text("max 7\noom 2\noom_kill 1\n")
    figures = tmp_path / "figures.json"
    argv = ["--group", str(tmp_path), "--folder", str(tmp_path), "--figures", str(figures)]
    assert memcg_dirty_load.main([*argv, "--disk", "x", "--mib", "3", "--writers", "2"]) == 0
    assert group.killed() == 1 and group.dirty_and_writeback() == (3 << 20, 1 << 20)
    found = json.loads(figures.read_text())
    asked = {
        key
        for table in WORKLOAD.describe(parse(["--workload", "memcg-dirty"])).tables
        for row in table.rows
        for key in row.figures
    }
    left = {"wareq-outside", "await-outside"}  # no write was seen
    assert {key for key in asked if "inside" not in key} - left <= found.keys()
    assert found["killed-inside"] == 1 and found["dirty-most"] == 3
    # Both wrote at once: what they have together is at most the sum, and 3 MiB are 3.145728 MB.
    assert found["rate-outside"] * found["time-outside"] == pytest.approx(2 * 3.145728)
    assert "outside: dd 1 done after" in capfd.readouterr().out
    assert not list(tmp_path.glob("f[12]"))


def test_a_dd_that_fails_ends_the_run_badly_and_has_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memcg_dirty_load, "PLACES", ("outside",))
    figures = tmp_path / "figures.json"
    argv = ["--group", str(tmp_path), "--folder", str(tmp_path / "none"), "--disk", "x"]
    argv += ["--figures", str(figures), "--mib", "1", "--writers", "1"]
    assert memcg_dirty_load.main(argv) == 1
    assert "dd 1 ended with status 1" in capfd.readouterr().out
    assert not json.loads(figures.read_text()).keys() & {"time-outside-1", "rate-outside-1"}


def test_the_columns_have_words() -> None:
    assert set(CPU) == {"user", "system", "iowait", "idle"}
    assert all(IOSTAT.values()) and len(set(IOSTAT.values())) == len(IOSTAT)
