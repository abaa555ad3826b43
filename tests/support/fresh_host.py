# SPDX-License-Identifier: GPL-2.0-or-later
"""Fresh Debian machines to run the suite on: a root file system each, entered by enter_root.sh.

They get from the machine that they are on what a user sets up first: apt's sources and proxy, pip's
settings, certificates, and nothing else.
"""

import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from setup import apt, mirrors

SUITE = Path(__file__).resolve().parents[2]
ENTER = Path(__file__).with_name("enter_root.sh")
PACKAGES = ("ca-certificates", "git", "python3", "sudo")
SUITES = {"12": "bookworm", "13": "trixie"}
ROOT, USER = "root", "tester"
HOMES = {ROOT: "/root", USER: f"/home/{USER}"}
CLONE = "desktop-freeze"
# How pip, git and Python reach the network here: passed on, with the files that they name.
NETWORK = re.compile(
    r"(?:https?|no|all)_proxy|PIP_\w+|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|GIT_SSL_CAINFO",
    re.IGNORECASE,
)
SETTINGS = ("/etc/pip.conf", "/etc/apt/auth.conf.d", "/etc/resolv.conf")
# A command that has this before it dies with the thread that started it.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
NO_SUITE = re.compile(r"does not have a Release file|is not valid anymore|404")
GONE_S = 10  # within which a killed command's namespace is gone
_running: set["subprocess.Popen[str]"] = set()


class NoSuite(Exception):
    """The mirror does not have this suite of Debian, or not in date."""


@dataclass
class Output:
    """How a command ended, and when it printed which line (seconds since it was started)."""

    status: int = -1
    lines: list[tuple[float, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """All that it printed."""
        return "".join(line for _, line in self.lines)

    def first(self, pattern: str) -> float | None:
        """When the first line came in which the pattern is found."""
        return next((when for when, line in self.lines if re.search(pattern, line)), None)


def network_settings() -> dict[str, str]:
    """The variables of the environment by which programs here reach the network."""
    return {name: value for name, value in os.environ.items() if NETWORK.fullmatch(name)}


def end_all() -> None:
    """Kill what runs on all hosts."""
    for process in tuple(_running):
        process.kill()


@contextlib.contextmanager
def started(command: Sequence[str | Path]) -> Iterator["subprocess.Popen[str]"]:
    """A command within; killed on leaving, by end_all(), and with this process."""
    process = subprocess.Popen(
        [*DIES_WITH_US, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    _running.add(process)
    try:
        yield process
    finally:
        process.kill()
        process.wait(GONE_S)
        _running.remove(process)


def make_base(debian: str, tar: Path) -> None:
    """Make a tar of a fresh Debian, `12` or `13`; NoSuite if the mirror does not have it."""
    main, security = mirrors.find()
    suite = SUITES[debian]
    places = [f"{main} {suite}", f"{main} {suite}-updates"]
    places += [f"{security} {suite}-security"] if security else []
    listed = tar.with_name(f"{tar.name}.list")
    listed.write_text("".join(f"deb [signed-by={apt.KEYRING}] {one} main\n" for one in places))
    command: list[str | Path] = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
    ]
    command += ["--kill-child", "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase"]
    command += [f"--include={','.join(PACKAGES)}"]
    command += [f"--aptopt={line}" for line in _apt_settings()]
    with started([*command, suite, tar, listed]) as process:
        printed, _ = process.communicate()
    if process.returncode and NO_SUITE.search(printed):
        raise NoSuite(f"the mirror has no Debian {debian} ({suite}): {apt.last_line(printed)}")
    assert process.returncode == 0, printed


def _apt_settings() -> list[str]:
    return apt.host_settings(("Acquire::http", "Acquire::https", "Acquire::Check"))


class FreshHost:
    """A root file system with a user who may use sudo, and a clone of the suite for each user."""

    def __init__(self, base: Path, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)
        unpack = ["tar", "--extract", "--xattrs", "--xattrs-include=*", "--numeric-owner"]
        subprocess.run([*unpack, f"--file={base}", f"--directory={root}"], check=True)
        self._configure()

    def _configure(self) -> None:
        # A host's own: its name and the modes of its files are in no run.
        name = self.root.name
        (self.root / "etc/hostname").write_text(f"{name}\n")
        (self.root / "etc/hostname").chmod(0o755 if "13" in name else 0o644)
        (self.root / "etc/hosts").write_text(f"127.0.0.1 localhost {name}\n")
        settings = self.root / "etc/apt/apt.conf.d/90network"
        settings.write_text("".join(f"{line}\n" for line in _apt_settings()))
        named = (value for value in network_settings().values() if value.startswith("/"))
        for place in {*SETTINGS, *named}:
            self._copy(Path(place))
        self.check("useradd", "--create-home", "--shell", "/bin/bash", USER)
        sudoers = self.root / "etc/sudoers.d" / USER
        sudoers.write_text(f"{USER} ALL=(ALL) NOPASSWD: ALL\n")
        sudoers.chmod(0o440)

    def _copy(self, place: Path) -> None:
        target = self.root / place.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.copytree(place, target, dirs_exist_ok=True)
        elif place.is_file():
            target.unlink(missing_ok=True)
            shutil.copy(place, target)

    def path(self, name: str) -> Path:
        """Where a file of the root is on this machine."""
        return self.root / name.lstrip("/")

    def command(self, user: str, folder: str, *argv: str) -> list[str]:
        """What runs argv in the root as this user, in a folder of it."""
        settings = [f"{name}={value}" for name, value in network_settings().items()]
        return [str(ENTER), str(self.root), user, folder, *settings, *argv]

    def check(self, *argv: str) -> str:
        """Run a command as root; what it printed. AssertionError if it fails."""
        command = self.command(ROOT, "/", *argv)
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def clone(self, user: str) -> str:
        """Clone the commit under test into the user's home: the folder's name in the root."""
        place = f"{HOMES[user]}/{CLONE}"
        git = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--no-hardlinks"]
        subprocess.run([*git, f"file://{SUITE}", self.path(place)], check=True)
        self.check("chown", "--recursive", f"{user}:{user}", place)
        return place

    def run(self, user: str, folder: str, *argv: str, within_s: float) -> Output:
        """Run a command as this user; its lines with their times. Killed after within_s."""
        output = Output()
        began = time.monotonic()
        # unshare's child, PID 1 of the namespace, is killed with it, and all else with that.
        with started(self.command(user, folder, *argv)) as process:
            timer = threading.Timer(within_s, process.kill)
            timer.start()
            assert process.stdout is not None
            for line in process.stdout:
                output.lines.append((time.monotonic() - began, line))
            output.status = process.wait()
            timer.cancel()
        output.seconds = time.monotonic() - began
        return output
