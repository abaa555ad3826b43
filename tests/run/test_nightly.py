# SPDX-License-Identifier: GPL-2.0-or-later
"""A night measures what is new, and ends with the trend's status; the timer's units are right."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from contract import checkout
from contract.swap import ON_DISK
from errors import Exit, UserError
from run import nightly
from run.arguments import parse as parse_run_test
from run.nightly import New, command_of, is_unfinished, main, new_kernels, nights_of
from run.nightly_options import parse
from setup.kernels import Kernel
from tests.support.kernel_packages import bz_image

SUITE = Path(__file__).resolve().parents[2]
UNITS = SUITE / "setup" / "systemd"
# In place of run_test.sh: a campaign of these kernels, whose runs stall as their images say.
STAND_IN = """\
import sys, time
from pathlib import Path
sys.path.insert(0, {suite!r})
from run.plans.plan_variants import entry_of
from contract.variant import Variant
from setup import kernels
from tests.support.verdicts import stalling_run
import tomli_w
words = sys.argv[1:]
said = [(words[n], words[n + 1]) for n in range(len(words) - 1)]
out = Path(dict(said).get("--out") or dict(said)["--resume"])
runs = int(dict(said).get("--runs", 5))
specs = [value for key, value in said if key == "--kernel"]
labels = [value for key, value in said if key == "--label"]
plan = {{"format": 1, "runs": runs, "variant": [], "run": []}}
for label, spec in zip(labels, specs):
    kernel = kernels.resolve(spec)
    plan["variant"].append(entry_of(Variant(spec, label), label, kernel))
    plan["run"].append({{"variant": label, "number": 1, "order": 1, "date": {date!r}}})
    slow = b"SLOW" in kernel.image.read_bytes()
    for run in range(1, runs + 1):
        stalled = (200.0 if slow else 100.0) + 7 * run + {night} * 3 % 5
        stalling_run(out / label / str(run), stalled, kernel={{"release": kernel.release}})
out.mkdir(parents=True, exist_ok=True)
(out / "plan.toml").write_text(tomli_w.dumps(plan))
sys.exit({status})
"""


def kernel(label: str, digest: str, package: str | None = None) -> Kernel:
    image = Path("/boot/vmlinuz")
    return Kernel("spec", label, label, image, None, None, digest, None, package)


def stand_in(folder: Path, night: int, status: int = 0) -> None:
    script = folder / "run_test.sh"
    date = f"2026-11-{night:02d}T01:00:00+0000"
    code = STAND_IN.format(suite=str(SUITE), date=date, night=night, status=status)
    script.write_text(f"#!{sys.executable}\n{code}")
    script.chmod(0o755)


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "suite"
    root.mkdir()
    monkeypatch.setattr(checkout, "ROOT", root)
    monkeypatch.setenv("PYTHONPATH", str(SUITE))
    return root


def image(folder: Path, release: str, more: bytes = b"") -> Path:
    """The next build of one tree, always by the same name."""
    path = folder / "bzImage"
    path.write_bytes(bz_image(release) + more)
    return path


def test_a_regression_is_found_in_the_night_it_comes(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Three nights, the third with a kernel that stalls twice as long, and one without a kernel."""
    nights = tmp_path / "nights"
    for night in range(1, 3):
        stand_in(suite, night)
        built = image(tmp_path, f"7.3.{night}")
        assert main([str(nights), "--kernel", str(built)]) == 0, night
    assert len(nights_of(nights)) == 2
    stand_in(suite, 3)
    built = image(tmp_path, "7.3.3", b"SLOW")
    assert main([str(nights), "--kernel", str(built)]) == 5
    said = capfd.readouterr()
    assert "7.3.3 regressed:" in said.out and "found at once" in said.out
    assert f"--fail-on: {built} is regressed" in said.err
    assert (nights / "trend" / "trend.png").stat().st_size > 10_000
    # The same kernel is no new one; the trend says what it said.
    assert main([str(nights), "--kernel", str(built)]) == 5
    assert f"{built} is 7.3.3: measured as 7.3.3" in capfd.readouterr().out
    assert len(nights_of(nights)) == 3


def test_a_night_that_was_interrupted_goes_on(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    nights = tmp_path / "nights"
    stand_in(suite, 1)
    built = image(tmp_path, "7.3.1")
    assert main([str(nights), "--kernel", str(built)]) == 0
    (night,) = nights_of(nights)
    assert not is_unfinished(night)
    shutil.rmtree(night / "7.3.1" / "5")
    assert is_unfinished(night)
    capfd.readouterr()
    assert main([str(nights), "--kernel", str(built), "--dry-run"]) == 0
    assert f"{suite}/run_test.sh --resume {night}\n" in capfd.readouterr().out


def test_what_cannot_be_measured_is_the_status(
    suite: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    built = image(tmp_path, "7.3.1")
    stand_in(suite, 1, status=3)
    assert main([str(tmp_path / "a"), "--kernel", str(built)]) == 3
    # A kernel that hangs is a result.
    stand_in(suite, 1, status=4)
    assert main([str(tmp_path / "b"), "--kernel", str(built)]) == 0
    missing = str(tmp_path / "none")
    assert main([str(tmp_path / "b"), "--kernel", missing]) == Exit.USAGE
    assert f"{missing}: left out this night: unknown kernel" in capfd.readouterr().out
    with pytest.raises(UserError, match="no night has measured"):
        nightly._trend(tmp_path / "c")


def test_a_kernel_that_was_built_anew_has_a_label_of_its_own(tmp_path: Path) -> None:
    night = tmp_path / "2026-11-25"
    night.mkdir()
    (night / "plan.toml").write_text(
        'format = 1\n[[variant]]\nlabel = "6.12.118"\nkernel = "debian:6.12"\nimage_digest = "a"\n'
    )
    resolved = [
        ("debian:6.12", kernel("6.12.118", "a", "6.12.118-1")),
        ("debian:trixie", kernel("6.12.118", "b", "6.12.118-2~bpo13+1")),
        ("debian:sid", kernel("6.12.118", "b", "6.12.118-2~bpo13+1")),
        ("tree", kernel("6.12.118", "c" * 64)),
    ]
    found = new_kernels(resolved, [night])
    assert [(one.spec, one.label) for one in found] == [
        ("debian:trixie", "6.12.118-2-bpo13+1"),
        ("tree", "6.12.118-cccccccc"),
    ]


def test_its_command_is_one_of_run_test(tmp_path: Path) -> None:
    new = [
        New("debian:6.1", "6.1.192", kernel("6.1.192", "a")),
        New("debian:7.3", "7.3.4-1-bpo13+1", kernel("7.3.4", "b")),
    ]
    command = command_of(tmp_path / "2026-11-25", new, 5, [])
    assert command[0] == str(SUITE / "run_test.sh") and os.access(command[0], os.X_OK)
    options = parse_run_test(command[1:])
    assert options.profile == "quick" and options.runs == 5
    assert [one.kernel for one in options.variants] == ["debian:6.1", "debian:7.3"]
    assert {one.swap for one in options.variants} == {ON_DISK}
    more = command_of(tmp_path, new, 3, ["--machine", "ssd"])
    assert parse_run_test(more[1:]).machine == "ssd"


def test_by_default_every_series_of_debian_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setup.package_lists.update", lambda mirror: _Lists())
    monkeypatch.setattr(
        "setup.debian.newest_of_series", lambda packages, flavour: {"6.1": "", "6.12": ""}
    )
    assert nightly.specs_of([], None) == ["debian:6.1", "debian:6.12"]
    assert nightly.specs_of(["debian:sid"], None) == ["debian:sid"]


class _Lists:
    packages: tuple[()] = ()


def test_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["d", "--runs", "0"], ["d", "--frequency", "1"]):
        with pytest.raises(SystemExit) as caught:
            parse(words)
        assert caught.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def _setting(text: str, key: str) -> str:
    (value,) = [line.partition("=")[2] for line in text.splitlines() if line.startswith(f"{key}=")]
    return value


def test_the_timer_starts_the_service_and_that_a_command_that_parses() -> None:
    service = (UNITS / "desktop-freeze-nightly.service").read_text()
    command, *words = _setting(service, "ExecStart").split()
    script = SUITE / command.removeprefix("%h/desktop-freeze/")
    assert script.stat().st_mode & stat.S_IXUSR
    assert parse(words).kernel == [] and parse(words).runs == 5
    assert _setting(service, "WorkingDirectory") == command.rpartition("/")[0]
    # Not %S, which is ~/.config on Debian 12 (systemd 252).
    assert words == ["%h/.local/state/desktop-freeze/nights"]
    for unit in UNITS.iterdir():
        document = _setting(unit.read_text(), "Documentation")
        assert (SUITE / document.removeprefix("file:%h/desktop-freeze/")).is_file()
    assert (UNITS / "desktop-freeze-nightly.timer").is_file()


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    units = []
    for unit in UNITS.iterdir():
        units.append(tmp_path / unit.name)
        text = unit.read_text()
        # The suite is wherever the tests run.
        units[-1].write_text(text.replace("%h/desktop-freeze", str(SUITE)))
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "HOME": str(tmp_path)}
    command = ["systemd-analyze", "--user", "--man=no", "verify", *map(str, units)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    units[0].write_text(units[0].read_text().replace("[Unit]", "[Unit]\nFoo=bar"))
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "'Foo'" in done.stderr  # else it would take anything


def test_the_script_says_usage_before_it_installs_anything() -> None:
    done = subprocess.run(
        [SUITE / "nightly.sh", "d", "--what"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "nightly.sh: " in done.stderr and not done.stdout
    shown = subprocess.run(
        [SUITE / "nightly.sh", "--help"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0 and "usage: ./nightly.sh" in shown.stdout
