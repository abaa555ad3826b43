# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels: real packages in three shapes, damaged ones, images that are none, build trees."""

import gzip
import itertools
import subprocess
from pathlib import Path

import pytest

from contract.swap import Swap
from errors import Exit, UserError
from setup import apt, cache, debian, kernels, modules, package_lists
from setup.package_lists import Lists
from tests.support.kernel_packages import bz_image, deb


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / cache.NAME


RELEASE = "6.1.0-9-cloud-amd64"
RELEASE_PACKAGE = f"linux-image-{RELEASE}"
ONE = {
    f"boot/vmlinuz-{RELEASE}": bz_image(RELEASE),
    f"boot/config-{RELEASE}": b"CONFIG_64BIT=y\n",
    f"lib/modules/{RELEASE}/modules.order": b"",
    f"lib/modules/{RELEASE}/modules.builtin": b"kernel/fs/ext4/ext4.ko\n",
}
SPLIT_BOOT = [
    {f"boot/vmlinuz-{RELEASE}": bz_image(RELEASE)},
    {f"usr/lib/modules/{RELEASE}/modules.order": b""},
    {f"usr/lib/modules/{RELEASE}/config": b"CONFIG_64BIT=y\n"},
]
SPLIT_USR = [{f"usr/lib/modules/{RELEASE}/vmlinuz": bz_image(RELEASE)}, *SPLIT_BOOT[1:]]


@pytest.mark.parametrize("shape", [[ONE], SPLIT_BOOT, SPLIT_USR], ids=["one", "boot", "usr"])
def test_the_three_shapes_unpack_alike(tmp_path: Path, shape: list[dict[str, bytes]]) -> None:
    debs = [deb(tmp_path, f"part{number}", files) for number, files in enumerate(shape)]
    folder = cache.built("kernels", "x", lambda path: debian.unpack(debs, path))
    assert kernels.image_release(folder / "vmlinuz") == RELEASE
    assert (folder / "config").read_text() == "CONFIG_64BIT=y\n"
    assert (folder / "lib/modules" / RELEASE / "modules.dep").is_file()
    assert sorted(path.name for path in folder.parent.iterdir()) == ["x"]


@pytest.mark.parametrize("keep", [0.0, 0.02, 0.5, 0.99])
def test_a_truncated_package_is_one_line_and_leaves_nothing(
    tmp_path: Path, own_cache: Path, keep: float
) -> None:
    whole = deb(tmp_path, "linux", ONE)
    whole.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * keep)])
    with pytest.raises(UserError, match=r"unpacking linux\.deb failed: ") as error:
        cache.built("kernels", "x", lambda path: debian.unpack([whole], path))
    assert error.value.status is Exit.MISSING
    assert "\n" not in str(error.value)
    assert list((own_cache / "kernels").iterdir()) == []


def test_a_package_without_a_kernel_is_named(tmp_path: Path) -> None:
    other = deb(tmp_path, "other", {"usr/share/x": b""})
    with pytest.raises(UserError, match=r"other\.deb: no kernel image"):
        cache.built("kernels", "x", lambda path: debian.unpack([other], path))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not a Linux kernel image"),
        (b"garbage" * 9999, "is not a Linux kernel image"),
        (b"\x7fELF" + bytes(9999), "is an uncompressed vmlinux"),
        (bz_image(""), "is not a Linux kernel image"),
        (bz_image(RELEASE)[:20000], "is cut short: 20000 of"),
    ],
)
def test_an_image_that_is_none_is_named(tmp_path: Path, data: bytes, says: str) -> None:
    image = tmp_path / "bzImage"
    image.write_bytes(data)
    with pytest.raises(UserError, match=says) as error:
        kernels.resolve(str(image))
    assert error.value.status is Exit.MISSING


def test_an_image_finds_modules_and_config_beside_it(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    image = tmp_path / f"boot/vmlinuz-{RELEASE}"
    image.write_bytes(bz_image(RELEASE))
    assert kernels.resolve(str(image)).modules is None
    (tmp_path / f"boot/config-{RELEASE}").write_text("CONFIG_64BIT=y\n")
    (tmp_path / "lib/modules" / RELEASE).mkdir(parents=True)
    kernel = kernels.resolve(str(image))
    assert kernel.modules == tmp_path / "lib/modules" / RELEASE
    assert kernel.config == tmp_path / f"boot/config-{RELEASE}"
    assert (kernel.label, kernel.release) == (RELEASE, RELEASE)
    other = tmp_path / "other/lib/modules" / RELEASE
    other.mkdir(parents=True)
    assert kernels.resolve(f"{image},modules={tmp_path}/other").modules == other
    assert kernels.resolve(f"{image},modules={other}").modules == other
    with pytest.raises(UserError, match="no modules of"):
        kernels.resolve(f"{image},modules={tmp_path}/boot")


@pytest.mark.parametrize("names", ["kernel/fs/x/x.ko\n", "fs/x/x.ko\n", "fs/x/x.o\n"])
def test_a_build_tree(tmp_path: Path, names: str) -> None:
    for folder in ("arch/x86/boot", "fs/x"):
        (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(UserError, match="is no built kernel tree"):
        kernels.resolve(str(tmp_path))
    (tmp_path / "arch/x86/boot/bzImage").write_bytes(bz_image("7.1.0-dirty+"))
    (tmp_path / "modules.order").write_text(names)
    with pytest.raises(UserError, match=r"fs/x/x\.ko is listed in modules\.order but not built"):
        kernels.resolve(str(tmp_path))
    (tmp_path / "fs/x/x.ko").write_bytes(b"\x7fELF")
    (tmp_path / "modules.builtin").write_text("kernel/fs/ext4/ext4.ko\n")
    kernel = kernels.resolve(str(tmp_path))
    assert kernel.label == "7.1.0-dirty+"
    assert kernel.modules is not None
    assert (kernel.modules / "kernel/fs/x/x.ko").read_bytes() == b"\x7fELF"
    assert (kernel.modules / "modules.dep").is_file()


def test_a_spec_that_means_nothing_is_a_usage_error(own_cache: Path) -> None:
    for spec in ("no/such/file", "debian:", "debian:../x"):
        with pytest.raises(UserError) as error:
            kernels.resolve(spec)
        assert error.value.status is Exit.USAGE


def test_describe_writes_nothing(tmp_path: Path) -> None:
    for spec in ("debian:stable", "debian:6.1"):
        assert kernels.describe(spec)
    assert not (tmp_path / "cache").exists()


VERSIONS = ["6.1.170-1", "6.1.170-3", "6.1.9-1", "7.3~rc7-1~exp1", "7.3-1", "7.3.4-1~bpo13+1"]
VERSIONS += ["7.3.4-1", "6.12.117-1~deb12u1", "6.12.117-1", "1:5.0-1", "6.1.170+b1-1", "6.1.170a-1"]


@pytest.mark.parametrize(("left", "right"), list(itertools.combinations(VERSIONS, 2)))
def test_versions_compare_as_dpkg_says(left: str, right: str) -> None:
    command = ["dpkg", "--compare-versions", left, "lt", right]
    less = subprocess.run(command, check=False).returncode == 0
    assert (debian.compare(left, right) < 0) == less
    assert (debian.compare(right, left) > 0) == less


def package(name: str, version: str, suite: str, codename: str, size: int = 0) -> apt.Package:
    digest = f"{name} {version}"
    return apt.Package(name, version, suite, codename, "file:/x", digest, size or 20 << 20)


LISTED = [
    package("linux-image-6.1.0-55-cloud-amd64", "6.1.192-1", "oldstable", "bookworm"),
    package("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2", "x-security", "bookworm-security"),
    package("linux-image-6.1.0-57-cloud-amd64-dbg", "6.1.193-1", "oldstable", "bookworm"),
    package("linux-image-6.1.0-57-amd64", "6.1.193-1", "oldstable", "bookworm"),
    package("linux-image-cloud-amd64", "6.1.193-1", "oldstable", "bookworm", 1500),
    package("linux-image-6.12.117+deb13-cloud-amd64", "6.12.117-1", "stable", "trixie"),
    package("linux-image-6.12.117+deb12-cloud-amd64", "6.12.117-1~deb12u1", "x", "bookworm"),
    # Whole, though its linux-base is gone from the suite.
    package("linux-image-6.12.117+deb13-amd64", "6.12.117-1", "stable", "trixie"),
    package("linux-image-6.12.117+deb13-rt-amd64", "6.12.117-1", "stable", "trixie"),
    package("linux-image-6.18.15+deb13-cloud-amd64", "6.18.15-1~bpo13+1", "x", "trixie-backports"),
    # Whole, the split shape.
    package("linux-image-7.2.13+deb14-cloud-amd64", "7.2.13-1", "unstable", "sid", 1900),
    package("linux-binary-7.2.13+deb14-cloud-amd64", "7.2.13-1", "unstable", "sid"),
    package("linux-binary-unsigned-7.2.13+deb14-cloud-amd64", "7.2.13-1", "unstable", "sid"),
    package("linux-modules-7.2.13+deb14-cloud-amd64", "7.2.13-1", "unstable", "sid"),
    package("linux-base-7.2.13+deb14-cloud-amd64", "7.2.13-1", "unstable", "sid"),
    # Half removed from its suite.
    package("linux-image-7.2.14+deb14-cloud-amd64", "7.2.14-1", "unstable", "sid", 1900),
    package("linux-binary-7.2.14+deb14-cloud-amd64", "7.2.14-1", "unstable", "sid"),
]


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("6.1", "6.1.192-2"),
        ("bookworm", "6.12.117-1~deb12u1"),
        ("bookworm-security", "6.1.192-2"),
        ("6.1.0-55", "6.1.192-1"),
        ("6.1.192-1", "6.1.192-1"),
        ("6.12", "6.12.117-1"),
        ("6.12.117+deb12", "6.12.117-1~deb12u1"),
        ("stable", "6.12.117-1"),
        ("6.18", "6.18.15-1~bpo13+1"),
        ("7.2", "7.2.13-1"),
        ("sid", "7.2.13-1"),
        ("7.2.14", None),
        ("7", "7.2.13-1"),
        ("6.5", None),
        ("etch", None),
    ],
)
def test_which_kernel_a_version_or_suite_means(wanted: str, version: str | None) -> None:
    fitting = debian.fitting(LISTED, wanted, "cloud-amd64")
    assert (fitting[0].version if fitting else None) == version


@pytest.mark.parametrize(
    ("wanted", "release", "label"),
    [
        ("6.12", "6.12.117+deb13-cloud-amd64", "6.12.117"),
        ("6.12/cloud-amd64", "6.12.117+deb13-cloud-amd64", "6.12.117"),
        ("6.12/amd64", "6.12.117+deb13-amd64", "6.12.117-amd64"),
        ("stable/rt-amd64", "6.12.117+deb13-rt-amd64", "6.12.117-rt-amd64"),
        ("6.12.117-1/amd64", "6.12.117+deb13-amd64", "6.12.117-amd64"),
    ],
)
def test_the_flavour_is_the_one_that_is_wanted(wanted: str, release: str, label: str) -> None:
    name, flavour = debian.split(wanted)
    chosen = debian.fitting(LISTED, name, flavour)[0]
    assert (chosen.release, chosen.label) == (release, label)


def test_a_flavour_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_lists, "update", lambda mirror, need: Lists(LISTED))
    flavours = r"no foo kernel of version 6\.12 \(flavours: amd64, cloud-amd64, rt-amd64\)"
    with pytest.raises(UserError, match=flavours):
        kernels.resolve("debian:6.12/foo")
    with pytest.raises(
        UserError, match=r"no rt-amd64 kernel of version 7\.2 \(rt-amd64 kernels: 6\.12"
    ):
        kernels.resolve("debian:7.2/rt-amd64")
    for spec in ("debian:6.12/", "debian:/amd64", "debian:6.12/amd64/x"):
        with pytest.raises(UserError, match="not a suite or version") as error:
            kernels.describe(spec)
        assert error.value.status is Exit.USAGE


def test_a_split_kernel_is_the_signed_one_with_all_its_parts() -> None:
    chosen = debian.fitting(LISTED, "7.2", "cloud-amd64")[0]
    assert [package.name.split("-7")[0] for package in chosen.packages] == [
        "linux-binary",
        "linux-modules",
        "linux-base",
    ]
    assert chosen.upstream == "7.2.13"


def test_what_exists_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_lists, "update", lambda mirror, need: Lists(LISTED))
    with pytest.raises(UserError, match=r"6\.5 .*6\.1\.192, 6\.12\.117, 6\.18\.15, 7\.2\.13"):
        kernels.resolve("debian:6.5")
    with pytest.raises(UserError, match=r"suite etch .*bookworm, .*trixie"):
        kernels.resolve("debian:etch")


def tree_of_modules(folder: Path, builtin: str = "") -> kernels.Kernel:
    """A kernel whose modules.dep and files are real enough to choose and read modules from."""
    target = folder / "lib/modules" / RELEASE
    target.mkdir(parents=True)
    (target / "modules.dep").write_text(
        "k/virtio_ring.ko:\nk/virtio.ko.xz: k/virtio_ring.ko\n"
        "k/virtio_pci.ko.zst: k/virtio.ko.xz k/virtio_ring.ko\n"
        "k/virtio_blk.ko: k/virtio.ko.xz k/virtio_ring.ko\n"
        "k/dm-mod.ko:\nk/dm-crypt.ko: k/dm-mod.ko\nk/ecb.ko:\nk/xts.ko: \nk/unrelated.ko:\n"
    )
    (target / "modules.softdep").write_text("softdep xts pre: ecb\n")
    (target / "modules.builtin").write_text("k/virtio_console.ko\nk/ext4.ko\n" + builtin)
    (target / "k").mkdir()
    for line in (target / "modules.dep").read_text().splitlines():
        path = target / line.partition(":")[0]
        plain = path.with_name(path.name.partition(".")[0] + ".ko")
        plain.write_bytes(b"\x7fELF" + path.name.encode() * 1000)
        if path.suffix == ".xz":
            subprocess.run(["xz", str(plain)], check=True)
        elif path.suffix == ".zst":
            subprocess.run(["zstd", "-q", "--rm", str(plain)], check=True)
    image = folder / "vmlinuz"
    image.write_bytes(bz_image(RELEASE))
    return kernels.resolve(str(image))


def test_modules_come_in_order_of_dependence_and_unpacked(tmp_path: Path) -> None:
    kernel = tree_of_modules(tmp_path, "k/virtio_net.ko\n")
    chosen = modules.needed(kernel, fs="ext4", crypt=True)
    assert [(module.name, module.optional) for module in chosen] == [
        ("virtio_ring.ko", False),
        ("virtio.ko", False),
        ("virtio_pci.ko", False),
        ("virtio_blk.ko", False),
        ("dm-mod.ko", False),
        ("dm-crypt.ko", False),
        ("ecb.ko", True),
        ("xts.ko", False),
    ]
    for module in chosen:
        data = modules.contents(module.path)
        assert data == b"\x7fELF" + module.path.name.encode() * 1000
    plain = modules.needed(kernel, fs="ext4", crypt=False)
    assert [module.name for module in plain][-1] == "dm-mod.ko"
    ecb = modules.needed(kernel, fs="ext4", crypt=False, more=("ecb",))
    assert [(one.name, one.optional) for one in ecb if one not in plain] == [("ecb.ko", False)]
    with pytest.raises(UserError, match="has no module raid0"):
        modules.needed(kernel, fs="ext4", crypt=False, more=("raid0",))


def test_modules_of_a_swap(tmp_path: Path) -> None:
    kernel = tree_of_modules(tmp_path, "k/virtio_net.ko\n")
    plain = modules.needed(kernel, fs="ext4", crypt=True)
    with pytest.raises(UserError, match="has no module zram"):
        modules.needed(kernel, fs="ext4", crypt=True, swap=Swap("zram"))
    assert kernel.modules
    with open(kernel.modules / "modules.dep", "a") as file:
        file.write("k/zsmalloc.ko:\nk/zram.ko: k/zsmalloc.ko\nk/lzo-rle.ko:\nk/lz4.ko:\n")

    def more(asked: Swap) -> list[tuple[str, bool]]:
        chosen = modules.needed(kernel, fs="ext4", crypt=True, swap=asked)
        assert chosen[: len(plain)] == plain or asked.kind == "zram"
        return [(one.path.name, one.optional) for one in chosen if one not in plain]

    assert more(Swap()) == more(Swap("none")) == []
    zram = [("zsmalloc.ko", False), ("zram.ko", False)]
    assert more(Swap("zram")) == [*zram, ("lzo-rle.ko", True)]
    assert more(Swap("zram", algorithm="lz4")) == [*zram, ("lz4.ko", True)]
    assert more(Swap("zswap", algorithm="lz4")) == [("lz4.ko", True)]


def test_a_module_that_is_nowhere_is_named(tmp_path: Path) -> None:
    kernel = tree_of_modules(tmp_path)
    with pytest.raises(UserError, match="has no module virtio_net"):
        modules.needed(kernel, fs="ext4", crypt=True)
    damaged = tmp_path / "x.ko.xz"
    damaged.write_bytes(b"nonsense")
    with pytest.raises(UserError, match="cannot read the module"):
        modules.contents(damaged)


@pytest.mark.vm
@pytest.mark.timeout(300)
@pytest.mark.parametrize("spec", ["debian:5.10", "debian:stable", "debian:sid"])
def test_real_kernels_have_all_that_is_needed(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from setup import initramfs, kconfig

    monkeypatch.delenv("XDG_CACHE_HOME")
    kernel = kernels.resolve(spec)
    assert kernel.config is not None
    for fs in ("ext4", "ext3", "ext2", "xfs"):
        kconfig.check(kernel, fs, True)
        assert initramfs.build(kernel, fs=fs, crypt=True).stat().st_size > 500_000


LIST = """\
Package: linux-image-6.1.0-9-cloud-amd64
Version: 6.1.27-1
Depends: kmod
Filename: pool/main/l/linux/one.deb
Size: 123
SHA256: 00ff

Package: vim
Size: 7
"""


@pytest.mark.parametrize("name", ["deb_Packages", "deb_Packages.gz"])
def test_a_package_list_is_read_however_it_is_packed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LIST.encode()) if name.endswith(".gz") else LIST.encode())
    (found,) = package_lists.packages_in(
        str(path), "http://m.example/debian/", "stable", "bookworm"
    )
    assert (found.name, found.version, found.suite) == (RELEASE_PACKAGE, "6.1.27-1", "stable")
    assert (found.uri, found.size) == ("http://m.example/debian/pool/main/l/linux/one.deb", 123)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x1f\x8b\x08\xff" + bytes(30), "reading the package list"),
        (gzip.compress(LIST.replace("Size: 123\n", "").encode()), "it has no size for"),
    ],
)
def test_a_damaged_package_list_is_said_in_one_line(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "deb_Packages.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said) as error:
        list(package_lists.packages_in(str(path), "http://m.example/debian", "stable", "bookworm"))
    assert "setup.package_lists --force" in str(error.value) and "\n" not in str(error.value)


def test_a_cache_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UserError, match="XDG_CACHE_HOME") as error:
        package_lists.update()
    assert "Not a directory" in str(error.value) and "\n" not in str(error.value)
