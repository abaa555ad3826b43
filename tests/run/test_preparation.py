# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs need is looked at before anything is booted, and what is being built for them ends."""

import signal
import subprocess
import threading
from pathlib import Path

import pytest

from contract import remedy
from errors import Exit, UserError
from run import preparation
from run.arguments import parse
from setup import kconfig
from setup.kernels import Kernel
from workloads.registry import every


def test_a_kernel_without_what_the_workload_needs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text(kconfig.FRAGMENT.read_text().replace("CONFIG_MEMCG=y", ""))
    kernel = Kernel("x", "x", "6.1.0", Path("x"), None, config, "0", "0")
    ended: list[int] = []
    making = threading.Barrier(3)  # the two that are made meanwhile, and who looks for the kernel

    def resolve(spec: str, mirror: str | None) -> Kernel:
        making.wait(60)
        return kernel

    def make_for_an_hour(*_: object, mirror: str | None = None) -> Path:
        with subprocess.Popen(["sleep", "3600"]) as child:
            making.wait(60)
        ended.append(child.returncode)
        raise UserError("what was made was ended")

    monkeypatch.setattr("setup.kernels.resolve", resolve)
    monkeypatch.setattr("setup.userland.tools.root", make_for_an_hour)
    monkeypatch.setattr("setup.image.build", make_for_an_hour)
    options = parse(["--workload", "memcg-dirty", "--music", str(tmp_path)])
    with pytest.raises(UserError, match="for --workload memcg-dirty: CONFIG_MEMCG ") as refused:
        preparation.make_ready(options)
    assert refused.value.status is Exit.MISSING
    assert ended == [-signal.SIGTERM] * 2


def test_the_fragment_has_what_the_workloads_need() -> None:
    for one in every().values():
        lacking = kconfig.missing(kconfig.FRAGMENT, "ext4", True, needs=one.config, no_modules=True)
        assert lacking == [], one.name


def test_a_remedy_that_the_kernel_cannot_have_is_left_out_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    lines = kconfig.FRAGMENT.read_text().splitlines(keepends=True)
    config.write_text("".join(one for one in lines if not one.startswith("CONFIG_LRU_GEN")))
    kernel = Kernel("x", "6.1.0", "6.1.0", Path("x"), None, config, "0", "0")
    monkeypatch.setattr("setup.kernels.resolve", lambda spec, mirror: kernel)
    options = parse(["--remedy", "min-ttl", "--remedy", "swappiness-10", "--out", str(tmp_path)])
    found = preparation._resolved(options, lambda variant: variant.kernel)
    assert [one.variant.remedy for one in found] == ["", "swappiness-10"]
    said = capsys.readouterr().out
    assert said == "  left out: min-ttl: 6.1.0 lacks CONFIG_LRU_GEN\n"


def test_only_a_campaign_with_a_remedy_that_has_packages_has_an_image_of_its_own() -> None:
    plain = parse(["--remedy", "min-ttl"])
    assert preparation.images_packages(plain) == [()]
    asked = parse(["--remedy", "earlyoom"])
    packages = sorted({name for file in remedy.named() for name in remedy.find(file).packages})
    assert {"earlyoom", "nohang", "systemd-oomd"} <= {*packages}
    assert preparation.images_packages(asked) == [tuple(packages)]
    assert preparation.image_packages(asked, "desktop") == tuple(packages)
