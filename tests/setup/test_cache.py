# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache: what is damaged is made again, and what killed processes left is swept."""

import hashlib
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from errors import UserError
from setup import cache

SUITE = Path(__file__).resolve().parents[2]
BUILDS = """from setup import cache
def build(made):
 made.mkdir(); (made / 'half').write_text('whole'); print(made.parent, flush=True); input()
cache.built('images', 'root.ext4', build)
"""
HOLDS = "from setup import cache\nwith cache.scratch('vm') as f:\n print(f, flush=True); input()"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_a_living_process_holds_stays_and_what_a_dead_one_left_goes() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=SUITE,
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert folder.parent == cache.root()
        (folder / "file").write_text("here")
        with cache.scratch("vm") as ours:
            cache.sweep("vm")
            assert cache.abandoned("vm") == [] and folder.is_dir() and ours.is_dir()
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            assert cache.abandoned("vm") == [folder]
            cache.sweep("probe")
            assert folder.is_dir()
            cache.sweep("vm")
            assert not folder.exists() and ours.is_dir()
    assert not ours.exists()


def test_what_an_older_version_left_goes_too() -> None:
    old = cache.root() / "vm-x1y2"
    (old / "run").mkdir(parents=True)
    cache.sweep("vm")
    assert not old.exists() and [path.name for path in cache.root().iterdir()] == ["locks"]


def make_file(made: Path) -> None:
    made.write_bytes(bytes(range(256)) * 64)


def make_folder(made: Path) -> None:
    (made / "lib").mkdir(parents=True)
    (made / "lib/module.ko").write_bytes(bytes(range(256)) * 64)
    (made / "vmlinuz").write_bytes(b"kernel")


class Maker:
    """Makes something, and counts how often."""

    def __init__(self, make: Callable[[Path], None]) -> None:
        self.times = 0
        self._make = make

    def __call__(self, made: Path) -> None:
        self.times += 1
        self._make(made)


def in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on as if nothing had been read yet."""
    monkeypatch.setattr(cache, "_checked", {})


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("make", "part"),
    [(make_file, "."), (make_folder, "lib/module.ko"), (make_folder, "vmlinuz")],
)
@pytest.mark.parametrize("damage", [flip, Path.unlink, lambda path: path.write_bytes(b"")])
def test_what_is_damaged_is_made_again_and_told(
    make: Callable[[Path], None],
    part: str,
    damage: Callable[[Path], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = cache.built("kernels", "one", make)
    whole = (made / part).read_bytes()
    damage(made / part)
    in_another_process(monkeypatch)
    assert cache.built("kernels", "one", make) == made
    assert (made / part).read_bytes() == whole
    told = capsys.readouterr().err
    gone = part == "." and not told
    assert told == f"{made}: damaged in the cache; it is made again\n" or gone
    assert [path.name for path in made.parent.iterdir()] == ["one"]
    in_another_process(monkeypatch)
    cache.built("kernels", "one", lambda path: pytest.fail("made once more"))


def test_a_digest_that_is_damaged_is_no_reason_to_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cache.built("images", "root", make_file)
    (known,) = (cache.root() / cache.DIGESTS).iterdir()
    known.write_text("")
    flip(made)
    in_another_process(monkeypatch)
    again = Maker(make_file)
    cache.built("images", "root", again)
    assert again.times == 1


def test_what_cannot_be_made_again_stays_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    flip(cache.built("images", "root", make_file))

    def fail(path: Path) -> None:
        raise UserError("no network")

    for _ in range(2):
        in_another_process(monkeypatch)
        with pytest.raises(UserError, match="no network"):
            cache.built("images", "root", fail)


def test_it_is_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.built("images", "root", make_file)
    read: list[Path] = []
    digest_of = cache.digest_now

    def counted(path: Path, changing: Collection[str] = ()) -> str:
        read.append(path)
        return digest_of(path, changing)

    monkeypatch.setattr(cache, "digest_now", counted)
    for times in (0, 1):  # by who has made it, and by another
        for _ in range(3):
            cache.built("images", "root", make_file)
        assert len(read) == times
        in_another_process(monkeypatch)


def test_what_is_spoilt_while_it_is_used_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    in_another_process(monkeypatch)
    image = cache.built("images", "root", make_file)
    kernel = cache.built("kernels", "one", make_folder)
    for made in (image, kernel):
        cache.built(made.parent.name, made.name, lambda path: pytest.fail("made again"))
    assert cache.spoilt() == []
    flip(kernel / "vmlinuz")
    assert cache.spoilt() == [kernel]
    cache.built("kernels", "one", make_folder)
    assert cache.spoilt() == []
    image.unlink()  # the cache may be deleted at any time
    assert cache.spoilt() == []


def test_what_programs_write_to_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(made: Path) -> None:
        make_folder(made)
        (made / "tmp").mkdir()

    made = cache.built("tools", "root", make, changing=("tmp",))
    (made / "tmp/file").write_text("new")
    in_another_process(monkeypatch)
    cache.built("tools", "root", lambda path: pytest.fail("made again"), changing=("tmp",))
    (made / "lib/tmp").write_text("new")
    in_another_process(monkeypatch)
    again = Maker(make)
    cache.built("tools", "root", again, ("tmp",))
    assert again.times == 1 and not (made / "lib/tmp").exists()


def test_of_what_has_no_digest_it_is_kept_from_now_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = cache.root() / "images/root"
    made.parent.mkdir()
    make_file(made)
    cache.built("images", "root", lambda path: pytest.fail("made again"))
    assert cache.digest(made) == hashlib.sha256(made.read_bytes()).hexdigest()
    flip(made)
    in_another_process(monkeypatch)
    again = Maker(make_file)
    cache.built("images", "root", again)
    assert again.times == 1


def test_what_a_killed_builder_left_goes_and_a_living_ones_stays() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUILDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=SUITE,
    ) as builder:
        assert builder.stdout is not None
        aside = Path(builder.stdout.readline().strip())
        cache.sweep_unfinished()
        assert (aside / "root.ext4/half").exists()
        builder.send_signal(signal.SIGKILL)
        builder.wait()
        cache.sweep_unfinished()
        assert not aside.exists() and aside.parent.is_dir()


def test_another_caches_unfinished_things_are_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "other/.root.abcdefgh"
    other.mkdir(parents=True)
    (cache.root() / "tools").symlink_to(other.parent)
    cache.sweep_unfinished()
    assert other.is_dir()


def test_a_folder_that_another_process_removes_meanwhile_does_not_stop_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scratch, unfinished = cache.root() / "a-vm-12345678", cache.root() / "tools/.root.abcdefgh"
    (scratch / "run").mkdir(parents=True)
    unfinished.mkdir(parents=True)
    (cache.root() / "a-file").write_text("")
    real_iterdir = Path.iterdir

    def iterdir(folder: Path) -> Iterator[Path]:
        entries = list(real_iterdir(folder))
        if folder == cache.root():
            shutil.rmtree(scratch)
        return iter(entries)

    monkeypatch.setattr(Path, "iterdir", iterdir)
    cache.sweep_unfinished()
    assert not scratch.exists() and not unfinished.exists()


def test_a_full_disk_under_the_cache_is_one_line() -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(UserError, match=r"File too large .*the cache needs room"):
            cache.built("images", "root", make_file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list((cache.root() / "images").iterdir()) == []
    cache.built("images", "root", make_file)
