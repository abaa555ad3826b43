# SPDX-License-Identifier: GPL-2.0-or-later
"""What the load of memcg-dirty makes of the kernel's counters; in a guest: test_workloads_in_vm."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contract.values import SCOPE_PER_PROGRAM
from contract.workload import MEANWHILE
from errors import UserError
from run.arguments import parse
from workloads import memcg, memcg_dirty_load
from workloads.memcg import Memcg
from workloads.memcg_dirty import WORKLOAD, of_machine
from workloads.memcg_dirty_load import CPU, IOSTAT, cpu_shares, iostat
from workloads.workload import WorkloadEnvironment

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
    monkeypatch.setattr(memcg_dirty_load, "EACH_S", 0.0)
    group = Memcg(tmp_path, old=False)
    (tmp_path / "memory.stat").write_text("anon 1\nfile_dirty 3145728\nfile_writeback 1048576\n")
    (tmp_path / "memory.events").write_text("max 7\noom 2\noom_kill 1\n")
    figures = tmp_path / "figures.json"
    argv = ["--group", str(tmp_path), "--folder", str(tmp_path), "--figures", str(figures)]
    assert memcg_dirty_load.main([*argv, "--disk", "x", "--mib", "3", "--writers", "2"]) == 0
    assert group.killed() == 1 and group.dirty_and_writeback() == (3 << 20, 1 << 20)
    found = json.loads(figures.read_text())
    told = WORKLOAD.describe(parse(["--workload", "memcg-dirty"]))
    observed = {one.key for one in told.recorded} | {one.key for one in told.late}
    asked = {key for table in told.tables for row in table.rows for key in row.figures} - observed
    for one in told.recorded:
        if one.key.endswith("-outside"):
            assert found[one.since] < found[one.until]
    left = {"wareq-outside", "await-outside"}  # no write was seen
    assert {key for key in asked if "inside" not in key} - left <= found.keys()
    assert found["killed-inside"] == 1 and found["dirty-most"] == 3
    # Both wrote at once: what they have together is at most the sum, and 3 MiB are 3.145728 MB.
    assert found["rate-outside"] * found["time-outside"] == pytest.approx(2 * 3.145728)
    said = capfd.readouterr().out
    assert "outside: dd 1 done after" in said
    rows = [line.split() for line in said.splitlines() if line.startswith(f"{MEANWHILE} ")]
    assert rows and all(word.partition("=")[0] in asked for row in rows for word in row[1:])
    assert any(word.startswith("util-outside=") for word in rows[0])
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
    names = {f"{what}-outside{n}" for what in ("time", "rate") for n in ("", "-1")}
    assert not json.loads(figures.read_text()).keys() & names


def test_the_columns_have_words() -> None:
    assert set(CPU) == {"user", "system", "iowait", "idle"}
    assert all(IOSTAT.values()) and len(set(IOSTAT.values())) == len(IOSTAT)


def test_what_a_dead_run_left_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hierarchy of folders, in which a group is one; the record is read from the disk alone."""
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory")
    control = root / "cgroup.subtree_control"
    control.write_text("cpu")
    monkeypatch.setattr(memcg, "RECORDS", tmp_path / "run")
    monkeypatch.setattr(memcg, "hierarchy", lambda _: (root, False))
    made = memcg.limited_group(64 << 20, 2)
    group = made.__enter__()
    assert group.folder.is_dir() and control.read_text() == "+memory"
    assert (group.folder / "memory.max").read_text() == str(64 << 20)
    (group.folder / "memory.max").unlink()  # the kernel's own files go with the folder
    memcg.undo()
    assert not group.folder.exists() and control.read_text() == "-memory"
    assert not list(memcg.RECORDS.glob("cgroup-*.json"))
    memcg.undo()


def test_groups_within_a_group_go_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memcg, "RECORDS", tmp_path / "run")
    monkeypatch.setattr(memcg, "hierarchy", lambda _: (tmp_path, False))
    (tmp_path / "cgroup.controllers").write_text("memory")
    control = tmp_path / "cgroup.subtree_control"
    control.write_text("")
    group = memcg.Memcg(tmp_path / "g", old=False)
    with memcg.settled(group, dict([SCOPE_PER_PROGRAM])):
        assert control.read_text() == "+memory"
        assert (group.folder / control.name).read_text() == "+memory"
        (group.folder / control.name).unlink()  # the kernel's own files go with the folder
        for name in ("gitk-1.scope", "eater.scope"):
            (group.folder / name).mkdir()
    assert not group.folder.exists() and control.read_text() == "-memory"


def test_version_2_is_mounted_in_its_standard_place_if_that_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memcg, "MOUNTS", tmp_path / "mounts")
    (tmp_path / "mounts").write_text("none /x cgroup rw,cpu 0 0\n")
    place = tmp_path / "cgroup"
    monkeypatch.setattr(memcg, "STANDARD_MOUNT", place)
    assert memcg.hierarchy(2) == (memcg.OWN_MOUNT, False)
    place.mkdir()
    assert memcg.hierarchy(2) == (place, False)
    assert memcg.hierarchy(1) == (memcg.OWN_MOUNT, True)
    (place / "cpu").mkdir()
    assert memcg.hierarchy(2) == (memcg.OWN_MOUNT, False)


def test_a_group_that_is_there_is_nobodys_to_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memcg, "RECORDS", tmp_path)
    monkeypatch.setattr(memcg, "hierarchy", lambda _: (tmp_path, False))
    (tmp_path / "cgroup.controllers").write_text("memory")
    (tmp_path / "cgroup.subtree_control").write_text("memory")
    with pytest.raises(UserError, match=r"version 2 \(--load version=2\)"):
        memcg.limited_group(64 << 20, 1).__enter__()
    with memcg.limited_group(64 << 20, 2) as group:
        (group.folder / "memory.max").unlink()
    assert not group.folder.exists()
    group.folder.mkdir()
    with (
        pytest.raises(UserError, match="was not made by this suite"),
        memcg.limited_group(64 << 20, 2),
    ):
        pass
    assert group.folder.is_dir() and not list(memcg.RECORDS.glob("cgroup-*.json"))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "memory"


@pytest.mark.parametrize(
    ("mounts", "systems", "version"),
    [
        ("none /x cgroup rw,memory 0 0\n", "nodev\tcgroup\nnodev\tcgroup2\n", 1),
        ("none /x cgroup rw,cpu 0 0\n", "nodev\tcgroup\nnodev\tcgroup2\n", 2),
        ("", "nodev\tcgroup\n", 1),
    ],
)
def test_any_version_is_what_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, systems: str, version: int
) -> None:
    (tmp_path / "mounts").write_text(mounts)
    (tmp_path / "filesystems").write_text(systems)
    monkeypatch.setattr(memcg, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(memcg, "FILE_SYSTEMS", tmp_path / "filesystems")
    asked = ["--workload", "memcg-dirty"]
    inside = replace(parse(asked), device="/dev/x")
    assert memcg.offered() == of_machine(inside) == version
    told = f"control groups of version {version}"
    assert WORKLOAD.describe(inside).settled == told
    # The host's say nothing of a VM's, and a version that was asked for is a parameter.
    assert WORKLOAD.describe(parse(asked)).settled == ""
    strict = replace(parse([*asked, "--load", "version=2"]), device="/dev/x")
    assert of_machine(strict) == 2 and WORKLOAD.describe(strict).settled == ""


@pytest.mark.parametrize("load", ["version=3", "version=x", "version=0"])
def test_there_are_two_versions(load: str) -> None:
    with pytest.raises(UserError, match="--load version"):
        parse(["--workload", "memcg-dirty", "--load", load])


@pytest.mark.parametrize("load", ["size=1", "size=1500K", "limit=8M", "limit=0"])
def test_sizes_are_whole_mib_and_the_group_holds_a_heartbeat(load: str) -> None:
    with pytest.raises(UserError, match="--load"):
        parse(["--workload", "memcg-dirty", "--load", load])


def test_files_that_do_not_fit_are_refused_before_the_run(tmp_path: Path) -> None:
    options = parse(["--workload", "memcg-dirty", "--load", "size=900G,writers=8"])
    with (
        pytest.raises(UserError, match="8 files of 921600 MiB do not fit"),
        WORKLOAD.prepared(options, WorkloadEnvironment(tmp_path, "x", tmp_path / "figures")),
    ):
        pass
