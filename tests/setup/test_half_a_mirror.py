# SPDX-License-Identifier: GPL-2.0-or-later
"""A mirror of which some suites are expired, damaged, not there or silent; the real apt asks it."""

import http.server
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from errors import Exit, UserError
from setup import apt, kernels, mirrors, package_lists
from tests.support.kernel_packages import Archive, signing_key

OWN, NEWER, NEWEST = "6.1.170-1", "6.1.177-1", "7.2.13-1"
SECURITY = "bookworm-security"


class Mirror:
    """bookworm with its security updates, and sid, each with a kernel of its own."""

    def __init__(self, folder: Path, gnupg: Path) -> None:
        self.archive = Archive(folder / "debian", gnupg)
        self._other = folder / "o"
        self._records = {
            "bookworm": self.archive.kernel("6.1.0-50", OWN)[0],
            SECURITY: self.archive.kernel("6.1.0-51", NEWER)[0],
            "sid": self.archive.kernel("7.2.13", NEWEST)[0],
        }
        for suite in self._records:
            self.publish(suite)

    def publish(self, suite: str, *, days_left: float = 7) -> None:
        self.archive.publish(suite, [self._records[suite]], days_left=days_left)

    def _file(self, suite: str, name: str) -> Path:
        return self.archive.folder / "dists" / suite / name

    def expire(self, suite: str) -> None:
        self.publish(suite, days_left=-1)

    def lose(self, suite: str) -> None:
        folder = self._file(suite, "")
        folder.rename(folder.with_name(f"lost-{suite}"))

    def lose_list(self, suite: str) -> None:
        self._file(suite, "main/binary-amd64/Packages").unlink()

    def forge(self, suite: str) -> None:
        with signing_key(self._other):
            forger = Archive(self._other.with_name("other"), self._other)
            forger.publish(suite, [self._records[suite]])
        forged = self._other.with_name("other") / "dists" / suite / "InRelease"
        forged.rename(self._file(suite, "InRelease"))


SPOILT: list[tuple[Callable[[Mirror, str], None], str]] = [
    (Mirror.expire, "is expired"),
    (Mirror.forge, "is not signed"),
    (Mirror.lose_list, "File not found"),
]


@pytest.fixture
def mirror(tmp_path: Path, gnupg: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """The only mirror that this machine's sources name, and a cache that is empty."""
    mirrors.say_once.cache_clear()
    made = Mirror(tmp_path, gnupg)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(apt, "KEYRING", made.archive.keyring)
    # Not this machine's configuration: it may say that nothing ever expires.
    (tmp_path / "etc/apt.conf.d").mkdir(parents=True)
    monkeypatch.setattr(apt, "HOST", tmp_path / "etc")
    use(f"file:{made.archive.folder}", monkeypatch)
    return made


def use(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [mirrors.Source(uri, (suite,), ("main",), "") for suite in ("bookworm", SECURITY)]
    monkeypatch.setattr(mirrors, "host_sources", lambda etc: sources)


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder; of `broken` it says that it is out of order, of `silent` it says nothing."""

    def __init__(self, folder: Path) -> None:
        self.silent = self.broken = ""
        self.asked: list[str] = []
        self.over = threading.Event()
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                if server.silent and server.silent in self.path:
                    server.over.wait()
                    self.close_connection = True
                elif server.broken and server.broken in self.path:
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
        served.over.set()
        served.shutdown()
        thread.join()


def lines_of(suite: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What was said of a suite on stderr; it is said again after this."""
    mirrors.say_once.cache_clear()
    lines = capsys.readouterr().err.splitlines()
    return [line for line in lines if line.startswith((f"debian:{suite} ", f"debian:{suite}:"))]


def age(hours: float) -> None:
    """Let all lists be as old."""
    then = time.time() - 3600 * hours
    for path in (apt.home() / "index.json", *apt.home().glob("suites/*/fetched")):
        os.utime(path, (then, then))


def test_lists_of_the_future_are_fetched_again(server: Server) -> None:
    """The clock was set back since: they would be young until then."""
    kernels.resolve("debian:bookworm")
    server.asked.clear()
    kernels.resolve("debian:bookworm")
    assert server.asked == []
    age(hours=-1)
    kernels.resolve("debian:bookworm")
    assert any("InRelease" in path for path in server.asked)


@pytest.mark.parametrize(("spoil", "why"), [*SPOILT, (Mirror.lose, "have a Release file")])
def test_a_suite_that_nobody_asked_for_is_left_out_in_one_line(
    mirror: Mirror,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Mirror, str], None],
    why: str,
) -> None:
    spoil(mirror, "sid")
    assert kernels.resolve("debian:bookworm").package == NEWER
    (line,) = lines_of("sid", capsys)
    assert line.startswith("debian:sid is left out: ") and why in line
    assert kernels.resolve("debian:6.1").package == NEWER
    assert lines_of("sid", capsys) == []


@pytest.mark.parametrize(("spoil", "why"), SPOILT)
@pytest.mark.parametrize(
    ("spec", "suite"),
    [("debian:sid", "sid"), ("debian:bookworm", SECURITY)],
    ids=["own", "security"],
)
def test_a_suite_that_was_asked_for_has_to_be_there(
    mirror: Mirror,
    spec: str,
    suite: str,
    spoil: Callable[[Mirror, str], None],
    why: str,
) -> None:
    spoil(mirror, suite)
    with pytest.raises(UserError, match=why) as error:
        kernels.resolve(spec)
    text = str(error.value)
    assert text.startswith(f"{spec}: {suite} cannot be fetched: ") and "\n" not in text
    assert error.value.status is Exit.MISSING
    mirror.lose(suite)
    mirror.publish(suite)
    assert kernels.resolve(spec).package == (NEWEST if suite == "sid" else NEWER)


def test_a_mirror_without_the_suite(mirror: Mirror) -> None:
    mirror.lose("sid")
    with pytest.raises(UserError, match=r"no cloud-amd64 kernel of suite sid \(suites: bookworm"):
        kernels.resolve("debian:sid")
    mirror.lose(SECURITY)
    age(hours=25)
    assert kernels.resolve("debian:bookworm").package == OWN


def test_a_version_that_nobody_has_names_the_suites_that_did_not_come(mirror: Mirror) -> None:
    mirror.expire("sid")
    with pytest.raises(UserError, match=r"no cloud-amd64 kernel of version 7\.2 ") as error:
        kernels.resolve("debian:7.2")
    assert "; without " in str(error.value) and " sid" in str(error.value).partition("without")[2]
    mirror.publish("sid")
    age(hours=1)
    assert kernels.resolve("debian:7.2").package == NEWEST


def test_a_silent_suite(
    mirror: Mirror,
    server: Server,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(package_lists, "TIMEOUT_S", 2)
    server.silent = "/sid/"
    assert kernels.resolve("debian:bookworm").package == NEWER
    assert len(lines_of("sid", capsys)) == 1
    before = len(server.asked)
    assert kernels.resolve("debian:6.1").package == NEWER
    assert len(server.asked) == before
    server.silent, server.broken = "", "/sid/"
    with pytest.raises(UserError, match="debian:sid: sid cannot be fetched: Failed to fetch "):
        kernels.resolve("debian:sid")
    server.broken = ""
    assert kernels.resolve("debian:sid").package == NEWEST


def test_lists_of_a_suite_that_is_out_of_order_now_are_used_and_that_is_said(
    mirror: Mirror, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kernels.resolve("debian:sid").package == NEWEST
    capsys.readouterr()
    age(hours=30)
    server.broken = "/sid/"
    for spec in ("debian:7.2", "debian:sid"):
        assert kernels.resolve(spec).package == NEWEST
        (line,) = lines_of("sid", capsys)
        assert line.startswith("debian:sid: its list of 30 h ago is used: Failed to fetch ")


def test_lists_of_a_suite_that_apt_refuses_now_are_not_used(mirror: Mirror) -> None:
    assert kernels.resolve("debian:sid").package == NEWEST
    mirror.expire("sid")
    age(hours=30)
    with pytest.raises(UserError, match="is expired"):
        kernels.resolve("debian:sid")


def test_with_no_answer_at_all(
    mirror: Mirror, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.broken = "/"
    with pytest.raises(UserError, match="fetching the package lists failed: Failed to fetch"):
        kernels.resolve("debian:7.2")
    server.broken = ""
    kernels.resolve("debian:7.2")
    capsys.readouterr()
    age(hours=30)
    uri = f"http://127.0.0.1:{server.server_address[1]}"
    server.broken = "/"
    with pytest.raises(UserError, match="fetching the package lists failed: Failed to fetch"):
        kernels.resolve("debian:7.2", mirror=uri)
    for _ in range(2):
        assert kernels.resolve("debian:7.2").package == NEWEST
        assert len(lines_of("sid", capsys)) == 1
