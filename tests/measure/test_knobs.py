# SPDX-License-Identifier: GPL-2.0-or-later
"""Knobs are set, read back and put back; on files that answer as the kernel's do."""

from pathlib import Path

import pytest

from errors import UserError
from measure import knobs


@pytest.mark.parametrize(
    ("asked", "read", "is_so"),
    [
        ("10", "10\n", True),
        ("0", "0x0000", True),
        ("7", "0x0007", True),
        ("0", "0x0007", False),
        ("none", "[none] mq-deadline", True),
        ("none", "none [mq-deadline]", False),
        ("1 2", "1\t2", True),
        ("y", "0x0007", False),
        ("10", "", False),
    ],
)
def test_took(asked: str, read: str, is_so: bool) -> None:
    assert knobs.took(asked, read) is is_so


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(knobs, "ROOT", tmp_path)
    vm = tmp_path / "proc/sys/vm"
    vm.mkdir(parents=True)
    (vm / "swappiness").write_text("60\n")
    (vm / "laptop_mode").write_text("0\n")
    return vm


def test_set_and_put_back(root: Path) -> None:
    wanted = [("/proc/sys/vm/swappiness", "10"), ("/proc/sys/{dir}/laptop_mode", "5")]
    with knobs.applied(wanted, {"dir": "vm"}) as done:
        assert (root / "swappiness").read_text() == "10"
        assert (root / "laptop_mode").read_text() == "5"
        assert done[1] == {
            "path": "/proc/sys/vm/laptop_mode",
            "asked": "5",
            "before": "0",
            "read_back": "5",
        }
    assert (root / "swappiness").read_text() == "60"
    assert (root / "laptop_mode").read_text() == "0"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/proc/sys/vm/none", "No such file"),
        ("/proc/sys/{disk}/x", "its braces name no device"),
        ("/proc/sys/{0}/x", "its braces name no device"),
        ("/proc/sys/{fs.x}/x", "its braces name no device"),
        ("/proc/sys/vm", "directory"),
    ],
)
def test_one_that_will_not_do_puts_the_others_back(root: Path, path: str, said: str) -> None:
    wanted = [("/proc/sys/vm/swappiness", "10"), (path, "1")]
    with pytest.raises(UserError, match=said), knobs.applied(wanted, {"fs": "dm-2"}):
        pytest.fail("it was applied")
    assert (root / "swappiness").read_text() == "60"


def test_one_that_does_not_take_its_value(root: Path) -> None:
    (root / "null").symlink_to("/dev/null")
    with pytest.raises(UserError, match="did not take '1': it now reads ''"):  # noqa: SIM117
        with knobs.applied([("/proc/sys/vm/null", "1")], {}):
            pytest.fail("it was applied")


def test_what_a_killed_process_left_is_put_back(root: Path) -> None:
    knob = {"path": "/proc/sys/vm/swappiness", "asked": "10", "before": "60", "read_back": "10"}
    (root / "swappiness").write_text("10\n")
    knobs.put_back([knob])
    assert (root / "swappiness").read_text() == "60"
    # Somebody else has set it since: it is theirs.
    (root / "swappiness").write_text("33\n")
    knobs.put_back([knob])
    assert (root / "swappiness").read_text() == "33\n"
