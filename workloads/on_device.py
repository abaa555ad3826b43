# SPDX-License-Identifier: GPL-2.0-or-later
"""A run on this machine: starts the measuring process, shows it, and sees that all is undone."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from setup import crypt_lvm, device_check, history, music, swaps
from setup.errors import UserError
from workloads import knobs, suite
from workloads.campaign import Campaign
from workloads.inner import inner_argv
from workloads.live import View
from workloads.options import Options
from workloads.results import read_events, write_meta, write_status

# From SIGTERM to SIGKILL: a swapoff alone may take swaps.PATIENCE_S, and no undoing is cut short.
GRACE_S = swaps.PATIENCE_S + 120.0


class Arming(Protocol):
    """The runner's memory of Ctrl-C."""

    def __call__(self) -> bool: ...

    def armed(self) -> contextlib.AbstractContextManager[Any]: ...


def music_folder(options: Options) -> Path:
    """The folder with the music: the user's, or a made one."""
    if options.music is None:
        return music.build()
    folder = Path(options.music)
    if not folder.is_dir():
        raise UserError(f"--music {options.music}: no such folder")
    return folder.resolve()


def command(options: Options, run_dir: Path, repo: Path, source: str) -> list[str]:
    """The measuring process's argv: the same run_test.sh that a guest runs."""
    argv = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "workloads.measure"]
    argv += ["--device", str(options.device)]
    return argv + inner_argv(options, options.variants[0], repo=repo, music=source, run_dir=run_dir)


def run(options: Options, stopped: Arming, argv: list[str]) -> tuple[Path, str, str]:
    """Measure on options.device; the run's folder, state and why.

    Whatever is raised once that folder is there, status.json says it, and the device is cleared.
    """
    assert options.device is not None
    if os.geteuid() != 0:
        raise UserError("--device needs root", hint="run it with sudo")
    # First: a dead run's mapping would have the device refused as in use, for ever.
    crypt_lvm.clear_dead(options.device)
    device_check.check_device(options.device, destroy_data=options.destroy_data)
    p = options.parameters
    repo = history.use(Path(options.repo)) if options.repo else history.build(p.commits)
    remote = (options.music or "").startswith("rsync://")
    source = str(options.music) if remote else str(music_folder(options))
    commits = p.commits or history.count(repo)
    label = options.variants[0].label or os.uname().release
    campaign = Campaign(options, argv)
    campaign.enter([(replace(options.variants[0], label=label), None)])
    run_dir, order = campaign.begin(*campaign.left()[0])
    run_dir = run_dir.resolve()
    facts = {
        "suite": suite.commit(),
        "label": label,
        "variant": label,
        "order": order,
        "append": "",
        "accelerator": "none",
        "disk": _disk_facts(options.device),
        "parameters": p.as_dict(),
    }
    view = View(label, run_dir, p.gitk, commits, p.passes, bool(p.atomic_order))
    with stopped.armed():
        try:
            write_meta(run_dir, facts)
            with view:
                status = _measure(command(options, run_dir, repo, source), run_dir, view, stopped)
            state, why = _verdict(run_dir, status)
            _close(run_dir, facts, state, why)
        except BaseException as error:
            why = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            # A disk that takes no status either must not hide what happened.
            with contextlib.suppress(OSError):
                _close(run_dir, facts, "aborted", why)
            raise
        finally:
            # The measuring process is gone. What it could not undo, or not any more, is undone now.
            for event in read_events(run_dir / "events.jsonl"):
                knobs.put_back(event.get("knobs", ()))
            crypt_lvm.clear_dead(options.device)
    return run_dir, state, why


def _measure(argv: list[str], run_dir: Path, view: View, stopped: Callable[[], bool]) -> int:
    """The measuring process from its start to its end, which is reached in any case."""
    with open(run_dir / "console.log", "wb") as said:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=suite.ROOT,
            start_new_session=True,
        )
    try:
        _follow(process, view.tick, stopped)
    except BaseException:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    return process.returncode


def _follow(
    process: "subprocess.Popen[bytes]", tick: Callable[[], None], stopped: Callable[[], bool]
) -> None:
    asked: float | None = None
    while process.poll() is None:
        tick()
        if stopped() and asked is None:
            asked = time.monotonic()
            process.terminate()
        if asked is not None and time.monotonic() - asked > GRACE_S:
            process.kill()
        time.sleep(0.25)
    tick()


def _verdict(run_dir: Path, status: int) -> tuple[str, str]:
    """The measuring process's own word, or else what it printed last."""
    for event in reversed(read_events(run_dir / "events.jsonl")):
        if event["event"] == "status":
            return str(event["state"]), str(event["why"])
    lines = (run_dir / "console.log").read_text(errors="replace").strip().splitlines()
    said = f": {lines[-1]}" if lines else ""
    return "aborted", f"the measuring process ended with status {status}{said}"


def _close(run_dir: Path, facts: dict[str, Any], state: str, why: str) -> None:
    write_meta(run_dir, facts)
    events = read_events(run_dir / "events.jsonl")
    elapsed = next((e["elapsed"] for e in events if e["event"] == "end"), None)
    write_status(run_dir, state, why, elapsed_s=elapsed)


def _disk_facts(device: str) -> dict[str, Any]:
    name = Path(device).resolve().name
    block = Path("/sys/class/block") / name
    model = next(
        (
            path.read_text().strip()
            for path in (block / "device/model", block / ".." / "device/model")
            if path.exists()
        ),
        "file" if Path(device).is_file() else "unknown",
    )
    with open(device, "rb") as handle:
        size = handle.seek(0, os.SEEK_END)
    return {"size_bytes": size, "cache": "the machine's own", "model": model}
