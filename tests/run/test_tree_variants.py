# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built, as variants of a campaign: which there are, and which are left out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from contract.variant import Variant
from errors import Exit, UserError
from run import checks, preparation
from run.arguments import parse
from run.campaign import Campaign
from run.changed_kernels import built
from run.identity import identified
from setup import kernels
from setup.kernels import Kernel
from setup.trees.failures import DoesNotCompile
from tests.support.fake_kernel_tree import Tree, on_the_host


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    on_the_host(tmp_path, monkeypatch)
    return Tree(tmp_path / "linux")


def test_each_kernel_is_followed_by_itself_with_each_change() -> None:
    argv = ["--kernel", "git:~/linux@v7.2", "--kernel", "debian:6.12", "--patch", "a.patch"]
    argv += ["--revert", "acd22fbb9f47", "--patch", "a.patch b.patch", "--swap", "zram"]
    found = parse([*argv, "--kernel-config", "host"]).variants
    assert [(one.kernel, one.swap.kind) for one in found] == [
        ("git:~/linux@v7.2,config=host", "zram"),
        ("git:~/linux@v7.2,patch=a.patch,config=host", "zram"),
        ("git:~/linux@v7.2,revert=acd22fbb9f47,config=host", "zram"),
        ("git:~/linux@v7.2,patch=a.patch b.patch,config=host", "zram"),
        ("debian:6.12", "zram"),
    ]
    said = identified(parse(argv)).variants[3].kernel
    at = Path.cwd()
    assert said == f"git:{Path.home()}/linux@v7.2,patch={at}/a.patch {at}/b.patch"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--patch", "x"], "--patch needs a --kernel git:PATH@REV or debian-source:VERSION"),
        (["--kernel", "debian:7.2", "--revert", "x"], "--revert needs a --kernel git:PATH@REV"),
        (["--kernel-config", "host"], "--kernel-config needs a --kernel git:PATH@REV"),
        (["--kernel", "git:.", "--patch", ""], "argument --patch: it is empty"),
        (
            ["--kernel", "git:.", "--patch", "x", "--label", "a"],
            "1 --label for 2 kernels: as many, or none",
        ),
    ],
)
def test_changes_that_are_of_no_kernel_are_usage_errors(
    capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    assert caught.value.code == Exit.USAGE
    assert said in capsys.readouterr().err


def test_a_missing_patch_is_said_before_anything_is_made(tree: Tree, tmp_path: Path) -> None:
    options = parse(["--kernel", f"git:{tree.path}@v7.2", "--patch", "no.patch", "--out", "x"])
    with pytest.raises(UserError, match=r"no such patch: .*no\.patch") as caught:
        checks.check(replace(options, out=str(tmp_path / "out")))
    assert caught.value.status is Exit.USAGE


def test_a_plan_says_a_changed_kernel_by_its_spec(tree: Tree, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(f"[[variant]]\nkernel = 'git:{tree.path}@v7.2,patch=a.patch b.patch'\n")
    (found,) = parse(["--plan", str(plan)]).variants
    assert found.kernel == f"git:{tree.path}@v7.2,patch=a.patch b.patch"


class Guest(NamedTuple):
    kernel: Kernel


class Ready(NamedTuple):
    variant: Variant
    guest: Guest


def resolver(tree: Tree) -> Callable[[str], Kernel]:
    return lambda spec: kernels.resolve(spec)


def test_what_cannot_be_built_is_left_out_with_its_log_and_the_others_go_on(
    tree: Tree, tmp_path: Path
) -> None:
    breaks = tree.change("mm/vmscan.c", 3, "#error broken")
    tree.change("mm/vmscan.c", 3, "int mended;")
    lines: list[str] = []
    wanted = [f"git:{tree.path}@{name}" for name in ("v7.2", breaks, "master", "master")]
    wanted.append(f"git:{tree.path}@master,revert={breaks}")
    place = tmp_path / "campaign"
    resolved = built.resolve_each(wanted, resolver(tree), place, lines.append)
    assert list(resolved.kernels) == [wanted[0], wanted[2]]
    assert list(resolved.not_built) == [wanted[1], wanted[4]]
    broken = f"v7.2-1-g{breaks[:12]}"
    log = place / f"{broken}.build.log"
    assert lines[0] == (
        f"  left out: {broken} does not compile: mm/vmscan.c:1:2: error: #error as asked; "
        f"its log is {log}"
    )
    assert "4:#error broken" in log.read_text()
    assert "cannot be reverted" in lines[1] and len(list(place.iterdir())) == 2
    with pytest.raises(UserError, match="does not compile"):
        built.resolve_each(wanted[1:2], resolver(tree), place, lines.append)


def test_only_a_kernels_own_failure_leaves_it_out(tmp_path: Path) -> None:
    def no_tools(spec: str) -> Kernel:
        raise UserError("no compiler")

    with pytest.raises(UserError, match="no compiler"):
        built.resolve_each(["git:x", "git:y"], no_tools, tmp_path, print)


def test_the_same_binary_is_one_kernel(tree: Tree) -> None:
    tree.change("fs/unused.c", 0, "int other;")
    tree.change("mm/swap.c", 0, "int changed;")
    said: list[str] = []

    def ready(spec: str) -> Ready:
        return Ready(Variant(spec), Guest(kernels.resolve(spec)))

    base, same = ready(f"git:{tree.path}@v7.2"), ready(f"git:{tree.path}@master~1")
    other, control = ready(f"git:{tree.path}@master"), ready(f"git:{tree.path}@v7.2")
    apart = Ready(replace(same.variant, append="quiet"), same.guest)
    everything = [base, same, other, control, apart]
    # A kernel that was asked for twice is a control; with another command line it is another one.
    assert built.without_twins(everything, [], said.append) == [base, other, control, apart]
    name = same.guest.kernel.label
    assert said == [f"  {name}: the same binary as v7.2, so one kernel: not run twice"]
    # Its runs that are there go on.
    stored = Ready(replace(same.variant, label="stored"), same.guest)
    kept = built.without_twins([base, stored], [stored.variant], said.append)
    assert kept == [base, stored]
    with pytest.raises(UserError, match=rf"nothing to compare: {name} is the same binary as v7\.2"):
        built.without_twins([base, same], [], said.append)
    assert built.without_twins([base], [], said.append) == [base]


def test_preparing_leaves_out_what_cannot_be_built(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(spec: str, mirror: str | None) -> Kernel:
        if "patch" in spec:
            raise DoesNotCompile("v7.2+fix does not compile: x", log="all of it", label="v7.2+fix")
        return kernels_resolve(spec)

    kernels_resolve = kernels.resolve
    monkeypatch.setattr("setup.kernels.resolve", resolve)
    monkeypatch.setattr("run.checks.check_config", lambda *_: None)
    argv = ["--kernel", f"git:{tree.path}@v7.2", "--patch", "x.patch", "--out", str(tmp_path / "c")]
    found = preparation._resolved(parse(argv), lambda variant: variant.kernel)
    assert [one.kernel.label for one in found] == ["v7.2"]
    assert (tmp_path / "c/v7.2+fix.build.log").read_text().endswith("all of it")


def test_a_campaign_goes_on_with_the_commit_that_its_runs_had(tree: Tree, tmp_path: Path) -> None:
    spec = f"git:{tree.path}@master"
    options = parse(["--kernel", spec, "--out", str(tmp_path / "c")])
    kernel = kernels.resolve(spec)
    (entered,) = Campaign(options, ()).enter([(options.variants[0], kernel)])
    assert entered.label == "v7.2"
    tree.change("mm/swap.c", 0, "int later;")
    again = parse(["--resume", str(tmp_path / "c")])
    pinned = Campaign(again, ()).pinned(again.variants[0])
    assert pinned == f"git:{tree.path}@{tree.first}"
    assert kernels.resolve(pinned).image_digest == kernel.image_digest


def test_what_was_changed_is_kept_beside_the_config(tree: Tree, tmp_path: Path) -> None:
    breaks = tree.change("mm/swap.c", 0, "int changed;")
    specs = [f"git:{tree.path}@master", f"git:{tree.path}@master,revert={breaks}"]
    options = parse([*("--kernel", specs[0], "--kernel", specs[1]), "--out", str(tmp_path / "c")])
    found = [(one, kernels.resolve(one.kernel)) for one in options.variants]
    plain, reverted = Campaign(options, ()).enter(found)
    assert not (tmp_path / "c" / plain.label / "changes.patch").exists()
    patch = (tmp_path / "c" / reverted.label / "changes.patch").read_text()
    assert patch.startswith("diff --git a/mm/swap.c b/mm/swap.c\n") and "\n-int changed;" in patch
