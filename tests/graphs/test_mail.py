# SPDX-License-Identifier: GPL-2.0-or-later
"""mail.txt: what a maintainer asks for first, in 60 lines, and the same of the bundle."""

import json
import re
import shlex
import shutil
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from analysis.reading.load import load_campaign
from analysis.text.verdict_table import metric_cell
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.regression import Regression, regression
from benchmarks.synthetic_results import hostile
from benchmarks.synthetic_results.make import make_campaign
from contract.option_rows import PROFILES
from graphs.bug_report.mail import BUNDLE_URL, LINES, SUITE_URL, mail
from graphs.bundle import bundle
from graphs.bundle.manifest import is_part
from graphs.report import make_report
from run.arguments import parse
from tests.support.verdicts import campaign as stalling_campaign
from tests.support.verdicts import cut_at_the_limit
from tests.support.workloads import figures_of, workload_run

OLD, NEW = "6.12.118", "7.2.13"
KERNELS = {  # label: which of make_campaign's it is made of, and what the kernel says of itself
    OLD: ("6.12", "6.12.118+deb13-cloud-amd64", "#1 SMP Debian 6.12.118-1 (2026-11-20)"),
    NEW: ("6.1", "7.2.13+deb14-cloud-amd64", "#1 SMP Debian 7.2.13-1 (2026-10-28)"),
}
PARAMETERS = {
    **{"profile": "quick", "memory": PROFILES["quick"].memory, "gitk": 4, "commits": 40_000},
    **{"every": 100, "passes": 1, "touch": 0.12, "step": 512, "fs": "ext4", "crypt": True},
    **{"workload": "desktop", "load": "", "atomic_order": 0, "atomic_rate": 0},
    **{"commit_copies": 1, "screen": False},
    **{"history": "made, uncompressed", "music_kind": "made"},
}
MACHINE = {
    **{"accel": "auto", "machine": "laptop", "qemu": "suite", "clock": "auto", "cpus": 1},
    **{"cpu_mips": 500, "disk_kind": "rotating", "disk_iops": 57, "disk_bps": 58_000_000},
    **{"disk_parallel": 1, "disk_depth": 32, "disk_queues": 1, "timeout": 1200, "evidence": True},
    "live_lock_after": 180,
}
FACTS = {
    **{"suite": "03772e1306f3", "parameters": PARAMETERS, "cpus": 1},
    "machine": {"name": "laptop", "mips": 500, "type": "pc-q35-7.2", "cpu": "qemu64"},
    "clock": {"kind": "guest", "why": "emulated"},
    "disk": {"size_bytes": 8 << 30, "kind": "rotating", "iops": 57, "bps": 58_000_000, "depth": 32},
}


def two_kernels(folder: Path, runs: int = 4) -> Path:
    """A campaign as run_test.sh makes it of two kernels of Debian's, the newer one worse."""
    made = make_campaign(folder.with_name("made"), 2, runs, all_counters=True, with_evidence=True)
    plan = tomllib.loads((made / "plan.toml").read_text())
    table = {
        one: {"label": one, "kernel": f"debian:{one.rpartition('.')[0]}", "version": one}
        for one in KERNELS
    }
    plan |= {"baseline": OLD, "variant": list(table.values()), "command": ""}
    plan |= {"parameters": PARAMETERS, "machine": MACHINE, "runs": runs}
    for label, (of, release, version) in KERNELS.items():
        shutil.copytree(made / of, folder / label)
        for one in plan["run"]:
            one["variant"] = label if one["variant"] == of else one["variant"]
        kernel = {"release": release, "version": version, "spec": table[label]["kernel"]}
        for path in (folder / label).glob("*/meta.json"):
            facts = json.loads(path.read_text())
            size = 187 if label == OLD else 183
            own = {"label": label, "kernel": kernel, "mem_total_kib": size << 10}
            path.write_text(json.dumps(facts | FACTS | own))
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    return folder


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_kernels(tmp_path_factory.mktemp("two") / "c")


@pytest.fixture(scope="module")
def compared(campaign: Path) -> Compared:
    return compare(load_campaign(campaign))


def text_of(compared: Compared) -> str:
    found = regression(compared)
    assert isinstance(found, Regression), found
    text = mail(found).text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 75 and len(lines) <= LINES
    assert all(char.isprintable() or char == "\n" for char in text)
    return text


def test_it_has_what_a_report_of_a_regression_has(compared: Compared) -> None:
    text = text_of(compared)
    whole = " ".join(text.split())
    ratio = compared.primary[NEW].ratio
    assert ratio is not None
    assert re.search(
        rf"^Subject: \[REGRESSION\] 7\.2\.13 stalls {ratio:.2f} times as long as 6\.12\.118$",
        text,
        re.MULTILINE,
    )
    assert "Cc: regressions@lists.linux.dev" in text
    assert "\n#regzbot introduced: v6.12.118..v7.2.13\n" in text
    assert "While music plays and four gitk's read a long history and swap, the gitk's fr" in whole
    assert " ".join(compared.sentences[NEW].split()) in whole
    assert "do_swap_page" in text and "Longest stall of 7.2.13" in whole
    assert re.search(r"Config: 2 options differ, of reclaim, .*: LRU_GEN y -> n\.", whole)
    assert "Debian 6.12.118-1" in whole and "Debian 7.2.13-1" in whole
    memory = "230 MiB of memory (profile quick; the laptop has 512), MemTotal 183 to 187 MiB"
    assert f"VM: {memory} (the rest is the kernel's own)." in whole
    assert "\nReal: kernel, dm-crypt, LVM, ext4. Stand-ins: fake_gitk, music, CPU, disk.\n" in text
    assert SUITE_URL in text and f"{BUNDLE_URL} (bug-report.tar.gz;" in whole
    assert not re.search(r"\d{7,}", text)  # no count of bytes


def test_its_rows_are_the_tables(compared: Compared) -> None:
    text = text_of(compared)
    table = text.partition("mean of a run ")[2].partition("\n\n")[0].splitlines()[1:]
    assert len(table) == 5
    metrics = {f"{one.title} ({one.unit})": one for one in compared.metrics}
    metrics |= {one.title: one for one in compared.metrics if not one.unit}
    metrics["stalled, four gitk's added up (s)"] = compared.metric
    assert [line.split("  ")[0] for line in table[:2]] == [
        "share of time in gaps >= 1 s (%)",
        "worst stall (s)",
    ]
    for line in table:
        name, old, new, change = re.split(r" {2,}", line)
        metric = metrics[name]
        assert old == metric_cell(compared, metric, OLD)[0]
        assert new == metric_cell(compared, metric, NEW)[0]
        every = compared.primary if metric.primary else compared.secondary[metric.key]
        assert change.rstrip("?") == f"{every[NEW].ratio:.2f}x worse"


def reproducer(text: str) -> list[str]:
    """The lines of it, of which a shell makes commands."""
    return text.partition("To reproduce it:\n")[2].partition("\n\n")[0].splitlines()


def test_it_is_reproduced_in_three_lines_without_a_default(compared: Compared) -> None:
    lines = reproducer(text_of(compared))
    assert len(lines) == 3
    place = f"git clone {SUITE_URL} freeze && cd freeze && git checkout -q 03772e1306f3"
    assert lines[0] == f"  {place}"
    words = shlex.split("\n".join(lines[1:]).replace("\\\n", " "))
    assert words == [
        *("./run_test.sh", "--kernel", "debian:6.12.118-1", "--kernel", "debian:7.2.13-1"),
        *("--runs", "4", "--profile", "quick"),
    ]
    asked = parse(words[1:])
    assert asked.parameters.items() <= PARAMETERS.items()
    assert asked.in_machine == MACHINE


def test_what_was_set_is_in_the_reproducer(campaign: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(campaign, tmp_path / "c"))
    plan = tomllib.loads((folder / "plan.toml").read_text())
    plan["parameters"] |= {"commits": 6000, "crypt": False}
    plan["machine"] |= {"disk_iops": 80}
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    text = " ".join(reproducer(text_of(compare(load_campaign(folder)))))
    for option in ("--commits 6000", "--no-crypt", "--disk-iops 80"):
        assert option in text
    assert "--gitk" not in text


def in_bundle(path: Path) -> bytes:
    with tarfile.open(path) as packed:
        member = packed.extractfile("bug-report/mail.txt")
        assert member is not None
        return member.read()


@pytest.mark.parametrize(
    ("share", "evidence", "part"), [(0.9, True, False), (0.45, False, False), (0.25, False, True)]
)
def test_who_has_the_bundle_has_the_same_mail(
    compared: Compared, tmp_path: Path, share: float, evidence: bool, part: bool
) -> None:
    """Of all, without what few need, and of a part of the runs."""
    size = bundle.write(compared, tmp_path).stat().st_size
    path = bundle.write(compared, tmp_path, int(share * size))
    (beside,) = bundle.write_mail(path, tmp_path)
    told = in_bundle(path)
    assert beside.read_bytes() == told
    assert told.decode() == text_of(compared)
    received = load_campaign(path)
    again = bundle.write(compare(received), Path(shutil.copytree(tmp_path, tmp_path / "r")))
    assert in_bundle(again) == told
    with tarfile.open(path) as packed:
        assert evidence == any(name.endswith("tasks.tsv") for name in packed.getnames())
    assert part == is_part(received.path)


def test_the_report_has_it_and_says_what_to_fill_in(campaign: Path, tmp_path: Path) -> None:
    report = make_report(load_campaign(campaign), tmp_path)
    assert not report.errors
    assert (tmp_path / "mail.txt") in report.made
    assert (tmp_path / "mail.txt").read_bytes() == in_bundle(tmp_path / "bug-report.tar.gz")
    note = f"mail.txt: replace {SUITE_URL} and {BUNDLE_URL} in it before you send it"
    assert note in report.notes


def report_text(path: Path) -> str:
    with tarfile.open(path) as packed:
        member = packed.extractfile("bug-report/report.txt")
        assert member is not None
        return " ".join(member.read().decode().split())


def test_without_a_regression_there_is_none_and_the_report_says_why(tmp_path: Path) -> None:
    folder = stalling_campaign(tmp_path / "c", {"6.12": (5.0, 6.0), "7.2": (5.5, 6.5)})
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mail.txt").write_text("of a campaign before\n")
    (tmp_path / "r" / ".made-by-graphs").write_text("mail.txt\n")
    report = make_report(load_campaign(folder), tmp_path / "r")
    assert not (tmp_path / "r" / "mail.txt").exists()
    why = "no kernel was shown to be worse than another one"
    assert any(note.startswith(f"no mail.txt: {why}") for note in report.notes)
    text = report_text(tmp_path / "r" / "bug-report.tar.gz")
    assert f"There is no mail.txt, a mail on a regression: {why}." in text


def test_a_kernel_that_only_hangs_is_a_regression(tmp_path: Path) -> None:
    hung: tuple[float | str, ...] = ("hung",) * 4
    runs = {"6.12.1": (5.0, 6.0, 7.0, 8.0), "7.2.3": hung}
    text = text_of(compare(load_campaign(stalling_campaign(tmp_path, runs))))
    assert "Subject: [REGRESSION] 7.2.3 fails where 6.12.1 does not\n" in text
    assert "#regzbot introduced: v6.12.1..v7.2.3\n" in text


def test_what_is_known_up_to_the_limit_only_is_named_so(tmp_path: Path) -> None:
    runs = {"6.12.1": (5.0, 6.0, 7.0, 8.0), "7.2.3": (50.0, 60.0, 70.0, 80.0)}
    folder = stalling_campaign(tmp_path, runs)
    cut_at_the_limit(folder, 120.0)
    text = text_of(compare(load_campaign(folder)))
    assert "Subject: [REGRESSION] 7.2.3 stalls 10.0 times as long as 6.12.1 in 120 s\n" in text
    assert "7.2.3 stalls more than 6.12.1 in the first 120 s" in " ".join(text.split())


def test_another_workloads_own_figures_come_first(tmp_path: Path) -> None:
    for label, base in (("6.12.1", 40.0), ("7.2.3", 80.0)):
        for n in range(1, 5):
            workload_run(tmp_path / label / str(n), figures_of(base + n))
    text = text_of(compare(load_campaign(tmp_path)))
    subject = r"7\.2\.3: both dd inside the cgroup 1\.9\d times that of"
    assert re.search(rf"^Subject: \[REGRESSION\] {subject}", text, re.MULTILINE)
    rows = text.partition("mean of a run ")[2].splitlines()[1:3]
    assert rows[0].startswith("both dd inside the cgroup (s)")
    assert re.search(r"rate inside the cgroup \(MB/s\) .* 0\.5\dx worse\?$", rows[1])
    assert "gitk" not in text


@pytest.mark.parametrize("label", hostile.LABELS)
def test_a_strangers_labels_do_not_break_it(tmp_path: Path, label: str) -> None:
    for name, stalled in (("6.12.1", 5.0), ("7.2.3", 50.0)):
        facts: dict[str, Any] = hostile.FACTS | {
            "label": label + name,
            "kernel": {"release": f"{name}{label}", "version": label, "spec": label},
            "knobs": [],
        }
        runs = {name: tuple(stalled + n for n in range(5))}
        stalling_campaign(tmp_path, runs, **facts)
    text_of(compare(load_campaign(tmp_path), force=False))


def test_it_is_redacted_as_the_bundle_is(campaign: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(campaign, tmp_path / "c"))
    plan = tomllib.loads((folder / "plan.toml").read_text())
    plan["variant"][1]["kernel"] = "/home/jdoe-agent/linux"
    (folder / "plan.toml").write_text(tomli_w.dumps(plan))
    for path in (folder / NEW).glob("*/meta.json"):
        facts = json.loads(path.read_text())
        facts["kernel"]["spec"] = "/home/jdoe-agent/linux"
        facts["label"] = "7.2.13-jdoe-agent"
        path.write_text(json.dumps(facts))
    (tmp_path / "r").mkdir()
    told = in_bundle(bundle.write(compare(load_campaign(folder)), tmp_path / "r"))
    assert b"jdoe" not in told and b"7.2.13-<user-1>" in told
