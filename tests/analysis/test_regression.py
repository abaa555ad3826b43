# SPDX-License-Identifier: GPL-2.0-or-later
"""Of which kernels a regression can be reported: known versions, and known pairs."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.reading.kernel_version import introduced_in, kernel_version
from analysis.reading.load import Run, load_campaign
from analysis.verdicts.compare import compare
from analysis.verdicts.regression import Regression, regression
from tests.support.verdicts import stalling_run


def run_of(**kernel: str) -> Run:
    return Run(Path("x"), "x", 1, {"kernel": kernel}, {}, [], {}, {}, 0.0, [])


@pytest.mark.parametrize(
    ("release", "version", "tag", "commit"),
    [
        ("6.12.118+deb13-cloud-amd64", "#1 SMP Debian 6.12.118-1 (2026)", "v6.12.118", ""),
        ("6.1.0-56-cloud-amd64", "#1 SMP Debian 6.1.192-2 (2026-11-16)", "v6.1.192", ""),
        ("7.3.4+deb13-amd64", "#1 SMP Debian 7.3.4-1~bpo13+1 (2026)", "v7.3.4", ""),
        ("6.13-rc7-amd64", "#1 SMP Debian 6.13~rc7-1~exp1 (2025)", "v6.13-rc7", ""),
        ("6.12.0", "#1 SMP", "v6.12", ""),
        ("7.3.0-rc2-00123-gabcdef123456", "#5", "v7.3-rc2", "abcdef123456"),
        ("7.3.0-rc2-00123-gabcdef123456-dirty", "#5", "v7.3-rc2", ""),
        ("6.8.0-48-generic", "#48-Ubuntu SMP", "v6.8", ""),
    ],
)
def test_what_kernels_call_themselves(release: str, version: str, tag: str, commit: str) -> None:
    found = kernel_version(run_of(release=release, version=version))
    assert found is not None and (found.tag, found.commit) == (tag, commit)


def test_versions_are_ordered_as_linux_was_released() -> None:
    releases = ["5.10.262", "6.1.192", "6.12.0-rc7", "6.12.0", "6.12.3", "7.0.0-rc1"]
    found = [kernel_version(run_of(release=one)) for one in releases]
    orders = [one.order for one in found if one is not None]
    assert len(orders) == len(releases) and orders == sorted(set(orders))


def test_commits_are_a_narrower_range_than_versions() -> None:
    good, bad = (kernel_version(run_of(release=f"7.3.0-rc2-0001-g{c * 12}")) for c in "ab")
    tagged = kernel_version(run_of(release="7.2.13"))
    assert introduced_in(good, bad) == f"{'a' * 12}..{'b' * 12}"
    assert introduced_in(tagged, bad) == "v7.2.13..v7.3-rc2"
    assert introduced_in(tagged, tagged) == introduced_in(None, bad) == ""


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_name_of_a_kernel_raises(release: str, version: str) -> None:
    found = kernel_version(run_of(release=release, version=version))
    assert introduced_in(found, found) == ""
    if found is not None:
        assert found.tag.startswith("v") and found.tag.isascii()


LESS, MORE = (10.0, 11.0, 12.0, 13.0, 14.0), (30.0, 31.0, 32.0, 33.0, 34.0)


def judged(folder: Path, *variants: tuple[str, tuple[float, ...], dict[str, Any]]) -> Any:
    """The regression of a campaign of these variants: label, stalled seconds, facts."""
    orders = iter(range(1, 1000))
    for n in range(5):
        for label, stalled, facts in variants:
            kernel = {"release": label.partition("+")[0], "image_digest": label}
            whole = {"kernel": kernel, "order": next(orders), "knobs": [], **facts}
            stalling_run(folder / label / str(n + 1), stalled[n], **whole)
    (folder / "plan.toml").write_text(f'format = 1\nbaseline = "{variants[0][0]}"\n')
    return regression(compare(load_campaign(folder), force=False))


def test_the_newer_kernel_is_the_regression_whichever_is_the_baseline(tmp_path: Path) -> None:
    for place, order in (("a", 1), ("b", -1)):
        found = judged(tmp_path / place, *[("6.12.1", LESS, {}), ("7.2.3", MORE, {})][::order])
        assert isinstance(found, Regression)
        assert (found.old, found.new) == ("6.12.1", "7.2.3")
        assert found.ratio == pytest.approx(32 / 12, rel=0.05)


def test_the_largest_of_several_is_reported(tmp_path: Path) -> None:
    worse = tuple(2 * one for one in MORE)
    found = judged(tmp_path, ("6.12.1", LESS, {}), ("6.17.2", MORE, {}), ("7.2.3", worse, {}))
    assert isinstance(found, Regression) and found.new == "7.2.3"


@pytest.mark.parametrize(
    ("other", "stalled", "facts", "why"),
    [
        ("6.1.9", MORE, {}, "6.1.9 is worse than 6.12.1, but it is the older kernel"),
        ("7.2.3", LESS, {}, "no kernel was shown to be worse than another one"),
        ("7.2.3", MORE, {"append": "mitigations=off"}, "differ in command line, not in the kernel"),
        ("6.12.1+patched", MORE, {}, "neither versions nor commits tell which change made it so"),
        (
            "6.12.1+slow",
            MORE,
            {"kernel": {"release": "6.12.1", "image_digest": "6.12.1"}},
            "but both are the same kernel",
        ),
    ],
)
def test_what_is_no_regression_of_a_kernel_says_why(
    tmp_path: Path, other: str, stalled: tuple[float, ...], facts: dict[str, Any], why: str
) -> None:
    found = judged(tmp_path, ("6.12.1", LESS, {"append": ""}), (other, stalled, facts))
    assert isinstance(found, str) and why in found


def test_one_variant_has_nothing_to_regress_from(tmp_path: Path) -> None:
    assert judged(tmp_path, ("6.12.1", LESS, {})) == (
        "there is one variant, and nothing to compare it with"
    )
