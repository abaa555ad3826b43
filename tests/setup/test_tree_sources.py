# SPDX-License-Identifier: GPL-2.0-or-later
"""Sources of kernels: revisions, work trees, folders, patches and reverts; nothing is touched."""

import subprocess
from pathlib import Path

import pytest

from errors import Exit, UserError
from setup.trees import changes, sources
from setup.trees.failures import PatchDoesNotApply, RevertConflicts
from tests.support.fake_kernel_tree import FILES, VMSCAN, Tree


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Tree(tmp_path / "linux")


def text(source: sources.Source, name: str = "mm/vmscan.c") -> str:
    done = sources.git(["cat-file", "blob", f"{source.tree}:{name}"], source.objects)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def patch_of(tree: Tree, commit: str, place: Path) -> Path:
    place.write_text(tree.git("format-patch", "-1", "--stdout", commit) + "\n")
    return place


def test_a_revision_is_named_as_its_users_name_it(tree: Tree) -> None:
    assert sources.from_git(tree.path, "v7.2").label == "v7.2"
    changed = tree.change("mm/vmscan.c", 3, "int changed;")
    found = sources.from_git(tree.path, "master")
    assert found.label == f"v7.2-1-g{changed[:12]}"
    assert found.commit == changed and found.is_committed
    assert text(found) != VMSCAN and text(sources.from_git(tree.path, "HEAD~1")) == VMSCAN
    tree.git("tag", "-d", "v7.2")
    assert sources.from_git(tree.path, changed).label == changed[:12]


def test_the_work_tree_as_it_is_and_the_users_repository_as_it_was(tree: Tree) -> None:
    clean = sources.from_git(tree.path)
    assert (clean.label, clean.notes) == ("v7.2", ())
    tree.write("mm/vmscan.c", VMSCAN.replace("int line_3;", "int mine;"))
    tree.write("mm/new.c", "int new;\n")
    tree.write("mm/built.o", "not a source\n")
    tree.git("add", "mm/vmscan.c")
    tree.write("mm/vmscan.c", VMSCAN.replace("int line_3;", "int later;"))
    before = tree.state()
    dirty = sources.from_git(tree.path)
    assert tree.state() == before
    assert dirty.label == "v7.2-dirty" and not dirty.is_committed
    assert dirty.notes == (
        f"git:{tree.path}: the work tree is built with its changes: 2 files not as in "
        f"{tree.first[:12]}: mm/new.c, mm/vmscan.c",
    )
    assert "int later;" in text(dirty) and text(dirty, "mm/new.c") == "int new;\n"
    listed = sources.git(["ls-tree", "-r", "--name-only", dirty.tree], dirty.objects)
    assert b"built.o" not in listed.stdout
    assert sources.from_git(tree.path, "HEAD").tree == clean.tree


def test_a_linked_work_tree_and_a_bare_clone_are_read_as_well(tree: Tree, tmp_path: Path) -> None:
    tree.git("worktree", "add", "-q", str(tmp_path / "linked"), "v7.2")
    (tmp_path / "linked/mm/swap.c").write_text("int linked;\n")
    assert text(sources.from_git(tmp_path / "linked"), "mm/swap.c") == "int linked;\n"
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--shared", tree.path, tmp_path / "bare"], check=True
    )
    assert text(sources.from_git(tmp_path / "bare", "v7.2")) == VMSCAN
    with pytest.raises(UserError, match=r"has no work tree \(name a revision"):
        sources.from_git(tmp_path / "bare")


def test_the_users_settings_and_a_surrounding_git_change_no_byte(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere/index")
    (tree.path / "mm/crlf.c").write_bytes(b"int crlf;\r\n")
    found = sources.git(["version"])
    assert found.returncode == 0
    assert text(sources.from_git(tree.path), "mm/crlf.c") == "int crlf;\r\n"


def test_a_folder_that_is_no_repository_has_the_same_tree(tree: Tree, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / "plain" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plain" / name).write_text(content)
    found = sources.from_folder(tmp_path / "plain")
    assert (found.label, found.tree) == ("plain", sources.from_git(tree.path).tree)
    (tmp_path / "plain/mm/swap.c").write_text("int other;\n")
    again = sources.from_folder(tmp_path / "plain")
    assert again.tree != found.tree and text(again, "mm/swap.c") == "int other;\n"


@pytest.mark.parametrize(
    ("path", "revision", "said"),
    [
        ("linux", "v7.3", r"has no revision 'v7\.3' \(a tag, a branch or a commit"),
        ("linux", "--output=x", r"has no revision '--output=x'"),
        ("nowhere", "v7.2", "is no git repository"),
        (".", "", "is no git repository"),
    ],
)
def test_what_is_not_there_is_a_usage_error(
    tree: Tree, tmp_path: Path, path: str, revision: str, said: str
) -> None:
    with pytest.raises(UserError, match=said) as caught:
        sources.from_git(tmp_path / path, revision)
    assert caught.value.status is Exit.USAGE


def test_a_repository_of_something_else_is_refused(tree: Tree) -> None:
    tree.git("rm", "-q", "Kconfig")
    tree.commit("no kernel any more")
    with pytest.raises(UserError, match=r"is not a kernel source \(it lacks Kbuild, Kconfig"):
        sources.from_git(tree.path, "HEAD")


def test_a_patch_makes_another_source(tree: Tree, tmp_path: Path) -> None:
    base = sources.from_git(tree.path, "v7.2")
    first = patch_of(tree, tree.change("mm/vmscan.c", 3, "int a;"), tmp_path / "0001-mm-a.patch")
    second = patch_of(tree, tree.change("mm/vmscan.c", 30, "int b;"), tmp_path / "b.patch")
    before = tree.state()
    one = changes.patched(base, [first])
    assert one.label == "v7.2+0001-mm-a"
    assert text(one) == VMSCAN.replace("int line_3;", "int a;")
    both = changes.patched(base, [first, second])
    assert both.label == "v7.2+0001-mm-a+b"
    assert both.tree == sources.from_git(tree.path, "master").tree
    # A mailbox with both is the same.
    (tmp_path / "both.mbox").write_bytes(first.read_bytes() + second.read_bytes())
    assert changes.patched(base, [tmp_path / "both.mbox"]).tree == both.tree
    assert tree.state() == before


def test_a_patch_that_does_not_apply_says_where_and_keeps_its_log(
    tree: Tree, tmp_path: Path
) -> None:
    base = sources.from_git(tree.path, "v7.2")
    fix = patch_of(tree, tree.change("mm/vmscan.c", 3, "int a;"), tmp_path / "fix.patch")
    tree.change("mm/vmscan.c", 3, "int b;")
    with pytest.raises(PatchDoesNotApply) as caught:
        changes.patched(sources.from_git(tree.path, "master"), [fix])
    assert "fix.patch does not apply to v7.2-2-g" in str(caught.value)
    assert str(caught.value).endswith(" in mm/vmscan.c")
    caught.value.keep_log(tmp_path / "out/x.log")
    kept = (tmp_path / "out/x.log").read_text()
    assert kept.startswith(f"{caught.value}\n") and "patch failed: mm/vmscan.c:1" in kept
    there = changes.patched(base, [fix])
    with pytest.raises(PatchDoesNotApply, match="this source has all of it already"):
        changes.patched(there, [fix])
    (tmp_path / "empty.patch").write_text("no patch\n")
    with pytest.raises(PatchDoesNotApply, match=r"empty\.patch does not apply to v7\.2: No valid"):
        changes.patched(base, [tmp_path / "empty.patch"])
    with pytest.raises(UserError, match="No such file") as missing:
        changes.patched(base, [tmp_path / "none.patch"])
    assert missing.value.status is Exit.USAGE


def test_a_commit_is_reverted_under_later_ones(tree: Tree) -> None:
    culprit = tree.change("mm/vmscan.c", 3, "int culprit;")
    tree.change("mm/vmscan.c", 30, "int later;")
    # Not the lines that the commit has touched, but among its context.
    tree.change("mm/vmscan.c", 5, "int near;")
    before = tree.state()
    found = changes.reverted(sources.from_git(tree.path, "master"), [culprit[:12]])
    assert tree.state() == before
    assert found.label.endswith(f"-revert-{culprit[:12]}")
    after = VMSCAN.replace("line_30;", "later;").replace("line_5;", "near;")
    assert text(found) == after
    fixed = changes.reverted(changes.reverted(found, [tree.git("rev-parse", "HEAD~1")]), ())
    assert fixed.label.count("-revert-") == 2
    assert text(fixed) == VMSCAN.replace("line_5;", "near;")


def test_a_revert_that_conflicts_names_the_file(tree: Tree) -> None:
    culprit = tree.change("mm/vmscan.c", 3, "int culprit;")
    tree.change("mm/vmscan.c", 3, "int rewritten;")
    with pytest.raises(RevertConflicts) as caught:
        changes.reverted(sources.from_git(tree.path, "master"), [culprit])
    said = str(caught.value)
    assert f"{culprit[:12]} cannot be reverted on v7.2-2-g" in said
    assert said.endswith(": conflict in mm/vmscan.c") and caught.value.log
    with pytest.raises(RevertConflicts, match=r"it is not among the commits of v7\.2\)$"):
        changes.reverted(sources.from_git(tree.path, "v7.2"), [culprit])


def test_what_cannot_be_reverted_is_a_usage_error(tree: Tree, tmp_path: Path) -> None:
    base = sources.from_git(tree.path, "v7.2")
    with pytest.raises(UserError, match="has no commit 0123456789ab"):
        changes.reverted(base, ["0123456789ab"])
    tree.git("checkout", "-q", "-b", "side")
    tree.change("mm/swap.c", 0, "int side;")
    tree.git("checkout", "-q", "master")
    tree.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    merge = tree.git("rev-parse", "HEAD")
    with pytest.raises(UserError, match="is a merge"):
        changes.reverted(sources.from_git(tree.path, "master"), [merge])
    with pytest.raises(UserError, match="has no history"):
        changes.reverted(sources.from_folder(tree.path), [tree.first])
