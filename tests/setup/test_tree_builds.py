# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built: from a small source whose Makefile behaves as Kbuild does."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import Exit, UserError
from setup import cache, config_file, kconfig, kernels
from setup.trees import build, changes, configs, sources, specs, toolchain
from setup.trees.failures import DoesNotCompile, NotBuilt, OptionLost
from setup.trees.progress import Follower, Progress, steps_of
from setup.userland import tools
from tests.support.fake_kernel_tree import FRAGMENT, Tree, on_the_host


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    on_the_host(tmp_path, monkeypatch)
    return Tree(tmp_path / "linux")


def built(tree: Tree, revision: str = "HEAD", config: str = "") -> build.BuiltKernel:
    return build.build_kernel(sources.from_git(tree.path, revision), configs.find(config))


def test_a_kernel_is_built_once_and_again_when_anything_is_another(tree: Tree) -> None:
    seen: list[Progress] = []
    source = sources.from_git(tree.path, "v7.2")
    first = build.build_kernel(source, configs.find(), progress=seen.append)
    assert (first.label, first.release, first.modules, first.cached) == (
        "v7.2",
        "7.2.0",
        None,
        False,
    )
    assert [one.step for one in seen] == ["CC mm/swap.o", "CC mm/vmscan.o", "LD vmlinux"]
    assert (seen[-1].done, seen[-1].total) == (3, None)
    assert "2009-11-02 suite" in first.image.read_text()
    assert kconfig.read(first.config) == {
        "CONFIG_TINY": "y",
        "CONFIG_64BIT": "y",
        "CONFIG_SWAP": "y",
    }
    assert "CC      mm/vmscan.o" in first.log.read_text()
    again = build.build_kernel(source, configs.find(), progress=seen.append)
    assert again == replace(first, cached=True) and len(seen) == 3
    changed = tree.change("mm/vmscan.c", 3, "int a;")
    other = build.build_kernel(
        sources.from_git(tree.path, changed), configs.find(), progress=seen.append
    )
    assert other.digest != first.digest and not other.cached
    # The last build of the same configuration says how many steps there will be.
    assert (seen[-1].done, seen[-1].total) == (3, 3)
    (toolchain.root() / tools.IDENTITY).write_text("compiler two\n")
    assert not build.build_kernel(source, configs.find()).cached


def test_what_is_not_compiled_makes_the_same_binary(tree: Tree) -> None:
    first = built(tree)
    tree.change("fs/unused.c", 0, "int other;")
    second = built(tree)
    assert not second.cached and second.image != first.image
    assert second.digest == first.digest


def test_what_does_not_compile_says_the_first_error_and_nothing_is_kept(tree: Tree) -> None:
    built(tree)
    tree.change("mm/vmscan.c", 7, "#error broken")
    with pytest.raises(DoesNotCompile) as caught:
        built(tree)
    label = caught.value.label
    assert str(caught.value) == f"{label} does not compile: mm/vmscan.c:1:2: error: #error as asked"
    assert "8:#error broken" in caught.value.log
    # The next one begins with an empty folder, and the files that it has itself.
    assert built(tree, "v7.2").cached
    tree.change("mm/vmscan.c", 7, "int mended;")
    assert "int mended;" in built(tree).image.read_text()
    places = {path.name for path in (cache.root() / build.KIND).iterdir()}
    assert len(places) == 2


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("kill -TERM $$PPID; exec sleep 60", "v7.2-.*: make was ended by signal 15"),
        ("echo 'x: No space left on device'; exit 1", "No space left on device .the cache needs"),
    ],
)
def test_what_is_not_the_kernels_fault_is_no_kernel_that_does_not_compile(
    tree: Tree, recipe: str, said: str
) -> None:
    text = (tree.path / "Makefile").read_text()
    tree.write(
        "Makefile", text.replace("modules:\n", f"bzImage: early\nearly:\n\t@{recipe}\nmodules:\n")
    )
    tree.commit("broken host")
    with pytest.raises(UserError, match=said) as caught:
        built(tree)
    assert not isinstance(caught.value, NotBuilt)


def test_files_of_another_kernel_are_gone(tree: Tree) -> None:
    tree.write("mm/once.c", "int once;\n")
    with_it = tree.commit("once")
    assert "int once;" in built(tree, with_it).image.read_text()
    # A killed build may leave files, and a locked index.
    place = toolchain.root() / toolchain.BUILD
    (place / build.SOURCE / "mm/left.c").write_text("int left;\n")
    (place / build.SOURCE / "mm/vmscan.c").unlink()
    (place / f"{build.INDEX}.lock").touch()
    text = built(tree, "v7.2").image.read_text()
    assert "once" not in text and "left" not in text and "int line_3;" in text
    shutil.rmtree(place / build.SOURCE)
    tree.change("mm/swap.c", 0, "int later;")
    assert "int line_3;" in built(tree).image.read_text()


def test_an_option_that_is_lost_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "config 64BIT\nconfig TINY\n"
    tree.write("Kconfig", lines)
    tree.commit("no swap")
    with pytest.raises(OptionLost) as caught:
        built(tree)
    assert caught.value.options == ("CONFIG_SWAP",)
    assert str(caught.value).endswith(
        "options of kernel.config are lost: it does not know CONFIG_SWAP"
    )
    # Known, and not taken: the fake olddefconfig keeps what is at the beginning of a line only.
    tree.write("Kconfig", lines + "\tconfig SWAP\n\tconfig LRU_GEN\n")
    tree.commit("swap that depends on something")
    with pytest.raises(OptionLost) as caught:
        built(tree)
    assert caught.value.options == ("CONFIG_SWAP", "CONFIG_LRU_GEN")
    assert "it does not take CONFIG_SWAP=y, CONFIG_LRU_GEN=y" in str(caught.value)


def test_an_option_that_the_kernel_may_refuse_is_no_error(tree: Tree) -> None:
    config_file.FRAGMENT.write_text(
        f"CONFIG_64BIT=y\n{config_file.IF_TAKEN} x\nCONFIG_SWAP=y\n\nCONFIG_TINY=y\n"
    )
    tree.write("Kconfig", "config 64BIT\nconfig TINY\n\tconfig SWAP\n")
    tree.commit("swap that depends on something")
    assert kconfig.read(built(tree).config) == {"CONFIG_TINY": "y", "CONFIG_64BIT": "y"}


def test_an_option_that_not_every_kernel_has_may_be_absent_and_is_kept(tree: Tree) -> None:
    assert "CONFIG_LRU_GEN" not in kconfig.read(built(tree).config)
    tree.write("Kconfig", "config 64BIT\nconfig SWAP\nconfig LRU_GEN\n")
    tree.commit("with lru_gen")
    assert kconfig.read(built(tree).config)["CONFIG_LRU_GEN"] == "y"


def test_a_configuration_of_the_users_is_taken_as_it_is(tree: Tree, tmp_path: Path) -> None:
    own = tmp_path / "own.config"
    own.write_text("CONFIG_MODULES=y\nCONFIG_TINY=m\nCONFIG_GONE=y\n# CONFIG_SWAP is not set\n")
    kernel = built(tree, config=str(own))
    assert kconfig.read(kernel.config) == {"CONFIG_MODULES": "y", "CONFIG_TINY": "m"}
    assert kernel.modules is not None and (kernel.modules / "kernel/x.ko").is_file()
    assert not (kernel.modules / "build").is_symlink()
    with pytest.raises(UserError, match="no such kernel config: 'nowhere'") as caught:
        configs.find("nowhere")
    assert caught.value.status is Exit.USAGE
    assert configs.find("defconfig").target == "defconfig"


def test_the_suites_own_fragment_marks_what_old_kernels_lack() -> None:
    text = config_file.FRAGMENT.read_text()
    marked = config_file.marked(text, config_file.IF_IT_EXISTS)
    refusable = config_file.marked(text, config_file.IF_TAKEN)
    assert {"CONFIG_LRU_GEN", "CONFIG_MEMCG_V1", "CONFIG_ZRAM_BACKEND_LZ4"} <= marked
    assert refusable == {"CONFIG_KPROBES", "CONFIG_KPROBE_EVENTS"}
    assert not (marked | refusable) & {
        one for group in kconfig.REQUIRED for one in group.split("|")
    }
    assert config_file.marked(FRAGMENT, config_file.IF_IT_EXISTS) == {"CONFIG_LRU_GEN"}


def test_a_spec_is_resolved_to_a_kernel_of_its_name(tree: Tree, tmp_path: Path) -> None:
    fix = tmp_path / "fix.patch"
    culprit = tree.change("mm/vmscan.c", 3, "int a;")
    fix.write_text(tree.git("diff", "HEAD", "v7.2") + "\n")
    spec = f"git:{tree.path}@master"
    base = kernels.resolve(spec)
    name = f"v7.2-1-g{culprit[:12]}"
    assert (base.label, base.release, base.package) == (name, "7.2.0", culprit)
    fixed = kernels.resolve(f"{spec},patch={fix}")
    reverted = kernels.resolve(f"{spec},revert={culprit[:10]}")
    assert fixed.label == f"{name}+fix"
    assert reverted.label == f"{name}-revert-{culprit[:12]}"
    assert fixed.image_digest == reverted.image_digest != base.image_digest
    assert kernels.as_it_is(spec) is None
    # A branch goes on; what its runs had is what a campaign goes on with.
    tree.change("mm/swap.c", 0, "int later;")
    assert kernels.resolve(specs.pinned(spec, culprit)).image_digest == base.image_digest


def test_a_work_tree_is_told_to_be_dirty_and_has_no_commit(
    tree: Tree, capfd: pytest.CaptureFixture[str]
) -> None:
    tree.write("mm/swap.c", "int mine;\n")
    kernel = kernels.resolve(f"git:{tree.path}")
    assert (kernel.label, kernel.package) == ("v7.2-dirty", None)
    assert "is built with its changes: 1 file not as in" in capfd.readouterr().err
    assert specs.pinned(f"git:{tree.path}", "0123") == f"git:{tree.path}"


def test_the_dry_run_says_what_would_be_built_and_writes_nothing(
    tree: Tree, tmp_path: Path
) -> None:
    before = sorted((tmp_path / "cache").rglob("*"))
    said = kernels.describe(f"git:{tree.path}@v7.2,revert={tree.first[:12]},config=defconfig")
    assert said.startswith(f"v7.2 of {tree.path}, without {tree.first[:12]}, built here")
    assert "configured with defconfig" in said and "nothing is installed" in said
    assert sorted((tmp_path / "cache").rglob("*")) == before


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("git:", "not a kernel: 'git:'"),
        ("git:/nowhere@v1", "no such folder: 'git:/nowhere@v1'"),
        ("git:.,patch", "'patch' in 'git:.,patch'"),
        ("git:.,patch=", "after a source come patch=FILE, revert=COMMIT and one config=NAME"),
        ("git:.,config=host,config=host", "'config=host' in"),
        ("git:.,patch=nowhere.patch", "no such patch: 'nowhere.patch'"),
        ("git:.,revert=HEAD", r"not a commit: 'HEAD' \(7 to 64 hex digits\)"),
        ("debian-source:", "not a suite or version: 'debian-source:'"),
        ("debian-source:7.2/amd64", "not a suite or version"),
        ("debian-source:7.2,config=nowhere", "no such kernel config"),
    ],
)
def test_a_spec_that_means_nothing_is_a_usage_error(spec: str, said: str) -> None:
    for look in (kernels.as_it_is, kernels.describe):
        with pytest.raises(UserError, match=said) as caught:
            look(spec)
        assert caught.value.status is Exit.USAGE


WORDS = st.text("abcdef0123456789./@-_", min_size=1)


@given(
    WORDS,
    st.lists(st.tuples(st.sampled_from([specs.PATCH, specs.REVERT]), WORDS)),
    WORDS | st.just(""),
)
def test_a_spec_is_read_as_it_is_written(
    place: str, changed: list[tuple[str, str]], config: str
) -> None:
    spec = specs.Spec(f"git:{place}", tuple(changed), config)
    assert specs.parse(str(spec)) == spec


@given(st.text())
def test_any_text_is_a_spec_or_one_line(text: str) -> None:
    for prefix in specs.PREFIXES:
        try:
            assert specs.parse(prefix + text).origin.startswith(prefix)
        except UserError as error:
            assert error.status is Exit.USAGE


def test_a_path_with_an_at_sign_and_paths_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a@b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert specs.parse("git:a@b").git == (Path("a@b"), "")
    assert specs.parse("git:a@b@HEAD@{1}").git == (Path("a@b"), "HEAD@{1}")
    said = specs.absolute("git:a@b@v7.2,patch=x.patch y.patch,revert=abcdef0,config=c")
    at = str(tmp_path)
    assert said == (
        f"git:{at}/a@b@v7.2,patch={at}/x.patch {at}/y.patch,revert=abcdef0,config={at}/c"
    )
    assert specs.absolute("debian-source:7.2,config=host") == "debian-source:7.2,config=host"


def test_steps_are_counted_against_those_of_the_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    known = steps_of(("tinyconfig", "", "x"))
    assert known.get() is None
    known.keep(200)
    assert steps_of(("tinyconfig", "", "x")).get() == 200
    assert steps_of(("defconfig", "", "x")).get() is None
    seen: list[Progress] = []
    follower = Follower("v7.2", 200, seen.append)
    follower.see("make[1]: Entering directory '/build/out'\n")
    follower.see("mm/vmscan.c:1:1: warning: x\n")
    for number in range(100):
        now[0] += 1
        follower.see(f"  CC [M]  mm/{number}.o\n")
    assert follower.done == 100 and len(seen) == 100
    assert seen[0].left_s is None
    # A step a second.
    assert seen[-1].left_s == pytest.approx(100)
    words = seen[-1].words
    assert re.fullmatch(
        r"compiling v7\.2: 100 of about 200 steps, about 2 min left \(CC \[M\] mm/99\.o\)", words
    )


def test_pahole_is_kept_from_threads_that_write_in_any_order(tmp_path: Path) -> None:
    script = toolchain.ONE_THREAD.replace("exec /usr/bin/pahole", 'printf "%s|"')
    (tmp_path / "pahole").write_text(script)
    words = ["-J", "-j", "-j4", "--btf_features=a b", "vmlinux"]
    done = subprocess.run(
        ["sh", tmp_path / "pahole", *words], capture_output=True, text=True, check=True
    )
    assert done.stdout == "-J|--btf_features=a b|vmlinux|"


def test_who_may_not_enter_the_compilers_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "MOUNTED", "echo not permitted >&2; exit 1")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UserError, match=r"not permitted \(run it as root, or in the container"):
        toolchain._enter(tmp_path / "nobody's")


def test_without_room_nothing_is_begun(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOM", 1 << 60)
    with pytest.raises(UserError, match=r"GiB of free space .the cache needs room"):
        built(tree)


def test_a_patch_of_a_changed_source_stacks(tree: Tree, tmp_path: Path) -> None:
    base = sources.from_git(tree.path, "v7.2")
    one = b"--- a/mm/swap.c\n+++ b/mm/swap.c\n@@ -1 +1 @@\n-int swap;\n+int one;\n"
    found = changes.patched_with(base, one, "hunk 1", "v7.2+1")
    assert "int one;" in build.build_kernel(found, configs.find()).image.read_text()
