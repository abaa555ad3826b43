# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's sources as a tree: from a signed mirror, by the real apt, into a git tree."""

from pathlib import Path

import pytest

from errors import UserError
from setup import apt, kernels, mirrors, package_lists
from setup.trees import changes, debian_source, sources, specs
from tests.support.fake_kernel_tree import FILES, Tree
from tests.support.kernel_packages import Archive

OLD, NEW, NEXT = "7.2.9-1", "7.2.13-1", "7.3~rc7-1~exp1"
MORE = {"scripts/check.sh": "#!/bin/sh\n", "scripts/link": "-> check.sh", "mm/ä b.c": "int ä;\n"}


@pytest.fixture
def archive(tmp_path: Path, gnupg: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """The only mirror of this machine: sid and experimental with sources of three kernels."""
    mirrors.say_once.cache_clear()
    made = Archive(tmp_path / "debian", gnupg)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(apt, "KEYRING", made.keyring)
    (tmp_path / "etc/apt.conf.d").mkdir(parents=True)
    monkeypatch.setattr(apt, "HOST", tmp_path / "etc")
    found = [mirrors.Source(f"file:{made.folder}", ("sid",), ("main",), "")]
    monkeypatch.setattr(mirrors, "host_sources", lambda etc: found)
    records = [made.kernel("7.2.13", NEW)[0], made.source("7.2", NEW, FILES | MORE)[0]]
    older = FILES | {"mm/swap.c": "int older;\n"}
    made.publish("sid", [*records, made.source("7.2", OLD, older)[0]])
    made.publish("experimental", [made.source("7.3", NEXT, FILES)[0]])
    return made


def text(source: sources.Source, name: str) -> str:
    done = sources.git(["cat-file", "blob", f"{source.tree}:{name}"], source.objects)
    return done.stdout.decode()


def test_the_newest_source_of_a_version_is_a_tree_as_git_would_make_it(
    archive: Archive, tmp_path: Path
) -> None:
    found = debian_source.from_debian("7.2")
    assert (found.label, found.package, found.repository) == ("v7.2.13", NEW, None)
    tree = Tree(tmp_path / "linux")
    tree.write("scripts/check.sh", MORE["scripts/check.sh"])
    (tree.path / "scripts/check.sh").chmod(0o755)
    (tree.path / "scripts/link").symlink_to("check.sh")
    tree.write("mm/ä b.c", MORE["mm/ä b.c"])
    tree.commit("the same")
    assert found.tree == sources.from_git(tree.path, "HEAD").tree
    # Nothing of the package is left but the tree, which is not fetched again.
    assert [path.name for path in (apt.home() / "archives").iterdir()] == ["partial"]
    for path in (archive.folder / "pool").glob("*.deb"):
        path.unlink()
    assert debian_source.from_debian("7.2.13-1").tree == found.tree
    fix = b"--- a/mm/swap.c\n+++ b/mm/swap.c\n@@ -1 +1 @@\n-int swap;\n+int fixed;\n"
    fixed = changes.patched_with(found, fix, "fix", "v7.2.13+fix")
    assert text(fixed, "mm/swap.c") == "int fixed;\n"
    with pytest.raises(UserError, match=r"v7\.2\.13 has no history to find the commit abcdef0 in"):
        changes.reverted(found, ["abcdef0"])


@pytest.mark.parametrize(
    ("wanted", "label"),
    [("7.2.9", "v7.2.9"), ("7.3", "v7.3-rc7"), ("7.3-rc7", "v7.3-rc7"), ("sid", "v7.2.13")],
)
def test_what_a_version_or_a_suite_means(archive: Archive, wanted: str, label: str) -> None:
    assert debian_source.from_debian(wanted).label == label


def test_one_that_is_gone_is_named_and_the_next_one_taken(
    archive: Archive, capsys: pytest.CaptureFixture[str]
) -> None:
    next((archive.folder / "pool").glob(f"linux-source-7.2_{NEW}*")).unlink()
    found = debian_source.from_debian("7.2")
    assert found.label == "v7.2.9" and text(found, "mm/swap.c") == "int older;\n"
    said = capsys.readouterr().err
    assert f"debian-source:7.2: listed, but not on the mirror: {NEW}; taken: {OLD}" in said


def test_what_the_mirror_lacks_lists_what_it_has(archive: Archive) -> None:
    with pytest.raises(UserError) as caught:
        debian_source.from_debian("6.5")
    assert str(caught.value) == (
        "the mirror has no kernel source 6.5 (sources: 7.2.9, 7.2.13, 7.3-rc7)"
    )


def test_a_forged_package_is_refused_and_leaves_nothing(archive: Archive) -> None:
    path = next((archive.folder / "pool").glob(f"linux-source-7.2_{NEW}*"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"downloading linux-source-7\.2"):
        debian_source.from_debian("7.2")


def test_a_damaged_source_is_one_line(archive: Archive, tmp_path: Path) -> None:
    record, path = archive.source("7.4", "7.4.1-1", {f"mm/{n}.c": f"{n}" * n for n in range(99)})
    assert "linux-source-7.4" in record
    whole = path.read_bytes()
    (tmp_path / "x").mkdir()
    for keep in (0.2, 0.7, 0.99):
        path.write_bytes(whole[: int(len(whole) * keep)])
        with pytest.raises(UserError) as caught:
            debian_source._import(path, tmp_path / f"x/{keep}")
        assert "\n" not in str(caught.value)


def test_lists_of_before_there_were_sources_are_fetched_again(archive: Archive) -> None:
    package_lists.update()
    index = apt.home() / "index.json"
    index.write_text(index.read_text().replace('"format": 2', '"format": 1'))
    assert package_lists.stored() is None
    assert debian_source.from_debian("7.3").label == "v7.3-rc7"
    # Sources are no kernels.
    assert kernels.describe("debian:7.2").startswith("Debian's kernel 7.2.13 (7.2.13-cloud-amd64)")


def test_a_dry_run_says_which_source_as_far_as_it_is_known(archive: Archive) -> None:
    spec = "debian-source:7.2,patch=/dev/null"
    assert debian_source.describe("7.2").startswith("Debian's source of 7.2 (package lists")
    package_lists.update()
    assert debian_source.describe("7.2") == f"Debian's source {NEW} (0 MB to fetch)"
    debian_source.from_debian("7.2")
    assert debian_source.describe("7.2") == f"Debian's source {NEW} (in the cache)"
    with pytest.raises(UserError, match="no such patch"):
        specs.describe(spec)


def test_a_campaign_goes_on_with_the_package_that_its_runs_had() -> None:
    spec = "debian-source:7.2,patch=/x/fix.patch"
    assert specs.pinned(spec, NEW) == f"debian-source:{NEW},patch=/x/fix.patch"
