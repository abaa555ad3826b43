# SPDX-License-Identifier: GPL-2.0-or-later
"""A real kernel of Debian's source, by the suite's own compilers: bytes, time, options, changes."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from setup import cache, kconfig, kernels
from setup.trees import build, configs, debian_source, hunk_check
from setup.trees.sources import git
from tests.conftest import MEASURED
from workloads.registry import every

SUITE = Path(__file__).resolve().parent.parent.parent
SPEC = "debian-source:7.2"
FIX = SUITE / "docs/example/laptop-no-io-reclaim/fix.patch"


@pytest.mark.slow
@pytest.mark.timeout(6 * 3600)
def test_a_real_kernel_is_built_the_same_again_and_another_with_a_patch(
    monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    def timed(what: str, spec: str) -> kernels.Kernel:
        began = time.monotonic()
        kernel = kernels.resolve(spec)
        record_property(MEASURED, f"{what}: {time.monotonic() - began:.0f} s")
        return kernel

    first = timed("a kernel of Debian's source, or from the cache", SPEC)
    assert kernels.image_release(first.image) == first.release
    for workload in every().values():
        for fs in sorted(kconfig.BY_FILE_SYSTEM):
            kconfig.check(first, fs, True, workload=workload.name, needs=workload.config)
    assert first.config is not None and kconfig.recommended(first.config) == []
    assert kconfig.swaps_lacking(first.config) == {}
    monkeypatch.setattr(build, "KIND", "built-again")
    try:
        again = timed("the same again, from ccache", SPEC)
        assert again.image != first.image and again.image_digest == first.image_digest
        patched = timed("the same with four lines of mm/vmscan.c", f"{SPEC},patch={FIX}")
        assert patched.label == f"{first.label}+fix"
        assert patched.image_digest != first.image_digest
        assert patched.config_digest == first.config_digest
    finally:
        shutil.rmtree(cache.root() / "built-again", ignore_errors=True)


@pytest.mark.slow
@pytest.mark.timeout(2 * 3600)
def test_a_changed_file_is_compiled_and_linked_without_a_whole_kernel() -> None:
    source = debian_source.from_debian(debian_source.wanted_of(SPEC))
    path = "mm/vmscan.c"
    text = git(["cat-file", "blob", f"{source.tree}:{path}"], source.objects).stdout
    used = b"\nvoid wakeup_kswapd("  # by mm/page_alloc.c
    assert text.count(used) == 1
    missing = b"\nextern int not_there(void);\nint another(void);\n"
    missing += b"int another(void) { return not_there(); }\n"
    with hunk_check.checking(source, configs.find(), [path, "mm/not-built.c"]) as check:

        def problem(data: bytes, *, linked: bool) -> str:
            return check.problem({path: data}, linked=linked)

        assert problem(text, linked=True) == ""
        broken = text.replace(used, b"\nint broken = no_such_thing;" + used)
        assert problem(broken, linked=False).startswith("mm/vmscan.c:")
        assert "no_such_thing" in problem(broken, linked=True)
        # What only the linker notices.
        assert problem(text + missing, linked=False) == ""
        assert problem(text + missing, linked=True) == "undefined reference to not_there"
        renamed = text.replace(used, b"\nvoid another_name(")
        assert problem(renamed, linked=False) == ""
        assert problem(renamed, linked=True) == "undefined reference to wakeup_kswapd"
        assert problem(text, linked=True) == ""
