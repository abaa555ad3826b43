# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m run.hosts.on_host ACTION: what a campaign's driver has done on a host, over ssh.

Reads one JSON object on stdin, prints one. It runs in the suite that the driver sent, and with a
cache of the campaign's own: links to files that are kept by their digest, for all campaigns.
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
STORE = "by-digest"  # in the cache of the host
JOBS = "jobs"  # the folder of a campaign that has one for each job: plan, log, pid, results
END_S = 30.0  # within which a worker that was asked to end does
NAME = re.compile(r"[A-Za-z0-9._-]+")
DIGEST = re.compile(r"[0-9a-f]{64}")


def campaign() -> Path:
    """The campaign's folder on this host; its cache is in there."""
    return Path(os.environ["XDG_CACHE_HOME"]).parent


def store() -> Path:
    """Where this host keeps files by their digest, for all campaigns."""
    return campaign().parent.parent / STORE


def have(asked: dict[str, Any]) -> dict[str, Any]:
    """{"digests": […]}: those of them that are here."""
    store().mkdir(parents=True, exist_ok=True)
    return {"digests": [one for one in asked["digests"] if (store() / _digest(one)).exists()]}


def link(asked: dict[str, Any]) -> dict[str, Any]:
    """{"files": {place in the cache: digest}}: have them there; what was just copied is kept."""
    place = cache.root()
    # Of who works in folders that several campaigns share.
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
        links.link("/".join(_name(one) for one in name.split("/")), digest, kept)
    return {}


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """{"job", "host", "label", "number", "plan"}: begin it; it goes on without us."""
    folder = campaign() / JOBS / _name(asked["job"])
    folder.mkdir(parents=True)
    (folder / PLAN).write_text(json.dumps(asked["plan"]))
    command = [sys.executable, "-m", "run.one", str(folder / PLAN)]
    command += [asked["label"], str(asked["number"]), "--host", asked["host"]]
    command += ["--job", asked["job"]]
    # Whoever holds this lock is the worker, or what it has begun to be: it ends with it.
    held = os.open(folder / PLAN, os.O_RDWR | os.O_CLOEXEC)  # over NFS no other can be locked alone
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
    """{}: all jobs of the campaign that are here."""
    return {"jobs": [_found(folder) for folder in _jobs()]}


def cancel(asked: dict[str, Any]) -> dict[str, Any]:
    """{"jobs": […]}: have these end, and wait for it; their folders stay."""
    _end([campaign() / JOBS / _name(one) for one in asked["jobs"]])
    return {}


def forget(asked: dict[str, Any]) -> dict[str, Any]:
    """{"jobs": […]}: remove these, which are over."""
    for one in asked["jobs"]:
        shutil.rmtree(campaign() / JOBS / _name(one), ignore_errors=True)
    return {}


def leave(asked: dict[str, Any]) -> dict[str, Any]:
    """{}: end all jobs of the campaign, and remove all that is only its own."""
    _end(list(_jobs()))
    shutil.rmtree(campaign(), ignore_errors=True)
    return {}


def _jobs() -> Iterator[Path]:
    if (campaign() / JOBS).is_dir():
        yield from sorted((campaign() / JOBS).iterdir())


def _found(folder: Path) -> dict[str, Any]:
    """What is known of a job, by its folder alone."""
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
    """Have the workers of these jobs end, killed if they do not within END_S."""
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
    """A name of a file, no path; UserError if it is none."""
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
    """Do one action."""
    asked = json.load(sys.stdin)
    print(json.dumps(ACTIONS[sys.argv[1]](asked)))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run.hosts.on_host", main))
