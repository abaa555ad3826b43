# SPDX-License-Identifier: GPL-2.0-or-later
"""What the guest's image says of its packages."""

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


def test_versions_are_those_of_the_packages_asked_for() -> None:
    assert image.versions(STATUS, ("systemd-oomd", "earlyoom")) == (
        "earlyoom 1.7-1\nsystemd-oomd 252.39-1~deb12u1\n"
    )
    assert image.versions(STATUS, ["libc6"]) == "libc6 2.36-9+deb12u10\n"


def test_a_package_that_is_not_installed_is_a_bug() -> None:
    with pytest.raises(KeyError):
        image.versions(STATUS, ["nohang"])
