# SPDX-License-Identifier: GPL-2.0-or-later
"""The userland that QEMU, compilers and mke2fs are from: how its programs run, and what stays."""

import io
import tarfile
from pathlib import Path

import pytest

from errors import UserError
from setup import cache
from setup.userland import bootstrap, tools
from tests.support.caches import with_tools
from vm import disk_model, emulator


def test_programs_run_with_the_userland_as_their_root() -> None:
    with tools.workplace() as place:
        (place.folder / "in").write_text("x\n")
        said = place.run(
            ["busybox", "sh", "-c", "pwd; read -r x <in; echo $x; id -u; env"], what="trying"
        )
        assert said.splitlines()[:3] == [place.inside, "x", "0"]
        # Nothing of the host's environment is there.
        names = {line.partition("=")[0] for line in said.splitlines()[3:]}
        assert names <= {*tools.ENVIRONMENT, "PWD", "SHLVL", "_"}
        folder = place.folder
    assert not folder.exists()


def test_a_program_that_fails_is_said_in_a_line() -> None:
    script = "echo first >&2; echo 'x.c: error: broken' >&2; echo last >&2; exit 3"
    with tools.workplace() as place, pytest.raises(UserError) as caught:
        place.run(["busybox", "sh", "-c", script], what="trying")
    assert str(caught.value) == "trying failed: x.c: error: broken"


def test_what_a_killed_process_has_left_is_removed() -> None:
    left = tools.root() / tools.WORK / "work-of-the-dead"
    left.mkdir()
    with tools.workplace() as place:
        assert not left.exists() and place.folder.is_dir()


def test_a_user_who_may_not_enter_it_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_tools(tmp_path, monkeypatch)
    monkeypatch.setattr(tools, "_enter", lambda *_: ["sh", "-c", "echo not permitted >&2; exit 1"])
    said = r"not permitted \(run it as root, or in the container"
    with pytest.raises(UserError, match=said), tools.workplace():
        pass


DIGEST = "f32e8bd0d0ef9d0fb709bb6acb1146b3e24fddd994ac4c488e80310a506c694e"


def packed(tar: Path, *, merged: bool) -> None:
    """A tar as mmdebstrap lays it out, with folders for bin and lib or with links."""
    usr = "usr/" if merged else ""
    with tarfile.open(tar, "w") as archive:

        def add(name: str, kind: bytes, target: str = "", mode: int = 0o644) -> None:
            member = tarfile.TarInfo(f"./{name}")
            member.type, member.linkname, member.mode = kind, target, mode
            data = name.removeprefix(usr).encode() if kind == tarfile.REGTYPE else b""
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))

        for name in ("bin", "lib"):
            if merged:
                add(name, tarfile.SYMTYPE, f"usr/{name}")
        add(f"{usr}bin/tool", tarfile.REGTYPE, mode=0o4755)
        add(f"{usr}lib/real.so", tarfile.REGTYPE)
        add("usr/lib64/ld.so", tarfile.SYMTYPE, "/lib/real.so")
        add("usr/bin/same", tarfile.LNKTYPE, f"./{usr}bin/tool")
        add("usr/share/doc/x/y", tarfile.REGTYPE)
        add("etc/passwd", tarfile.REGTYPE)
        add("dev/null", tarfile.CHRTYPE)


@pytest.mark.parametrize("merged", [False, True])
def test_the_tree_is_the_same_however_it_was_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    monkeypatch.setattr(bootstrap, "make_tar", lambda tar, *_, **__: packed(tar, merged=merged))
    folder = tmp_path / "tools"
    tools._make(folder, None)
    assert (folder / "bin/tool").read_bytes() == b"bin/tool"
    assert (folder / "bin/tool").stat().st_mode & 0o7777 == 0o755
    assert (folder / "usr/bin/same").samefile(folder / "bin/tool")
    # From outside, too, the loader is this root's own.
    assert str((folder / "lib64/ld.so").readlink()) == "../lib/real.so"
    assert (folder / "lib64/ld.so").read_bytes() == b"lib/real.so"
    assert not (folder / "usr/share/doc").exists() and not (folder / "etc/passwd").exists()
    assert not [path for path in folder.rglob("*") if path.is_char_device()]
    assert (folder / tools.IDENTITY).read_text() == f"{DIGEST}\n"


def test_no_link_leads_out_of_it() -> None:
    root = tools.root()
    absolute = [
        path for path in root.rglob("*") if path.is_symlink() and path.readlink().is_absolute()
    ]
    assert absolute == []


def test_qemu_runs_by_its_own_loader_and_libraries() -> None:
    emulator.find.cache_clear()  # another test's cache may be elsewhere
    found = emulator.find()
    root = str(tools.root())
    assert found.origin == "suite" and found.version.startswith("7.2.")
    assert found.command()[0].startswith(root) and found.program.startswith(root)


def test_qemu_runs_from_a_cache_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And takes the disk model there: no name of a folder gives a guest another clock."""
    with_tools(tmp_path / "a b:c;d,e$ORIGIN'f", monkeypatch)
    emulator.find.cache_clear()
    found = emulator.find()
    assert found.version.startswith("7.2.") and "a b:c" in found.program
    made = disk_model.library(found)
    assert made.is_relative_to(cache.place())
    host = emulator.Emulator("/qemu", "0")
    libraries = host.environment(made)["LD_PRELOAD"].split(":")
    assert Path(libraries[0]).samefile(made)
    emulator.find.cache_clear()
