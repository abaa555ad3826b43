# SPDX-License-Identifier: GPL-2.0-or-later
"""A host of a campaign: sends it files, calls its actions, fetches results."""

import contextlib
import json
import re
import shlex
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED
from contract.run_record import write_status
from errors import UserError
from run.hosts import sending
from run.hosts.host_list import Host
from run.hosts.on_host import STORE
from run.hosts.ssh import Failed, Remote
from run.jobs import plan_file, run_copies
from run.jobs.job import Job
from run.run_folders import ended, why_of
from vm.results_memory import recover

SUITES, CAMPAIGNS = "sent-suites", "campaigns"
LOOK_AT = """\
for program in python3 rsync setpriv tar unshare; do
    command -v $program >/dev/null || { echo "$program" >&2; exit 1; }
done
python3 -c 'import sys; print(sys.version_info >= (3, 11))'
mkdir -p "${XDG_CACHE_HOME:-$HOME/.cache}/desktop-freeze" || exit 1
echo "${XDG_CACHE_HOME:-$HOME/.cache}/desktop-freeze"
"""


class LeftOut(Exception):
    """This host cannot do runs: why, in one line."""


class OneHost:
    """A host. campaign: the campaign's name there, which stays the same when it is resumed."""

    def __init__(self, host: Host, campaign: str) -> None:
        self.name = host.name
        self.slots = host.slots
        self._remote = Remote(host.name)
        self._id = campaign
        self._cache = ""
        self._suite = ""
        self._sent: set[tuple[str, str]] = set()  # (place in the campaign's cache, digest)
        self.answered_s = 0.0  # duration of its first command

    @property
    def _campaign(self) -> str:
        # Hosts may share a home folder, but each may only touch its own jobs.
        name = re.sub(r"[^A-Za-z0-9_.-]", "_", self.name)
        return f"{self._cache}/{CAMPAIGNS}/{self._id}-{name}"

    def open(self) -> None:
        """Send it the suite; LeftOut if it lacks something, NoAnswer if it does not answer."""
        began = time.monotonic()
        try:
            version, place = self._remote.run(LOOK_AT).split("\n")[:2]
        except Failed as error:
            raise LeftOut(f"it lacks {error}: install it there") from None
        except ValueError:
            raise LeftOut("its login shell prints extra text: check its ~/.bashrc") from None
        if version != "True":
            raise LeftOut("its python3 is older than 3.11")
        self.answered_s = time.monotonic() - began
        self._cache = place
        digest, packed = sending.suite()
        suites = shlex.quote(f"{place}/{SUITES}")
        self._suite = f"{place}/{SUITES}/{digest}"
        unpack = f"cd {suites} && d=.{digest}.$$ && mkdir $d && tar -xzf - -C $d"
        try:
            there = self._remote.run(f"mkdir -p {suites} && cd {suites} && ls")
            if digest not in there.split():
                self._remote.run(f"{unpack} && {{ mv -T $d {digest} || rm -r $d; }}", packed)
        except Failed as error:
            raise LeftOut(str(error)) from None

    def call(self, action: str, **asked: Any) -> dict[str, Any]:
        """Call an action of run.hosts.on_host; returns its answer. Failed or NoAnswer."""
        home = shlex.quote(f"{self._campaign}/cache")
        script = f"mkdir -p {home} && cd {shlex.quote(self._suite)} && XDG_CACHE_HOME={home} "
        script += 'PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" '
        script += f"exec python3 -m run.hosts.on_host {action}"
        try:
            answer: dict[str, Any] = json.loads(
                self._remote.run(script, json.dumps(asked).encode())
            )
        except ValueError:
            raise Failed(f"{action}: its answer is no JSON") from None
        return answer

    def send(self, job: Job) -> None:
        """Send all files that a job needs; each is copied once for all campaigns."""
        needed = {
            place: (digest, path)
            for place, (digest, path) in sending.needed(job).items()
            if (place, digest) not in self._sent
        }
        if not needed:
            return
        digests = sorted({digest for digest, _ in needed.values()})
        have = set(self.call("have", digests=digests)["digests"])
        for digest, path in dict(needed.values()).items():
            if digest not in have:
                there = f"{self._cache}/{STORE}/{digest}.part"
                self._remote.send(path, there, sending.WRITTEN if path.is_dir() else ())
        self.call("link", files={place: digest for place, (digest, _) in needed.items()})
        self._sent |= {(place, digest) for place, (digest, _) in needed.items()}

    def start(self, entry: Mapping[str, Any], name: str) -> None:
        """Start a job there; entry: the job in its plan. It continues if we die."""
        plan = {"format": plan_file.FORMAT, "jobs": [entry]}
        what = {"label": entry["label"], "number": entry["number"]}
        self.call("start", job=name, host=self.name, plan=plan, **what)

    def fetch(self, report: Mapping[str, Any], run: Path) -> tuple[str, str, list[str] | None]:
        """Fetch the result of an ended job into the folder run; returns its state, and why.

        The third value: the files in which it differs from an earlier copy; None if there was none.
        The host then forgets the job.
        """
        aside = run.with_name(
            f".{run.name}.from-{run_copies.partial_name(1, self.name, report['job'])}"
        )
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        if report["run"]:
            self._remote.fetch(report["run"], aside)
        with contextlib.suppress(UserError):
            recover(aside)
        state, differing = ended(aside), None
        if state is None:
            state = ABORTED
            last_line = f": {report['said']}" if report["said"] else ""
            write_status(aside, ABORTED, f"its worker was cut short{last_line}", elapsed_s=None)
        why = why_of(aside)
        if state != ABORTED:
            differing = run_copies.settle(aside, run)
        elif run.exists():
            shutil.rmtree(aside)
        else:
            aside.rename(run)
        self.call("forget", jobs=[report["job"]])
        return state, why, differing

    def leave(self) -> None:
        """End all jobs of the campaign there, and remove its folder."""
        if self._suite:
            with contextlib.suppress(Failed):
                self.call("leave")
