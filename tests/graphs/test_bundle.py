# SPDX-License-Identifier: GPL-2.0-or-later
"""The bundle: nobody's secrets, the same table to the digit, and no harm from a stranger's one."""

import gzip
import io
import json
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tomllib
import zlib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from analysis.reading import archive
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from benchmarks.synthetic_results.make import make_campaign, make_run, meta, write_run
from errors import UserError
from graphs.bundle import bundle, manifest
from graphs.bundle.packed_runs import BEST_RATIO, candidates
from graphs.bundle.shape import LIMIT, NAME
from graphs.redaction import secret_names
from graphs.redaction.secret_names import Secrets
from run.arguments import parse
from tests.contract.test_machine_model import WHOLE

HOST, USER, HOME = "annas-box", "anna", "/data/people/anna"
PLANTED = {  # what must not be anywhere, and how it may be spelled
    "host": f"{HOST}.example.org {HOST.upper()}",
    "user": f"{USER} Anna",
    "home": f"{HOME}/x /home/jdoe/secret /root/notes",
    "mac": "52:54:00:aa:bb:cc 52-54-00-AA-BB-CC 5254.00aa.bbcc wlx525400aabbcc "
    "BD address 0x3413e8aabbcc",
    "share": r"CIFS: \\winserver7\share and //nfsserver7/share",
    "list": "DNS servers 203.0.113.7 81.2.3.99",
    "disks": "serial WD-WX12345678 serialno 12AB34CD nguid 0025385b71b04f2e0025385b71b04f2e eui "
    "0025385b71b04f2f WDC WD10EZEX-08WN4A0, WD-WCC6Y1234567 mmc0: serial 0x1234abce cid "
    "1b534d454231515430f1c2d3e4f50123",
    "ip": "192.168.77.5 addr:fe80::5054:ff:feaa:bbcc [2001:db8:77::1]:873",
    "serial": "SerialNumber: 4C530001230823115033, wwn-0x5002538e40b1f1c2, "
    "by-id/nvme-X_S3Z8NB0K1234",
    "uuid": "root=UUID=ddf6f908-54bf-469e-b0e3-f7a1cfee96ae PARTUUID=1234abcd-01 LVM-"
    + "aB3x" * 16,
    "email": "anna.user@mail.example.org",
    "login": "rsync://joe:hunter22@nas-77/music",
}
GONE = [
    *("annas-box", "anna", "jdoe", "/root", "/data/people"),
    *("52:54:00", "52-54-00", "5254.00aa", "525400aabbcc"),
    *("192.168.77", "fe80::5054", "2001:db8"),
    *("4c530001230823115033", "5002538e40b1f1c2", "s3z8nb0k1234"),
    *("3413e8aabbcc", "winserver7", "nfsserver7", "203.0.113.7", "81.2.3.99"),
    *("wx12345678", "12ab34cd", "0025385b71b04f2", "wcc6y1234567", "1234abce", "1b534d454231"),
    *("ddf6f908", "1234abcd", "ab3xab3x", "example.org", "hunter22", "nas-77"),
]
ALL = " ".join(PLANTED.values())


@pytest.fixture(autouse=True)
def _annas_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Secrets(frozenset({HOST}), frozenset({USER, "root"}), frozenset({HOME, "/root"}))
    monkeypatch.setattr(bundle, "own_secrets", lambda: own)


def packed(folder: Path, limit: int = LIMIT) -> tuple[Compared, Path]:
    compared = compare(load_campaign(folder), force=True)
    report = folder / "report"
    report.mkdir(exist_ok=True)
    return compared, bundle.write(compared, report, limit)


def content(path: Path) -> dict[str, bytes]:
    return {one.name: b"".join(one.chunks()) for one in archive.members(path)}


def png(text: bytes) -> bytes:
    """A picture of one pixel, with a text that no one sees."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)) + chunk(b"tEXt", text)
    body = chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"iTXt", text) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + head + body + text


def test_whoever_receives_it_recomputes_the_table_to_the_digit(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 3, 3)  # the last run of all hangs
    write_run(folder / "6.1" / "4", {"meta.json": json.dumps(meta("6.1"))}, None)
    write_run(folder / "6.1" / "2.cut-1", {"events.jsonl": ""}, "aborted")
    compared, path = packed(folder)
    again = compare(load_campaign(path), force=True)
    files = content(path)
    for render, name in (
        (compare_text.text, "txt"),
        (export.csv_text, "csv"),
        (export.json_text, "json"),
    ):
        assert render(again) == render(compared)
        assert files[f"bug-report/compare.{name}"].decode() == render(compared)
    assert "6.1/4 (no status.json)" in compare_text.text(again) and "2.cut-1" in compare_text.text(
        again
    )
    assert manifest.check(path) == [] and manifest.remarks(path) == []
    assert again.campaign.plan == compared.campaign.plan
    assert again.campaign.configs == compared.campaign.configs


def test_sha256sum_agrees(tmp_path: Path) -> None:
    label = "back\\slash\nnewline"
    make_run(tmp_path / "c" / label / "1", "6.1", 3)
    _, path = packed(tmp_path / "c")
    assert manifest.check(path) == []
    with tarfile.open(path) as tar:
        tar.extractall(tmp_path / "out")
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", "MANIFEST"],
        cwd=tmp_path / "out" / "bug-report",
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.count(": OK") == len(content(path)) - 1


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first = packed(make_campaign(tmp_path / "a", 2, 2))[1].read_bytes()
    shutil.copytree(tmp_path / "a", tmp_path / "b", copy_function=shutil.copyfile)
    (tmp_path / "b" / "report" / NAME).unlink()
    assert packed(tmp_path / "b")[1].read_bytes() == first
    assert not list((tmp_path / "b" / "report").glob(".*"))
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert {(one.uid, one.gid, one.uname, one.mode) for one in tar} == {(0, 0, "", 0o644)}


def planted(folder: Path) -> Path:
    """A campaign with every secret in every kind of file, in names of files and of folders."""
    label = f"6.12-{HOST}"
    for variant, seed in (("6.1", 1), (label, 2)):
        run = make_run(folder / variant / "1", "6.1", seed)
        facts = json.loads((run / "meta.json").read_text()) | {
            "label": variant,
            "cmdline": ALL,
            "hostname": HOST,
            "disk": {"model": "X", "serial": "S3Z8NB0K1234"},
            ALL: [ALL, {"deep": ALL}],
            "t0": 16.077554666,
        }
        (run / "meta.json").write_text(json.dumps(facts))
        (run / "status.json").write_text(
            json.dumps({"format": 1, "state": "completed", "why": ALL, "elapsed_s": 100.5})
        )
        kern = f"[    1.000000] <6> {ALL}\n SERIAL=x\n"
        kern += f"[    2.000000] <4> {HOST}: page allocation failure:\n"
        (run / "kern.log").write_text(kern)
        (run / "console.log").write_bytes(b"\xff\r\n" + f"{HOST} login: {ALL}\r\n".encode())
        (run / "events.jsonl").write_text(
            json.dumps({"t": 1.5, "event": "x", ALL: ALL}) + '\n{"t": 1, "cut": "' + ALL
        )
        with (run / "latency-gitk-1.log").open("a") as log:
            log.write(f"999.000 1.000 {ALL}\nannas-box damaged {ALL}")
        (run / f"latency-{HOST}.log").write_text(f"1.000 1.000 {ALL}\n")
        with (run / "vmstat.tsv").open("a") as log:
            log.write(f"{ALL}\n" + "\t".join([HOST] * 5) + "\n")
        (run / "hang").mkdir()
        (run / "hang" / "registers.txt").write_text(ALL)
        (run / "hang" / f"{HOST}.txt").write_text(ALL)
        (run / ".reserve").write_text(ALL)
        (run / "latency-link.log").symlink_to(run / ".reserve")
        (folder / variant / "config").write_text(f'CONFIG_CMDLINE="{ALL}"\n# {ALL}\n')
    write_run(folder / label / "2", {"events.jsonl": ALL, "meta.json": ALL}, None)
    plan = {
        "format": 1,
        "baseline": label,
        "command": f"./run_test.sh --kernel {HOME}/bzImage --label {label} {ALL}",
        "variant": [{"label": label, "append": ALL, "knobs": {f"/sys/{HOST}": ALL}}],
        "run": [{"variant": label, "number": 1, "order": 2, ALL: ALL}],
    }
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    (folder / "report").mkdir()
    for name in ("comparison.png", "gitk-latency.png", "timeline-6.1-1.png"):
        (folder / "report" / name).write_bytes(png(ALL.encode()))
    return folder


def test_no_secret_is_in_it_anywhere(tmp_path: Path) -> None:
    compared, path = packed(planted(tmp_path / HOST))
    raw = gzip.decompress(path.read_bytes()).lower()
    for text in GONE:
        assert text.lower().encode() not in raw, text
    files = content(path)
    assert "bug-report/6.12-<host-1>/1/latency-<host-1>.log" in files
    assert "bug-report/6.1/1/hang/<host-1>.txt" in files
    listed = files["bug-report/REDACTIONS.txt"].decode()
    for kind in ("host name", "user name", "home folder", "login", "e-mail", "MAC", "IP", "UUID"):
        assert re.search(rf"(?m)^{kind}.*: [0-9,]+ places$", listed), kind
    assert re.search(r"  <host-1>  \d+ times\n(?: +\d+  \S.*\n)* +\d+  6\.1/1/kern\.log\n", listed)
    again = compare(load_campaign(path), force=True)
    assert files["bug-report/compare.txt"].decode() == compare_text.text(again)
    assert again.baseline == "6.12-<host-1>" and again.variants == ["6.12-<host-1>", "6.1"]
    for key, samples in compared.samples.items():
        assert [one.values for one in samples.values()] == [
            one.values for one in again.samples[key].values()
        ]
    for name, raw_file in files.items():
        if name.endswith("/1/meta.json"):
            assert json.loads(raw_file)["t0"] == 16.077554666
    # What shows a label with a secret in it cannot be redacted.
    assert not [name for name in files if name.endswith(".png")]
    assert "pictures show a name" in " ".join(files["bug-report/report.txt"].decode().split())


def test_a_bundle_of_a_bundle_is_the_same_bundle(tmp_path: Path) -> None:
    _, path = packed(planted(tmp_path / "c"))
    first = content(path)
    again = bundle.write(compare(load_campaign(path), force=True), tmp_path)
    second = content(again)
    assert first.keys() == second.keys()
    for name in first:
        if "REDACTIONS" not in name and "MANIFEST" not in name and "report.txt" not in name:
            assert first[name] == second[name], name
    assert b"Nothing." in second["bug-report/REDACTIONS.txt"]


def test_pictures_go_with_it_without_their_texts(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1)
    (folder / "report").mkdir()
    pictures = ("comparison.png", "gitk-latency.png", "timeline-6.1-1.png")
    for name in (*pictures, "other.png", "timeline-9.9-1.png"):
        (folder / "report" / name).write_bytes(png(b"hunter22"))
    (folder / "report" / "gitk-latency-smooth.png").write_bytes(b"no picture")
    (folder / "report" / "comparison-2.png").write_bytes(png(b"of another report"))
    files = content(packed(folder)[1])
    assert sorted(name for name in files if name.endswith(".png")) == [
        f"bug-report/{name}" for name in pictures
    ]
    found = files["bug-report/comparison.png"]
    assert b"hunter22" not in found and found.endswith(b"IEND\xaeB`\x82")


def without_counters(compared: Compared) -> dict[str, Any]:
    """compare.json, but for what the kernels did differently."""
    found: dict[str, Any] = json.loads(export.json_text(compared))
    for one in (found, *found["variants"]):
        assert one.pop("vmstat")
    return found


def test_without_room_counters_go_first_and_the_table_stays(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 2, 2, all_counters=True)
    whole = packed(folder)[1].stat().st_size
    compared, path = packed(folder, whole * 3 // 4)
    assert path.stat().st_size <= whole * 3 // 4
    assert "only the counters" in " ".join(content(path)["bug-report/report.txt"].decode().split())
    again = compare(load_campaign(path), force=True)
    assert without_counters(again) == without_counters(compared)
    packed_figures = content(path)["bug-report/compare.json"].decode()
    assert packed_figures == export.json_text(compared) != export.json_text(again)
    few, all_counters = (each.counters.samples for each in (again, compared))
    assert 5 < len(few) < len(all_counters)
    for counter, of_variants in few.items():
        assert of_variants == all_counters[counter], counter
    for before, after in zip(compared.campaign.runs, again.campaign.runs, strict=True):
        assert (before.path / "vmstat.tsv").stat().st_size > (
            after.path / "vmstat.tsv"
        ).stat().st_size
        assert before.last_sent == after.last_sent
        for name in ("nr_writeback", "late_s"):
            one, other = before.column("vmstat", name), after.column("vmstat", name)
            assert one and other and one[1].tolist() == other[1].tolist()


def test_logs_that_repeat_go_before_runs_do(tmp_path: Path) -> None:
    """What a completed run's console says is in kern.log; a hung one's may be all there is."""
    folder = make_campaign(tmp_path / "c", 3, 1)
    for number, run in enumerate(sorted(folder.glob("*/1"))):
        noise = random.Random(number).randbytes(200_000).hex()
        (run / "console.log").write_text(noise + "\n")
    whole = packed(folder)[1].stat().st_size
    _, path = packed(folder, whole - 150_000)
    names = content(path)
    assert {name for name in names if name.endswith("console.log")} == {
        "bug-report/7.2/1/console.log"
    }
    assert sum(name.endswith("status.json") for name in names) == 3
    assert "no console.log of a run that completed" in " ".join(
        names["bug-report/report.txt"].decode().split()
    )


@pytest.mark.parametrize(("name", "tried"), [("tasks.tsv", 3), ("latency-gitk-1.log", 1)])
def test_evidence_keeps_no_run_from_being_tried(tmp_path: Path, name: str, tried: int) -> None:
    """It can be left out of a run, a latency log cannot."""
    folder = make_campaign(tmp_path / "c", 3, 1)
    runs = load_campaign(folder).runs
    for run in runs:
        with (run.path / name).open("ab") as file:
            file.truncate(BEST_RATIO * 1_000_000)
    assert len(candidates(runs, 1_000_000)) == tried


def test_without_room_for_all_runs_it_is_a_part_and_says_so(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 4, 3, all_counters=True)
    compared, path = packed(folder, 500_000)
    assert path.stat().st_size <= 500_000
    again = load_campaign(path)
    held = {(run.variant, run.number) for run in again.runs}
    assert 0 < len(held) < 12
    assert ("6.1", 1) in held or ("6.1", 2) in held or ("6.1", 3) in held  # the baseline's median
    text = " ".join(content(path)["bug-report/report.txt"].decode().split())
    assert f"{len(held)} of 12 runs" in text and "THIS IS A PART" in text
    assert manifest.remarks(path) == [
        f"holds {len(held)} of 12 runs: the table cannot be recomputed from it "
        "(compare.json has the figures of all)"
    ]
    assert manifest.check(path) == []
    figures = json.loads(content(path)["bug-report/compare.json"])
    assert figures == json.loads(export.json_text(compared))


def test_a_long_log_loses_its_middle_unless_figures_come_from_it(tmp_path: Path) -> None:
    spam = "".join(
        f"[{n}.000000] <4> page allocation failure: order:2 {n}\n" for n in range(60_000)
    )
    folder = tmp_path / "c"
    for n, state in ((1, "completed"), (2, "hung")):
        facts = json.dumps(meta("k"))
        write_run(folder / "k" / str(n), {"meta.json": facts, "kern.log": spam}, state)
        (folder / "k" / str(n) / "console.log").write_text(spam)
    compared, path = packed(folder)
    files = content(path)
    assert files["bug-report/k/1/kern.log"].decode() == spam
    for name in ("1/console.log", "2/kern.log", "2/console.log"):
        cut = files[f"bug-report/k/{name}"].decode()
        gone = re.search(r"\n\[\.\.\. ([0-9]+) bytes left out of the bundle \.\.\.\]\n", cut)
        assert gone and len(cut) < len(spam) and cut.startswith("[0.0") and cut.endswith(" 59999\n")
        assert len(cut) - len(gone[0]) + int(gone[1]) + 1 == len(spam)
    assert export.json_text(compare(load_campaign(path))) == export.json_text(compared)


def test_strangers_labels_come_through(tmp_path: Path) -> None:
    compared, path = packed(make_campaign(tmp_path / "c", 7, 1, is_hostile=True))
    assert manifest.check(path) == []
    assert compare_text.text(compare(load_campaign(path), force=True)) == compare_text.text(
        compared
    )


@pytest.mark.parametrize("label", ["MANIFEST", "report.TXT", "plan.toml", "timeline-6.1-1.png"])
def test_a_variant_called_like_a_file_of_the_bundle_is_refused(tmp_path: Path, label: str) -> None:
    make_run(tmp_path / "c" / label / "1", "6.1", 3)
    with pytest.raises(UserError, match=re.escape(repr(label))) as caught:
        packed(tmp_path / "c")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "c" / "report" / NAME).exists()


def test_it_replaces_the_old_one_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 1)
    (folder / "report" / NAME).mkdir(parents=True)
    with pytest.raises(UserError, match=NAME):
        packed(folder)
    assert [path.name for path in (folder / "report").iterdir()] == [NAME]


def rewritten(path: Path, change: "dict[str, bytes | None]") -> Path:
    """The bundle with files changed, added, or (None) left out."""
    files = {**{name: data for name, data in content(path).items()}, **change}
    made = path.with_name("changed.tar.gz")
    with tarfile.open(made, "w:gz") as tar:
        for name, data in files.items():
            if data is not None:
                header = tarfile.TarInfo(name)
                header.size = len(data)
                tar.addfile(header, io.BytesIO(data))
    return made


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    log = "0.100 0.100 pass 1 commits 100\n0.200 0.100 [end]\n"
    write_run(folder / "k" / "1", {"meta.json": json.dumps(meta("k")), "latency-gitk-1.log": log})
    return bundle.write(compare(load_campaign(folder)), folder)


def test_check_names_what_is_missing_added_altered(small: Path) -> None:
    log = "bug-report/k/1/latency-gitk-1.log"
    same = content(small)[log].replace(b"0.100 [end]", b"0.900 [end]")
    cases: tuple[tuple[dict[str, bytes | None], list[str]], ...] = (
        ({log: same}, ["k/1/latency-gitk-1.log: altered"]),
        ({log: same + b"x"}, ["k/1/latency-gitk-1.log: altered (50 bytes, 49 listed)"]),
        ({log: None}, ["k/1/latency-gitk-1.log: missing"]),
        ({"bug-report/x": b""}, ["x: added, MANIFEST does not list it"]),
        ({"bug-report/MANIFEST": None}, ["no MANIFEST: nothing in it can be checked"]),
    )
    for change, wanted in cases:
        assert manifest.check(rewritten(small, change)) == wanted
    outside = manifest.check(rewritten(small, {"x": b""}))
    assert outside[0] == "x: lies outside of the bundle's folder"
    broken = manifest.check(rewritten(small, {"bug-report/MANIFEST": b"what\n\n"}))
    assert broken[0] == "MANIFEST: a line that cannot be read: what"


def hostile(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        header = tarfile.TarInfo(name)
        header.type, header.linkname, header.size = kind, link, size
        tar.addfile(header, io.BytesIO(b"x" * size))
    return raw.getvalue()


def bomb() -> bytes:
    zeros = gzip.compress(b"\0" * (64 << 20), 9)
    header = tarfile.TarInfo("bug-report/kern.log")
    header.size = 8 << 30
    return gzip.compress(header.tobuf()) + zeros * 40


def header_bomb() -> bytes:
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    return gzip.compress(header.tobuf()) + gzip.compress(b"\0" * (64 << 20), 9) * 16


HOSTILE = {
    "traversal": hostile("bug-report/../../evil"),
    "absolute": hostile("/tmp/evil"),
    "dot": hostile("./evil"),
    "symlink": hostile("bug-report/k", tarfile.SYMTYPE, "/etc"),
    "hardlink": hostile("bug-report/k", tarfile.LNKTYPE, "/etc/passwd"),
    "device": hostile("bug-report/k", tarfile.CHRTYPE),
    "fifo": hostile("bug-report/k", tarfile.FIFOTYPE),
    "deep": hostile("/".join("abcdefghij")),
    "bomb": bomb(),
    "header bomb": header_bomb(),
    "empty": b"",
    "empty tar": gzip.compress(b"\0" * 10240),
    "no tar": gzip.compress(b"hello " * 400),
    "no gzip": b"hello",
    "trailing": hostile("bug-report/k", size=5) + b"trailing",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_bundle_is_one_line_and_writes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "analysis.reading.archive.tempfile.mkdtemp", lambda **_: str(tmp_path / "out")
    )
    (tmp_path / "out").mkdir()
    path = tmp_path / "x.tar.gz"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(UserError) as caught:
        load_campaign(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert manifest.check(path)
    outside = [one for one in tmp_path.rglob("*") if "evil" in one.name or one.is_symlink()]
    assert not outside and not Path("/tmp/evil").exists()


def test_a_file_twice_or_beneath_a_file_is_refused(tmp_path: Path) -> None:
    for second in ("bug-report/a", "bug-report/a/b"):
        path = tmp_path / "x.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name in ("bug-report/a", second):
                tar.addfile(tarfile.TarInfo(name))
        with pytest.raises(UserError, match=r"twice|a file and a folder"):
            archive.unpacked(path)


@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_truncated_bundle_is_one_clear_line(small: Path, cut: float) -> None:
    raw = small.read_bytes()
    path = small.with_name("cut.tar.gz")
    path.write_bytes(raw[: int(cut * len(raw))])
    with pytest.raises(UserError) as caught:
        archive.unpacked(path)
    assert re.fullmatch(r".*cut\.tar\.gz: .*", str(caught.value))
    assert all(line and "\n" not in line for line in manifest.check(path) or [""])


@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_never_a_traceback(small: Path, place: float, bit: int) -> None:
    raw = bytearray(small.read_bytes())
    at = int(place * len(raw))
    raw[at] ^= 1 << bit
    path = small.with_name("flipped.tar.gz")
    path.write_bytes(raw)
    problems = manifest.check(path)
    assert not any("\n" in line for line in problems)
    # Bits of gzip's header, and of codes that its data do not use, change nothing that is in it.
    assert problems or gzip.decompress(raw) == gzip.decompress(small.read_bytes())


def test_the_folder_of_a_bundle_is_gone_when_the_program_ends(small: Path) -> None:
    code = "import sys, pathlib; from analysis.reading.archive import unpacked\n"
    code += "print(unpacked(pathlib.Path(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(small)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith("bug-report") and not Path(done.stdout.strip()).exists()


def test_own_names_are_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundle, "own_secrets", secret_names.own_secrets)
    monkeypatch.setattr("graphs.redaction.secret_names.socket.gethostname", lambda: "rosebud-7")
    monkeypatch.setenv("SUDO_USER", "wilhelmina")
    folder = make_campaign(tmp_path / "c", 1)
    (folder / "6.1" / "1" / "console.log").write_text("wilhelmina@rosebud-7: ok\n")
    files = content(packed(folder)[1])
    assert files["bug-report/6.1/1/console.log"] == b"<user-1>@<host-1>: ok\n"


def test_a_bundle_whose_texts_alone_are_too_large_is_refused(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "c", 3, 1)
    compared, path = packed(folder)
    whole = path.read_bytes()
    with pytest.raises(UserError, match=r"texts alone take [\d,]+ bytes, 2,000 are allowed"):
        bundle.write(compared, folder / "report", 2_000)
    assert path.read_bytes() == whole and list(path.parent.glob(".bug-report*")) == []


def test_a_machines_own_file_is_in_it(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2)
    plan = folder / "plan.toml"
    tables = tomllib.loads(plan.read_text())
    machine = {"machine": f"{HOME}/mine.toml", "clock": "auto"}
    tables["machine"] = machine | {"cpus": 1, "disk_iops": 9000}
    plan.write_text(tomli_w.dumps(tables))
    (folder / "mine.toml").write_text(f"# {ALL}\n{WHOLE}")
    _, path = packed(folder)
    found = {name.removeprefix("bug-report/"): raw for name, raw in content(path).items()}
    assert tomllib.loads(found["mine.toml"].decode()) == tomllib.loads(WHOLE)
    assert not any(gone.encode() in found["mine.toml"].lower() for gone in GONE)
    text = " ".join(found["report.txt"].decode().split())
    assert "with plan.toml and mine.toml of this bundle:" in text
    assert "--machine mine.toml" in text and "not in this bundle: <" not in text
    (tmp_path / "plan.toml").write_bytes(found["plan.toml"])
    (tmp_path / "mine.toml").write_bytes(found["mine.toml"])
    asked = parse(["--plan", str(tmp_path / "plan.toml")])
    assert (asked.machine, asked.disk_iops) == (str(tmp_path / "mine.toml"), 9000)
    (folder / "mine.toml").unlink()
    assert "not in this bundle: <home-1>/mine.toml" in " ".join(
        content(packed(folder)[1])["bug-report/report.txt"].decode().split()
    )


def test_what_was_changed_in_a_kernels_source_is_in_it(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, 2)
    plan = folder / "plan.toml"
    tables = tomllib.loads(plan.read_text())
    first, second = (one["label"] for one in tables["variant"][:2])
    for one, more in zip(tables["variant"], ("", f",patch={HOME}/fix.patch"), strict=False):
        one["kernel"] = f"debian-source:7.2{more}"
    plan.write_text(tomli_w.dumps(tables))
    (folder / second / "changes.patch").write_text(f"diff --git a/mm/x b/mm/x\n+{ALL}\n")
    files = content(packed(folder)[1])
    assert f"bug-report/{first}/changes.patch" not in files
    patch = files[f"bug-report/{second}/changes.patch"]
    assert patch.startswith(b"diff --git a/mm/x b/mm/x\n+")
    assert not any(gone.encode() in patch.lower() for gone in GONE)
    text = " ".join(files["bug-report/report.txt"].decode().split())
    assert f"what was changed in its source is {second}/changes.patch of this bundle" in text
    assert "not in this bundle" not in text
    (folder / second / "changes.patch").unlink()
    text = " ".join(content(packed(folder)[1])["bug-report/report.txt"].decode().split())
    assert "not in this bundle: <home-1>/fix.patch" in text
