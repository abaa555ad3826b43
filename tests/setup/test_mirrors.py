# SPDX-License-Identifier: GPL-2.0-or-later
"""Which mirror is asked: the one that the host's sources name, or Debian's own."""

from pathlib import Path

import pytest

from errors import UserError
from setup import mirrors


def test_the_mirror_is_the_hosts_own(tmp_path: Path) -> None:
    etc = tmp_path
    (etc / "sources.list.d").mkdir()
    (etc / "sources.list.d/a.list").write_text(
        "deb [arch=amd64 signed-by=/x/other.gpg] https://other.example/debian bookworm main\n"
        "# deb http://commented.example/debian bookworm main\n"
        "deb https://cloud.example/apt cloud-sdk-bookworm main\n"
        "deb-src http://source.example/debian bookworm main\n"
    )
    (etc / "sources.list.d/debian.sources").write_text(
        "Types: deb deb-src\n# a comment\nURIs: http://one.example/debian\n"
        "Suites: bookworm bookworm-updates\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n"
        "Types: deb\nURIs: http://off.example/debian-security\nSuites: bookworm-security\n"
        "Components: main\nEnabled: no\n\n"
        "Types: deb\nURIs: http://two.example/debian-security\nSuites: bookworm-security\n"
        "Components: main contrib\n"
    )
    assert mirrors.find(None, etc) == (
        "http://one.example/debian",
        "http://two.example/debian-security",
    )
    (etc / "sources.list").write_text("deb [ arch=amd64 ] http://first.example/debian/ sid main\n")
    assert mirrors.find(None, etc)[0] == "http://first.example/debian/"
    assert mirrors.find("https://given.example/d", etc)[0] == "https://given.example/d"
    with pytest.raises(UserError, match="not a mirror's URL"):
        mirrors.find("given.example", etc)


UBUNTU = """\
Types: deb
URIs: http://archive.ubuntu.com/ubuntu/
Suites: noble noble-updates noble-backports
Components: main restricted universe multiverse
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg

Types: deb
URIs: http://security.ubuntu.com/ubuntu/
Suites: noble-security
Components: main restricted universe multiverse
Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg
"""
OLDER_UBUNTU = """\
deb http://archive.ubuntu.com/ubuntu jammy main restricted universe
deb http://security.ubuntu.com/ubuntu jammy-security main restricted universe
"""


SECURITY = "    my $secmirror = 'http://m.example/security';\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list.d/ubuntu.sources", UBUNTU),
        ("sources.list", OLDER_UBUNTU),
        ("sources.list", "# nothing\n"),
    ],
)
def test_where_the_sources_name_no_debian_it_is_debians_own(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
) -> None:
    program = tmp_path / "mmdebstrap"
    program.write_text("    my $mirror    = 'http://m.example/debian';\n" + SECURITY)
    monkeypatch.setattr(mirrors, "MMDEBSTRAP", program)
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text)
    mirrors.say_once.cache_clear()
    main, security = "http://m.example/debian", "http://m.example/security"
    assert mirrors.find(None, tmp_path) == (main, security)
    for _ in range(2):
        mirrors.announce(None, tmp_path)
    assert capsys.readouterr().err == (
        f"this machine's apt sources name no Debian mirror: using {main}, as mmdebstrap does; "
        "--mirror names another\n"
    )
    mirrors.say_once.cache_clear()
    assert mirrors.find("file:/srv/debian", tmp_path) == ("file:/srv/debian", None)
    mirrors.announce("file:/srv/debian", tmp_path)
    (tmp_path / "sources.list").write_text("deb http://d.example/debian sid main\n")
    assert mirrors.find(None, tmp_path) == ("http://d.example/debian", None)
    mirrors.announce(None, tmp_path)
    assert capsys.readouterr().err == ""


def test_a_machine_whose_mmdebstrap_names_none_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "MMDEBSTRAP", tmp_path / "none")
    with pytest.raises(UserError, match="name no Debian mirror"):
        mirrors.find(None, tmp_path)


@pytest.mark.skipif(not mirrors.MMDEBSTRAP.exists(), reason="mmdebstrap is not installed")
def test_this_machines_mmdebstrap_has_mirrors_built_in(tmp_path: Path) -> None:
    main, security = mirrors.find(None, tmp_path)
    assert main.endswith("/debian") and security and security.endswith("/debian-security")
