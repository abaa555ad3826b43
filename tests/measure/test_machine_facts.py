# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of a machine for meta.json."""

from pathlib import Path

import pytest

from measure import machine_facts


def test_the_packages_that_a_guests_image_has_beside_the_usual_ones_are_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "packages"
    packages.write_text("earlyoom 1.7-1\nsystemd-oomd 252.39-1~deb12u1\n")
    monkeypatch.setattr(machine_facts, "GUEST_PACKAGES", str(packages))
    versions = {"earlyoom": "1.7-1", "systemd-oomd": "252.39-1~deb12u1"}
    assert machine_facts.facts()["packages"] == versions
    packages.unlink()  # another guest, or this machine
    assert "packages" not in machine_facts.facts()
