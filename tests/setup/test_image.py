# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest's image says of its packages."""

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from setup import image

STATUS = """\
Package: earlyoom
Status: install ok installed
Maintainer: A
Version: 1.7-1
Description: kills
 by free memory
 .
 Version: 9 is no field

Package: libc6
Status: install ok installed
Conffiles:
 /etc/ld.so.conf.d/x.conf d4e7a7b88a71b5ffd9e2644e71a0cfab
Version: 2.36-9+deb12u10

Package: systemd-oomd
Source: systemd
Version: 252.39-1~deb12u1
"""


def test_versions_are_those_of_the_requested_packages() -> None:
    assert image.versions(STATUS, ("systemd-oomd", "earlyoom")) == (
        "earlyoom 1.7-1\nsystemd-oomd 252.39-1~deb12u1\n"
    )
    assert image.versions(STATUS, ["libc6"]) == "libc6 2.36-9+deb12u10\n"


def make_tar(path: Path, files: Mapping[str, str]) -> None:
    """A tar of these files, and of the folders above them, as mmdebstrap makes one."""
    with tarfile.open(path, "w") as archive:
        folders = {parent for name in files for parent in Path(name).parents} - {Path()}
        for folder in sorted(folders):
            entry = tarfile.TarInfo(f"./{folder}/")
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, text in files.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))


@pytest.mark.parametrize("more", [(), ("earlyoom",)])
def test_only_an_image_with_further_packages_names_them(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    files = {"etc/debian_version": "12", "var/lib/dpkg/status": STATUS, "usr/bin/x": "x"}
    make_tar(tmp_path / "root.tar", files)
    image._unpack(tmp_path / "root.tar", tmp_path / "tree", more)
    tree = tmp_path / "tree"
    names = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    named = {"etc/desktop-freeze-packages"} if more else set()
    assert names == {"etc/debian_version", "usr/bin/x"} | named
    if more:
        assert (tree / "etc/desktop-freeze-packages").read_text() == "earlyoom 1.7-1\n"


def test_each_set_of_packages_has_an_image_of_its_own() -> None:
    assert len({image.key(), image.key(("earlyoom",)), image.key(("nohang",))}) == 3


def test_a_package_that_is_not_installed_is_a_bug() -> None:
    with pytest.raises(KeyError):
        image.versions(STATUS, ["nohang"])
