# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs need is looked at before anything is built or booted."""

from pathlib import Path

import pytest

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
    monkeypatch.setattr("setup.kernels.resolve", lambda spec, mirror: kernel)
    monkeypatch.setattr(
        "concurrent.futures.ThreadPoolExecutor", lambda: pytest.fail("something was made")
    )
    options = parse(["--workload", "memcg-dirty", "--music", str(tmp_path)])
    with pytest.raises(UserError, match="for --workload memcg-dirty: CONFIG_MEMCG ") as refused:
        preparation.make_ready(options)
    assert refused.value.status is Exit.MISSING


def test_the_fragment_has_what_the_workloads_need() -> None:
    for one in every().values():
        lacking = kconfig.missing(kconfig.FRAGMENT, "ext4", True, needs=one.config, no_modules=True)
        assert lacking == [], one.name
