# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that are this machine: an sshd each on loopback, with a key and a cache of their own.

The sshd is that of Debian's package, which is not installed for it.

Their VMs are played (played_session), by a settings file for each host, unless a test wants real
ones.
"""

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.played_session import PLAYED
from tests.support.processes import processes
from tests.support.unpacked_packages import LIBRARIES, unpack

# sshd looks for its privileges' user by this name, which only its package adds.
USER = "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin"
PARTS = {"SshdSessionPath": "sshd-session", "SshdAuthPath": "sshd-auth"}  # since OpenSSH 9.8, 10.0
PLAYER = Path(__file__).with_name("played_session.py")
# Imported by each python3 that ssh starts: the suite that was sent knows nothing of tests.
SITE = f"""\
import sys
if {{"run.one", "run.slurm.on_node"}} & set(sys.orig_argv):
    import runpy
    runpy.run_path({str(PLAYER)!r})["install"]()
"""


class LoopbackHost:
    """One of them. Its processes have its cache in their environment."""

    def __init__(self, name: str, folder: Path, programs: Path) -> None:
        self.name = name
        self.folder = folder
        self._programs = programs
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def cache(self) -> Path:
        """Its cache of the suite."""
        return self.folder / "cache" / "desktop-freeze"

    def play(self, **settings: Any) -> None:
        """What its VMs do from now on."""
        aside = self.folder / "played.new"
        aside.write_text(json.dumps(settings))
        aside.rename(self.folder / "played.json")

    def begin(self, disk_kib: int = 0) -> None:
        """Start its sshd. disk_kib: its cache is on a disk so large, which nobody else sees."""
        sshd = str(self._programs / "usr/sbin/sshd")
        command = [sshd, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        mounts = []
        if os.geteuid() == 0:
            users = self.folder / "passwd"
            users.write_text(f"{Path('/etc/passwd').read_text()}{USER}\n")
            mounts.append(f"mount --bind {users} /etc/passwd")
        if disk_kib:
            (self.folder / "cache").mkdir(exist_ok=True)
            mounts.append(f"mount -t tmpfs -o size={disk_kib}k none {self.folder / 'cache'}")
        if mounts:
            shell = " && ".join([*mounts, 'exec "$@"'])
            command = ["unshare", "--mount", "sh", "-c", shell, "sh", *command]
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "LD_LIBRARY_PATH": str(self._programs / LIBRARIES)},
            stderr=open(self.folder / "sshd.log", "ab"),  # noqa: SIM115 (the process's own)
        )
        until = time.monotonic() + 600
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "sshd.log").read_text())

    def end(self) -> None:
        """End its sshd; what was started through it goes on."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def workers(self) -> list[int]:
        """The processes that do runs on it."""
        mark = f"XDG_CACHE_HOME={self.cache}/".encode()
        return [
            pid
            for pid, words, environment in processes()
            if b"run.one" in words and any(mark in variable for variable in environment)
        ]

    def campaigns(self) -> list[Path]:
        """What campaigns have left on it."""
        return list((self.cache / "campaigns").glob("*"))


@contextlib.contextmanager
def hosts(folder: Path, *names: str, played: bool = True) -> Iterator[list[LoopbackHost]]:
    """These hosts within, known to ssh by `folder`/ssh_config. played: their VMs are."""
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where Debian's sshd leaves its privileges
    for key in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
        subprocess.run(command, check=True)
    public = (folder / "host_key.pub").read_text().rpartition(" ")[0]
    programs = unpack("sshd-for-tests", "openssh-server")
    parts = {
        option: path
        for option, name in PARTS.items()
        if (path := programs / "usr/lib/openssh" / name).exists()
    }
    made = [LoopbackHost(name, folder / name, programs) for name in names]
    config, known = [], []
    for one in made:
        one.folder.mkdir()
        (one.folder / "site").mkdir()
        if played:
            (one.folder / "site" / "sitecustomize.py").write_text(SITE)
        shutil.copy(folder / "user_key.pub", one.folder / "authorized_keys")
        settings = {
            "HOME": one.folder,  # what the user's shell reads there may take a minute
            "XDG_CACHE_HOME": one.folder / "cache",
            "DESKTOP_FREEZE_LOCKS": one.folder,
            "PYTHONPATH": one.folder / "site",
            PLAYED: one.folder / "played.json",
        }
        words = " ".join(f"{name}={value}" for name, value in settings.items())
        (one.folder / "sshd_config").write_text(
            f"Port {one.port}\nListenAddress 127.0.0.1\nHostKey {folder / 'host_key'}\n"
            f"PidFile none\nAuthorizedKeysFile {one.folder / 'authorized_keys'}\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nMaxStartups 50\n"
            f"SetEnv {words}\n" + "".join(f"{option} {path}\n" for option, path in parts.items())
        )
        known.append(f"[127.0.0.1]:{one.port} {public}\n")
        config.append(f"Host {one.name}\n    Port {one.port}\n")
        one.play()
    (folder / "known_hosts").write_text("".join(known))
    (folder / "ssh_config").write_text(
        "".join(config) + f"Host *\n    HostName 127.0.0.1\n    User {getpass.getuser()}\n"
        f"    IdentityFile {folder / 'user_key'}\n    IdentitiesOnly yes\n"
        f"    UserKnownHostsFile {folder / 'known_hosts'}\n    StrictHostKeyChecking yes\n"
    )
    try:
        for one in made:
            one.begin()
        yield made
    finally:
        for one in made:
            one.end()
            for pid in one.workers():
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
