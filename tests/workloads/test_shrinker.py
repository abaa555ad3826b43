# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of shrinker that need no guest: real copies, compiles and steps, all of them small.

fs_mark and bonnie++ run in guests (tests/in_vm/test_shrinker_in_vm.py); what they print is here as
it was captured (fs_mark 3.3, bonnie++ 2.00a).
"""

import json
import shutil
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.command_line import parse_measured
from contract.swap import ON_DISK
from errors import UserError
from run.arguments import parse
from run.measure_command import guest_job, measure_argv
from workloads import registry
from workloads.registry import resolved
from workloads.shrinker import CACHES, WORKLOAD, parts
from workloads.shrinking import copying, load, measuring, mixing, sources
from workloads.shrinking.making import bonnie_row, fsmark_rows
from workloads.shrinking.measuring import cached, counters, difference, percentile
from workloads.workload import WorkloadEnvironment

SHRINKER = ["--workload", "shrinker", "--profile", "quick"]
FSMARK = """\
#  fs_mark  -k  -S  0  -s  0  -n  500  -L  3  -d  a  -d  b
#\tVersion 3.3, 2 thread(s) starting at Mon Nov 23 03:24:13 2026

FSUse%        Count         Size    Files/sec     App Overhead
    76         1000            0       2824.1            20825
    76         2000            0       7339.6             7348
    76         3000            0       5250.2            29300
"""
BONNIE = (
    "1.98,2.00a,x,1,1795393357,,,,,,,,,,,,,,,,,8,,,,4,16043,49,+++++,+++,9974,18,261,18,+++++,+++,"
    "11148,15,,,,,,,30611us,12112us,36074us,319ms,4041us,45017us"
)


def ran(*argv: str, parts: tuple[str, ...], folder: Path) -> tuple[int, dict[str, float]]:
    """The program's status and figures."""
    figures = folder / "figures.json"
    words = ["--folder", str(folder), "--figures", str(figures), "--cache", "ext4_inode_cache"]
    words += ["--objects", "2", "--tree", "70", "--files", "20", "--bonnie", "1", "--seconds", "1"]
    return load.main([*words, *argv, "--parts", *parts]), json.loads(figures.read_text())


def cells(part: str) -> set[str]:
    """The keys of the tables of a part alone."""
    described = WORKLOAD.describe(parse([*SHRINKER, "--load", f"part={part}"]))
    return {key for one in described.tables for row in one.rows for key in row.figures if key}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, float]]:
    """copy and mix, done with 3 MiB, two objects and 70 headers."""
    folder = tmp_path_factory.mktemp("shrinker")
    copying.prepare(folder, 2, 70, 3)
    status, figures = ran(parts=("copy", "mix"), folder=folder)
    return folder, status, figures


def test_what_was_copied_and_compiled_is_in_the_figures(
    worked: tuple[Path, int, dict[str, float]],
) -> None:
    folder, status, found = worked
    assert status == 0
    assert (found["copied"], found["objects"]) == (3, 2)
    assert found["copy-rate"] * found["copy"] == pytest.approx(3 * 1.048576)
    assert all(found[f"files-{walk}"] == 72 for walk in copying.WALKS)
    for number in range(2):
        built = folder / copying.BUILT / f"s{number}.o"
        assert built.read_bytes().startswith(b"\x7fELF")
    assert not (folder / copying.COPIED).exists()


def test_every_cell_of_its_tables_is_a_figure(worked: tuple[Path, int, dict[str, float]]) -> None:
    found = worked[2].keys()
    unsaid = {"inodes", "dentries"}  # /proc/slabinfo is root's alone, and another file system's
    for part in ("copy", "mix"):
        assert {key for key in cells(part) - found if key.partition("-")[0] not in unsaid} == set()


def test_the_mix_steps_and_says_how_long_each_took(
    worked: tuple[Path, int, dict[str, float]],
) -> None:
    found = worked[2]
    for kind in mixing.KINDS:
        assert found[f"{kind}-steps"] > 0
        shares = [found[f"{kind}-{share}"] for share in mixing.SHARES]
        assert shares == sorted(shares) and shares[-1] > 0
    steps = sum(found[f"{kind}-steps"] for kind in mixing.KINDS)
    assert found["work-rate"] == pytest.approx(steps / found["seconds-mix"], rel=0.2)


def test_a_compile_that_fails_ends_the_run_badly(tmp_path: Path) -> None:
    copying.prepare(tmp_path, 2, 70, 1)
    sources.source(tmp_path / copying.TREE, 0).write_text("no C")
    status, found = ran(parts=("copy",), folder=tmp_path)
    assert status == 1
    assert found["objects"] == 0 and found["copied"] == 1
    assert not {"compile", "compile-faults"} & found.keys()


def test_a_compiler_that_is_not_there_ends_the_run_badly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("cp", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    copying.prepare(tmp_path, 2, 70, 1)
    monkeypatch.setenv("PATH", str(tmp_path))
    status, found = ran(parts=("copy",), folder=tmp_path)
    assert status == 1
    assert found["objects"] == 0 and found["copied"] == 1 and found["copy"] > 0
    assert not {"compile", "compile-faults"} & found.keys()


def test_tools_that_are_not_there_end_the_run_badly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workloads.shrinking.making.search_path", lambda: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    status, found = ran(parts=("fsmark", "bonnie"), folder=tmp_path)
    assert status == 1
    assert found["files-fsmark"] == 0 and "files-bonnie" not in found


def test_the_tree_is_the_same_always(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sources.make(tmp_path / name, 3, 130)
    trees = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*.[ch]")}
        for root in (tmp_path / "a", tmp_path / "b")
    ]
    assert trees[0] == trees[1] and len(trees[0]) == 133
    assert len({path.parent for path in trees[0]}) == 4


def test_the_rows_of_fs_mark_are_its_loops() -> None:
    assert fsmark_rows(FSMARK.splitlines()) == [(1000, 2824.1), (2000, 7339.6), (3000, 5250.2)]


def test_the_row_of_bonnie_is_seconds_by_phase() -> None:
    found = bonnie_row(["bonnie: a warning", BONNIE])
    assert found == {
        "files-bonnie": 8192,
        "seq-create": 8192 / 16043,
        "seq-delete": 8192 / 9974,
        "random-create": 8192 / 261,
        "random-delete": 8192 / 11148,
    }
    assert bonnie_row([]) == {} == bonnie_row([BONNIE[:60]])


LINES = st.lists(st.text(max_size=60) | st.sampled_from([*FSMARK.splitlines(), BONNIE]), max_size=5)


@given(LINES, st.integers(0, len(BONNIE)))
def test_whatever_they_print_is_read_or_left_out(lines: list[str], cut: int) -> None:
    rows = fsmark_rows(lines)
    assert len(rows) <= len(lines) and all(rate >= 0 for _, rate in rows)
    found = bonnie_row([*lines, BONNIE[:cut]])
    assert all(value > 0 for key, value in found.items() if key != "files-bonnie")


@given(st.lists(st.integers(0, 10**9), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_the_nearest_rank(values: list[int], share: float) -> None:
    ordered = sorted(values)
    found = percentile(ordered, share)
    assert sum(one <= found for one in ordered) >= share * len(ordered) - 1e-9
    assert sum(one < found for one in ordered) < share * len(ordered)


def test_percentiles_of_known_latencies() -> None:
    found = mixing.summed_up({"read": array("q", range(100_000, 0, -1000))})
    assert found == {
        "read-steps": 100,
        "read-p50": 50,
        "read-p95": 95,
        "read-p99": 99,
        "read-max": 100,
    }
    assert mixing.summed_up({"read": array("q")}) == {"read-steps": 0}


def test_the_kernels_counts_are_summed_and_what_it_lacks_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vmstat = tmp_path / "vmstat"
    monkeypatch.setattr(measuring, "VMSTAT", vmstat)
    vmstat.write_text("allocstall_dma 1\nallocstall_normal 5\npginodesteal 7\npginodesteal_x 9\n")
    before = counters()
    assert before == {"allocstall": 6, "pginodesteal": 7}
    vmstat.write_text("allocstall_dma 2\nallocstall_normal 9\n")
    assert difference(before, counters()) == {"allocstall": 5}
    slabinfo = tmp_path / "slabinfo"
    monkeypatch.setattr(measuring, "SLABINFO", slabinfo)
    assert cached("dentry") is None
    slabinfo.write_text("slabinfo - version: 2.1\ndentry_x 1 2 3\ndentry   40  60 192\n")
    assert cached("dentry") == 40 and cached("xfs_inode") is None


def test_it_is_about_xfs_unless_another_one_is_said() -> None:
    options = parse(SHRINKER)
    assert options.fs == "xfs" and parse([*SHRINKER, "--fs", "ext4"]).fs == "ext4"
    assert parse(["--profile", "quick"]).fs == "ext4"
    argv = measure_argv(options, options.variants[0], repo="", music="/m", run_dir="/o")
    measured = resolved(parse_measured([*argv, "--device", "/dev/x"], registry.with_gitks()))
    assert (measured.fs, measured.load) == ("xfs", options.load)
    assert options.variants[0].swap == ON_DISK


def test_the_guest_sends_its_slab_caches_and_no_other_workload_does() -> None:
    options = parse(SHRINKER)
    assert set(CACHES.values()) < set(WORKLOAD.slabs)
    assert "slabinfo.tsv" in guest_job(options, options.variants[0]).files
    desktop = parse(["--profile", "quick"])
    assert "slabinfo.tsv" not in guest_job(desktop, desktop.variants[0]).files


def test_a_part_alone_has_a_primary_of_its_own() -> None:
    every = parse(SHRINKER)
    assert parts(every) == ("copy", "fsmark", "bonnie", "mix")
    assert WORKLOAD.describe(every).primary == "compile"
    primaries = {"copy": "compile", "fsmark": "fsmark", "mix": "work-rate"}
    for part, primary in (primaries | {"bonnie": "bonnie-seq-delete"}).items():
        options = parse([*SHRINKER, "--load", f"part={part}"])
        described = WORKLOAD.describe(options)
        assert parts(options) == (part,) and described.primary == primary
        assert primary in {one.key for one in described.figures}


@pytest.mark.parametrize("said", ["part=none", "files=15", "copy=1500K", "objects=0", "bonnie=x"])
def test_what_will_not_do_is_refused(said: str) -> None:
    with pytest.raises(UserError, match="--load"):
        parse([*SHRINKER, "--load", said])


def test_what_does_not_fit_is_refused_before_the_run(tmp_path: Path) -> None:
    options = parse([*SHRINKER, "--load", "copy=9000G"])
    with (
        pytest.raises(UserError, match="9216000 MiB and its copy do not fit"),
        WORKLOAD.prepared(options, WorkloadEnvironment(tmp_path, "x", tmp_path / "figures")),
    ):
        pass


def test_only_what_a_part_needs_is_made_ready(tmp_path: Path) -> None:
    environment = WorkloadEnvironment(tmp_path, "x", tmp_path / "figures")
    options = parse([*SHRINKER, "--load", "part=fsmark,copy=1M,tree=3,objects=1"])
    with WORKLOAD.prepared(options, environment):
        assert not list(tmp_path.iterdir())
    options = parse([*SHRINKER, "--load", "part=mix,copy=1M,tree=3,objects=1"])
    with WORKLOAD.prepared(options, environment):
        assert (tmp_path / copying.LARGE).stat().st_size == 1 << 20
