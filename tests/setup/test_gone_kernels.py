# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that a mirror lists and does not have, by the real apt from a real archive."""

import hashlib
import http.server
import os
import re
import shutil
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.variant import Variant
from errors import Exit, UserError
from run import dry_run
from run.arguments import parse
from run.campaign import Campaign
from setup import apt, cache, kernels, mirrors, package_lists
from tests.support.kernel_packages import Archive

BACKPORT, OLDER = "6.1.180-1~deb11u1", "6.1.177-1~deb11u1"
OWN, OWN_OLDER = "5.10.262-1", "5.10.259-1"
OTHER = "6.1.177-1"


class Mirror:
    """bullseye with two backports and two kernels of its own; bookworm with another 6.1.177."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.files: dict[str, Path] = {}
        self._records: dict[str, str] = {}
        self.add("6.1.0-0.deb11.52", BACKPORT)
        self.add("6.1.0-0.deb11.51", OLDER)
        self.add("5.10.0-46", OWN)
        self.add("5.10.0-45", OWN_OLDER)
        self.publish()
        record, self.files[OTHER] = archive.kernel("6.1.0-51", OTHER)
        archive.publish("bookworm", [record])

    def add(self, abi: str, version: str, *, unsigned: bool = False) -> None:
        key = f"{version} (unsigned)" if unsigned else version
        self._records[key], self.files[key] = self.archive.kernel(abi, version, unsigned=unsigned)

    def publish(self) -> None:
        self.archive.publish("bullseye", list(self._records.values()))

    def lose(self, *versions: str) -> None:
        for version in versions:
            self._aside(version).parent.mkdir(exist_ok=True)
            self.files[version].rename(self._aside(version))

    def regain(self, version: str) -> None:
        self._aside(version).rename(self.files[version])

    def _aside(self, version: str) -> Path:
        return self.archive.folder / "lost" / self.files[version].name


@pytest.fixture
def mirror(tmp_path: Path, gnupg: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The only mirror that this machine's sources name, on its disk, and a cache that is empty."""
    archive = Archive(tmp_path / "debian", gnupg)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(apt, "KEYRING", archive.keyring)
    use(f"file:{archive.folder}", monkeypatch)
    return Mirror(archive)


def use(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = mirrors.Source(uri, ("bullseye",), ("main",), "")
    monkeypatch.setattr(mirrors, "host_sources", lambda etc: [source])


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; of what is in `broken` it says that it is out of order."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        self.broken = ""
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                if server.broken and server.broken in self.path:
                    self.send_error(503)
                else:
                    super().do_GET()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), lambda *given: Handler(*given, directory=str(folder)))


@pytest.fixture
def server(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The mirror as a web server, the sources naming it."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Server(mirror.archive.folder) as served:
        use(f"http://127.0.0.1:{served.server_address[1]}", monkeypatch)
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def cached() -> set[str]:
    """The labels of the kernels in the cache."""
    folders = (cache.place() / "kernels").glob("*/lib/modules/*")
    return {folder.name for folder in folders}


def taken(spec: str, capsys: pytest.CaptureFixture[str]) -> tuple[kernels.Kernel, list[str]]:
    """What spec is resolved to, and what was said of it."""
    kernel = kernels.resolve(spec)
    said = capsys.readouterr().err.splitlines()
    return kernel, [line for line in said if line.startswith(spec)]


@pytest.mark.parametrize(
    ("spec", "lost", "version"),
    [
        ("debian:bullseye", [], BACKPORT),
        ("debian:bullseye", [BACKPORT], OLDER),
        ("debian:bullseye", [BACKPORT, OLDER], OWN),
        ("debian:bullseye", [BACKPORT, OLDER, OWN], OWN_OLDER),
        ("debian:oldbullseye", [BACKPORT, OLDER], OWN),
        ("debian:6.1", [BACKPORT], OTHER),
        ("debian:6.1", [BACKPORT, OTHER], OLDER),
        ("debian:5.10", [OWN], OWN_OLDER),
    ],
)
def test_the_newest_that_the_mirror_has_is_taken_and_said(
    mirror: Mirror,
    capsys: pytest.CaptureFixture[str],
    spec: str,
    lost: list[str],
    version: str,
) -> None:
    mirror.lose(*lost)
    kernel, said = taken(spec, capsys)
    gone = ", ".join(lost)
    line = f"{spec}: listed, but not on the mirror: {gone}; taken: {version}"
    assert said == ([line] if lost else [])
    assert kernel.package == version
    assert kernel.label == version.partition("-")[0]
    assert kernels.image_release(kernel.image) == kernel.release
    assert cached() == {kernel.release}
    assert list((cache.place() / "apt/archives").glob("*.deb")) == []


@pytest.mark.parametrize("part", ["vmlinuz", "modules"])
def test_a_kernel_that_is_damaged_in_the_cache_is_fetched_again(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], part: str
) -> None:
    kernel = kernels.resolve("debian:6.1")
    assert kernel.modules is not None
    path = kernel.image
    if part == "modules":
        path = next(one for one in sorted(kernel.modules.rglob("*")) if one.stat().st_size)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 255]))
    monkeypatch.setattr(cache, "_checked", {})
    assert kernels.resolve("debian:6.1") == kernel
    assert path.read_bytes() == whole
    assert "damaged in the cache" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spec", "lost"),
    [
        ("debian:bullseye", [BACKPORT, OLDER, OWN, OWN_OLDER]),
        ("debian:6.1", [BACKPORT, OTHER, OLDER]),
        ("debian:6.1.180", [BACKPORT]),
        ("debian:6.1.0-0.deb11.51", [OLDER]),
        (f"debian:{OLDER}", [OLDER]),
    ],
)
def test_what_does_not_match_is_never_taken_and_all_that_was_tried_is_named(
    mirror: Mirror, spec: str, lost: list[str]
) -> None:
    mirror.lose(*lost)
    with pytest.raises(UserError) as error:
        kernels.resolve(spec)
    said = f"{spec}: listed, but not on the mirror: {', '.join(lost)} (name another "
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)
    assert error.value.status is Exit.MISSING
    assert cached() == set()


def test_the_same_version_unsigned_comes_before_an_older_one(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.add("6.1.0-0.deb11.52", BACKPORT, unsigned=True)
    mirror.publish()
    mirror.lose(BACKPORT)
    kernel, said = taken("debian:bullseye", capsys)
    assert kernel.package == BACKPORT
    assert said == [
        f"debian:bullseye: listed, but not on the mirror: {BACKPORT}; taken: {BACKPORT} (unsigned)"
    ]
    mirror.lose(f"{BACKPORT} (unsigned)")
    shutil.rmtree(cache.place() / "kernels")
    kernel, said = taken("debian:bullseye", capsys)
    assert said == [f"debian:bullseye: listed, but not on the mirror: {BACKPORT}; taken: {OLDER}"]


def test_a_kernel_of_which_one_package_is_gone_leaves_nothing(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    version = "7.2.13-1"
    record, file = mirror.archive.split_kernel("7.2.13+deb14", version)
    older, _ = mirror.archive.split_kernel("7.2.12+deb14", "7.2.12-1")
    mirror.archive.publish("sid", [record, older])
    file.unlink()
    kernel, said = taken("debian:sid", capsys)
    assert (kernel.package, kernel.release) == ("7.2.12-1", "7.2.12+deb14-cloud-amd64")
    assert said == [f"debian:sid: listed, but not on the mirror: {version}; taken: 7.2.12-1"]
    assert list((cache.place() / "apt/archives").glob("*.deb")) == []


def test_a_file_that_a_web_server_lacks(
    mirror: Mirror, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror.lose(BACKPORT, OLDER)
    kernel, said = taken("debian:bullseye", capsys)
    gone = f"{BACKPORT}, {OLDER}"
    assert kernel.package == OWN
    assert said == [f"debian:bullseye: listed, but not on the mirror: {gone}; taken: {OWN}"]
    assert [path.rpartition("_amd64")[0].partition("_")[2] for path in server.asked[-3:]] == [
        *(version.replace("~", "%7e") for version in (BACKPORT, OLDER)),
        OWN,
    ]


def test_a_web_server_out_of_order_is_no_file_that_is_gone(
    mirror: Mirror, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels.resolve("debian:5.10")
    server.broken = "deb11.52"
    with pytest.raises(
        UserError, match=r"downloading linux-image-.*52.* failed: E: .*503"
    ) as error:
        kernels.resolve("debian:bullseye")
    assert "check the network and --mirror" in str(error.value)
    assert "listed, but not" not in capsys.readouterr().err


def test_without_a_network_nothing_else_is_taken(
    mirror: Mirror, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    own = kernels.resolve("debian:5.10")
    server.shutdown()
    server.server_close()
    with pytest.raises(UserError, match=r"downloading linux-image-.*52.* failed: E: .*connect"):
        kernels.resolve("debian:bullseye")
    assert cached() == {own.release}
    assert capsys.readouterr().err.count("taken") == 0
    assert kernels.resolve("debian:5.10") == own


def age(hours: float) -> None:
    """Let the package lists be as old."""
    then = time.time() - 3600 * hours
    os.utime(apt.home() / "index.json", (then, then))


def test_lists_that_are_out_of_date_are_no_reason_to_take_an_older_one(
    mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    package_lists.update()
    mirror.lose(BACKPORT)
    newer = "6.1.185-1~deb11u1"
    mirror.add("6.1.0-0.deb11.53", newer)
    mirror.publish()
    age(hours=0.5)
    assert taken("debian:bullseye", capsys)[0].package == OLDER
    age(hours=2)
    kernel, said = taken("debian:bullseye", capsys)
    assert kernel.package == newer
    assert said == []


def entered(folder: Path, *argv: str) -> tuple[Variant, kernels.Kernel]:
    """The one variant of a campaign that is begun or resumed, and the kernel that it takes."""
    options = parse(list(argv))
    campaign = Campaign(options, argv)
    assert campaign.path == folder
    kernel = kernels.resolve(campaign.pinned(options.variants[0]))
    (variant,) = campaign.enter([(options.variants[0], kernel)])
    return variant, kernel


def test_a_campaign_goes_on_with_the_kernel_that_it_took(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"
    mirror.lose(BACKPORT)
    variant, first = entered(out, "--out", str(out), "--kernel", "debian:bullseye")
    assert (variant.kernel, variant.label) == ("debian:bullseye", "6.1.177")
    assert f"taken: {OLDER}\n" in capsys.readouterr().err
    (entry,) = tomllib.loads((out / "plan.toml").read_text())["variant"]
    assert entry == {
        "label": "6.1.177",
        "kernel": "debian:bullseye",
        "release": "6.1.0-0.deb11.51-cloud-amd64",
        "version": "6.1.177",
        "package": OLDER,
        "image_digest": hashlib.sha256(first.image.read_bytes()).hexdigest(),
        "requested_runs": 1,
    }
    # What was gone is there again, and bookworm's 6.1.177 is newer than this one.
    mirror.regain(BACKPORT)
    steps = dry_run.lines(parse(["--resume", str(out)]))
    (told,) = [line for line in steps if line.startswith("variant 6.1.177: ")]
    assert "(6.1.0-0.deb11.51-cloud-amd64), already in the cache" in told
    shutil.rmtree(cache.place() / "kernels")
    for argv in (["--resume", str(out)], ["--resume", str(out), "--kernel", "debian:bullseye"]):
        assert entered(out, *argv)[1].image_digest == first.image_digest
    assert capsys.readouterr().err == ""
    shutil.rmtree(cache.place() / "kernels")
    mirror.lose(OLDER)
    with pytest.raises(UserError, match=f"listed, but not on the mirror: {re.escape(OLDER)} "):
        entered(out, "--resume", str(out))


def test_a_campaign_goes_on_with_the_flavour_that_it_took(
    mirror: Mirror, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, out = mirror.archive, tmp_path / "mine"
    records = [
        archive.kernel("6.1.0-51", OTHER, flavour=flavour)[0] for flavour in ("amd64", "rt-amd64")
    ]
    archive.publish("bookworm", records)
    variant, kernel = entered(out, "--out", str(out), "--kernel", "debian:6.1/amd64")
    assert (variant.kernel, variant.label) == ("debian:6.1/amd64", "6.1.177-amd64")
    assert kernel.release == "6.1.0-51-amd64"
    newer, _ = archive.kernel("6.1.0-52", "6.1.180-1", flavour="amd64")
    archive.publish("bookworm", [*records, newer])
    age(hours=25)
    steps = dry_run.lines(parse(["--resume", str(out)]))
    (told,) = [line for line in steps if line.startswith("variant 6.1.177-amd64: ")]
    assert "Debian's kernel 6.1.177-amd64 (6.1.0-51-amd64), already in the cache" in told
    assert entered(out, "--resume", str(out))[1].image_digest == kernel.image_digest
    capsys.readouterr()
    rt = kernels.resolve("debian:bookworm/rt-amd64")
    assert (rt.label, rt.release) == ("6.1.177-rt-amd64", "6.1.0-51-rt-amd64")


def test_a_campaign_does_not_go_on_with_another_build_of_its_version(
    mirror: Mirror, tmp_path: Path
) -> None:
    out = tmp_path / "mine"
    mirror.add("6.1.0-0.deb11.52", BACKPORT, unsigned=True)
    mirror.publish()
    entered(out, "--out", str(out), "--kernel", "debian:bullseye")
    before = (out / "plan.toml").read_text()
    shutil.rmtree(cache.place() / "kernels")
    mirror.lose(BACKPORT)
    with pytest.raises(UserError, match=r"6\.1\.180: its runs in .* have another kernel"):
        entered(out, "--resume", str(out))
    assert (out / "plan.toml").read_text() == before
