# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m run.hosts.on_host ACTION: an action on a host, called by a campaign's driver over ssh.

Reads a JSON object from stdin and prints one. It runs in the suite that the driver sent, with the
campaign's own cache: links to files that are stored by their digest for all campaigns.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract.run_files import STATUS
from contract.untrusted import json_object
from errors import UserError, run_command
from run.hosts import links
from run.jobs import progress
from run.jobs.progress import Progress
from setup import cache

PLAN = "plan.json"
LOG = "log"
PID = "pid"
STORE = "by-digest"  # folder in the host's cache
JOBS = "jobs"  # folder in the campaign's; it has a folder per job: plan, log, pid, results
END_S = 30.0  # how long a worker may take to end before it is killed
NAME = re.compile(r"[A-Za-z0-9._-]+")
DIGEST = re.compile(r"[0-9a-f]{64}")


def campaign() -> Path:
    """The campaign's folder on this host, which contains its cache."""
    return Path(os.environ["XDG_CACHE_HOME"]).parent


def store() -> Path:
    """The folder where this host stores files by their digest, for all campaigns."""
    return campaign().parent.parent / STORE


def have(asked: dict[str, Any]) -> dict[str, Any]:
    """{"digests": […]}: returns the digests of the files that are here."""
    store().mkdir(parents=True, exist_ok=True)
    return {
        "digests": [digest for digest in asked["digests"] if (store() / _digest(digest)).exists()]
    }


def link(asked: dict[str, Any]) -> dict[str, Any]:
    """{"files": {place in the cache: digest}}: link the files there; stores newly copied ones."""
    place = cache.root()
    # The locks of folders that several campaigns share.
    (store() / "locks").mkdir(parents=True, exist_ok=True)
    if not (place / "locks").is_symlink():
        (place / "locks").symlink_to(store() / "locks")
    for name, digest in asked["files"].items():
        kept = store() / _digest(digest)
        part = kept.with_name(f"{digest}.part")
        if not kept.exists():
            # Another campaign's driver may have copied it at the same time.
            with contextlib.suppress(FileNotFoundError):
                part.rename(kept)
        links.link("/".join(_name(word) for word in name.split("/")), digest, kept)
    return {}


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """{"job", "host", "label", "number", "plan"}: start the job; it continues without us."""
    folder = campaign() / JOBS / _name(asked["job"])
    folder.mkdir(parents=True)
    (folder / PLAN).write_text(json.dumps(asked["plan"]))
    command = [sys.executable, "-m", "run.one", str(folder / PLAN)]
    command += [asked["label"], str(asked["number"]), "--host", asked["host"]]
    command += ["--job", asked["job"]]
    # The worker inherits this lock: it is held as long as the worker lives.
    # Over NFS an exclusive lock needs a file that is open for writing.
    held = os.open(folder / PLAN, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(held, fcntl.LOCK_EX)
    with open(folder / LOG, "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=[held],
        )
    os.close(held)
    (folder / PID).write_text(str(process.pid))
    return {}


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """{}: returns all jobs of the campaign on this host."""
    return {"jobs": [_found(folder) for folder in _jobs()]}


def cancel(asked: dict[str, Any]) -> dict[str, Any]:
    """{"jobs": […]}: end these jobs and wait until they have ended; their folders stay."""
    _end([campaign() / JOBS / _name(job) for job in asked["jobs"]])
    return {}


def forget(asked: dict[str, Any]) -> dict[str, Any]:
    """{"jobs": […]}: remove the folders of these ended jobs."""
    for job in asked["jobs"]:
        shutil.rmtree(campaign() / JOBS / _name(job), ignore_errors=True)
    return {}


def leave(asked: dict[str, Any]) -> dict[str, Any]:
    """{}: end all jobs of the campaign, and remove its folder."""
    _end(list(_jobs()))
    shutil.rmtree(campaign(), ignore_errors=True)
    return {}


def _jobs() -> Iterator[Path]:
    if (campaign() / JOBS).is_dir():
        yield from sorted((campaign() / JOBS).iterdir())


def _found(folder: Path) -> dict[str, Any]:
    """The state of a job, from its folder alone."""
    alive = _is_alive(folder)
    run = next(folder.glob("*/[1-9]*"), None)
    how = progress.of_run(run) if run and alive else Progress()
    status: dict[str, Any] | None = None
    with contextlib.suppress(OSError):
        status = json_object((run / STATUS).read_bytes()) if run else None
    return {
        "job": folder.name,
        "alive": alive,
        "run": str(run) if run else "",
        "state": (status or {}).get("state", ""),
        "said": progress.last_line(folder / LOG),
        "guest_s": how.guest_s,
        "frozen": how.frozen,
    }


def _is_alive(folder: Path) -> bool:
    return cache.is_held(folder / PLAN, os.O_RDWR) is True


def _end(folders: list[Path]) -> None:
    """End the workers of these jobs; kill those that have not ended after END_S."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + END_S
        for folder in filter(_is_alive, folders):
            try:
                os.kill(int((folder / PID).read_text()), number)
            except (OSError, ValueError):
                continue  # it ended meanwhile
        while any(map(_is_alive, folders)) and time.monotonic() < until:
            time.sleep(0.05)


def _name(text: str) -> str:
    """The text, if it is a file name and no path; else UserError."""
    if not NAME.fullmatch(text) or text.startswith("."):
        raise UserError(f"{text!r} is no name")
    return text


def _digest(text: str) -> str:
    if not DIGEST.fullmatch(text):
        raise UserError(f"{text!r} is no digest")
    return text


ACTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    action.__name__: action for action in (have, link, start, look, cancel, forget, leave)
}


def main() -> int:
    """Do the action that the command line names."""
    asked = json.load(sys.stdin)
    print(json.dumps(ACTIONS[sys.argv[1]](asked)))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run.hosts.on_host", main))
