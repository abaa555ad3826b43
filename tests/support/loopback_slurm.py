# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm cluster that is this machine: munged, slurmctld and slurmd's of Debian's packages.

Nothing is installed, and nothing of it runs but within `cluster()`. Needs no root, cgroups or
accounting.
"""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.loopback_hosts import free_port
from tests.support.processes import processes
from tests.support.unpacked_packages import LIBRARIES, unpack
from tests.support.vms import wait_for

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
PATIENCE_S = 600.0  # of a machine that is busy with other things
CONFIG = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
PluginDir={plugins}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=3600
SlurmctldTimeout=10
MessageTimeout=100
KillWait=120
MinJobAge=3600
MaxArraySize={max_array}
SchedulerParameters=sched_interval=2,bf_interval=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class LoopbackSlurm:
    """A cluster of nodes with two slots each. Its daemons are processes of ours."""

    def __init__(self, folder: Path, programs: Path, nodes: tuple[str, ...], max_array: int):
        self.folder = folder
        self.nodes = nodes
        self._programs = programs
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", "bin", *(f"spool-{one}" for one in nodes)):
            (folder / name).mkdir()
        libraries = f"{programs / LIBRARIES}:{programs / LIBRARIES / 'slurm-wlm'}"
        self._own = {
            **os.environ,
            "LD_LIBRARY_PATH": libraries,
            "SLURM_CONF": str(folder / "slurm.conf"),
        }
        for command in COMMANDS:
            script = folder / "bin" / command
            settings = f"LD_LIBRARY_PATH={libraries} SLURM_CONF={folder / 'slurm.conf'}"
            script.write_text(f'#!/bin/sh\n{settings} exec {programs}/usr/bin/{command} "$@"\n')
            script.chmod(0o755)
        host = socket.gethostname()
        lines = [
            f"NodeName={one} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2 "
            "RealMemory=8000 State=UNKNOWN"
            for one in nodes
        ]
        (folder / "slurm.conf").write_text(
            CONFIG.format(
                host=host,
                port=free_port(),
                user=getpass.getuser(),
                folder=folder,
                plugins=programs / LIBRARIES / "slurm-wlm",
                max_array=max_array,
                nodes="\n".join(lines),
            )
        )
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)

    @property
    def environment(self) -> Mapping[str, str]:
        """What a program needs to find this cluster's commands."""
        return {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}

    def begin(self, *names: str) -> None:
        """Start these daemons: munged, slurmctld, or a node's slurmd by the node's name."""
        for name in names:
            usr = self._programs / "usr" / "sbin"
            if name == "munged":
                files = {
                    "socket": "munge.socket",
                    "key-file": "munge.key",
                    "log-file": "munged.log",
                    "pid-file": "munged.pid",
                    "seed-file": "munged.seed",
                }
                words = [str(usr / "munged"), "--foreground", "--force"]
                words += [f"--{one}={self.folder / file}" for one, file in files.items()]
            elif name == "slurmctld":
                words = [str(usr / "slurmctld-wlm"), "-D"]
            else:
                words = [str(usr / "slurmd-wlm"), "-D", "-N", name]
                words += ["-d", str(usr / "slurmstepd-wlm")]
            with open(self.folder / f"{name}.out", "ab") as out:
                self._daemons[name] = subprocess.Popen(
                    words, env=self._own, stdin=subprocess.DEVNULL, stdout=out, stderr=out
                )
            if name == "munged":
                assert wait_for((self.folder / "munge.socket").exists, PATIENCE_S)

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a daemon by a signal."""
        daemon = self._daemons.pop(name)
        daemon.send_signal(number)
        daemon.wait()

    def call(self, *words: str) -> str:
        """One of Slurm's commands: what it printed."""
        done = subprocess.run(
            [str(self.folder / "bin" / words[0]), *words[1:]], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def is_up(self) -> bool:
        """Whether all nodes can do runs."""
        with contextlib.suppress(AssertionError):
            states = self.call("sinfo", "-h", "-N", "-o", "%T").split()
            return states == ["idle"] * len(self.nodes)
        return False

    def processes(self) -> list[int]:
        """Processes of slurmd's jobs that are still there, the daemons left out."""
        mark = f"SLURM_CONF={self.folder / 'slurm.conf'}".encode()
        pids = {pid for pid, _, environment in processes() if mark in environment}
        return sorted(pids - {one.pid for one in self._daemons.values()})

    def end(self) -> None:
        """End all daemons, and what they started."""
        if "slurmctld" in self._daemons:
            with contextlib.suppress(AssertionError):
                self.call("scancel", "--user", getpass.getuser())
                wait_for(lambda: not self.call("squeue", "-h").strip(), PATIENCE_S)
        for name in reversed(list(self._daemons)):
            self.kill(name, signal.SIGTERM if name != "munged" else signal.SIGKILL)
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def cluster(folder: Path, *nodes: str, max_array: int = 1001) -> Iterator[LoopbackSlurm]:
    """A cluster within, whose nodes are up."""
    assert shutil.which("apt-get"), "needs Debian's packages"
    programs = unpack("slurm-for-tests", *PACKAGES)
    folder.mkdir(parents=True)
    made = LoopbackSlurm(folder, programs, nodes, max_array)
    try:
        made.begin("munged", "slurmctld", *nodes)
        assert wait_for(made.is_up, PATIENCE_S), (folder / "slurmctld.log").read_text()[-3000:]
        yield made
    finally:
        made.end()
