# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: crypt_lvm_check.py on the blank disk, then run_test.sh on a loop file.

That three times: one run gets SIGTERM, one SIGKILL, and the last, which swaps to zram, ends by
itself. Arguments: those of run_test.sh --bare, of which --device names the blank disk. Writes a
`check` event into events.jsonl: the last line of the first part, and what each run gave and left on
the machine.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from contract.run_files import latency_log
from contract.run_record import Events, read_events
from run.arguments import parse
from setup.crypt_lvm.mapper import RUN

SUITE = Path(__file__).resolve().parents[2]
FILES = Path("/mnt/files")
START_S = 300.0
GONE_S = 90.0
SWAP = "zram,size=64M"
LINES = 5  # of each stream before a run gets its signal


def output(*argv: str) -> str:
    """What a command prints."""
    return subprocess.run(argv, capture_output=True, text=True).stdout.strip()


def left() -> dict[str, str]:
    """Everything that a run may leave on a machine."""
    return {
        "mappings": output("dmsetup", "ls"),
        "loops": output("losetup", "-a"),
        "swaps": "\n".join(" ".join(line.split()[::4]) for line in open("/proc/swaps")),
        "zrams": " ".join(sorted(path.name for path in Path("/sys/block").glob("zram*"))),
        "mounts": Path("/proc/self/mounts").read_text(),
        "records": " ".join(path.name for path in RUN.glob("*.json")),
        "programs": output("pgrep", "-f", "-a", "-r", "R,S,D", "fake_|monitors|observers|git log"),
    }


def changed(before: dict[str, str]) -> dict[str, str]:
    """What is on the machine that was not there before; a program may take its time to end."""
    until = time.monotonic() + GONE_S
    while (now := left())["programs"] != before["programs"] and time.monotonic() < until:
        time.sleep(0.5)
    return {key: now[key] for key in now if now[key] != before[key]}


def line_count(log: Path) -> int:
    """Lines of a stream so far; 0 before its file is there."""
    return len(log.read_text().splitlines()) if log.exists() else 0


def ended_early(argv: list[str], gitks: int, number: signal.Signals) -> dict[str, Any]:
    """A run that gets a signal when each stream has said some, and what it has to show."""
    run_dir = FILES / f"run-{number.name}"
    run_dir.mkdir()
    words = list(argv)
    words[words.index("--run-dir") + 1] = str(run_dir)
    said = FILES / f"{run_dir.name}.txt"
    with open(said, "w") as sink:
        run = subprocess.Popen([str(SUITE / "run_test.sh"), *words], stdout=sink, stderr=sink)
    names = ["heartbeat", "player", *(f"gitk-{n}" for n in range(1, gitks + 1))]
    logs = {name: run_dir / latency_log(name) for name in names}
    until = time.monotonic() + START_S
    while run.poll() is None and time.monotonic() < until:
        # The observers write in batches, and may lose the last one to a SIGKILL.
        if min(line_count(log) for log in logs.values()) >= LINES:
            break
        time.sleep(0.2)
    run.send_signal(number)
    print(f"{number.name}: sent", flush=True)
    status = run.wait()
    events = read_events(run_dir / "events.jsonl")
    return {
        "exit": status,
        "said": said.read_text().strip(),
        "events": [event["event"] for event in events],
        "status": [
            [event["state"], event["why"]] for event in events if event["event"] == "status"
        ],
        "lines": {name: line_count(log) for name, log in logs.items()},
        "samples": len((run_dir / "vmstat.tsv").read_text().splitlines()),
    }


def crypt_lvm_check(disk: str) -> tuple[int, str]:
    """Its status and last line. All of it goes to the console: a sign of life."""
    check = subprocess.Popen(
        [sys.executable, str(SUITE / "tests/guest/crypt_lvm_check.py"), disk],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert check.stdout
    last = ""
    for line in check.stdout:
        last = line.strip()
        print(last, flush=True)
    return check.wait(), last


def main() -> int:
    """All parts; the status of the last run."""
    options = parse(sys.argv[1:])
    disk, began = str(options.device), time.monotonic()
    check_status, check_said = crypt_lvm_check(disk)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    assert check_status == 0, check_said
    subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
    FILES.mkdir(parents=True)
    subprocess.run(["mount", disk, str(FILES)], check=True)
    image, other = FILES / "image", FILES / "swap"
    with open(image, "wb") as file:
        file.truncate(3 << 30)
    other.write_bytes(bytes(32 << 20))
    other.chmod(0o600)
    subprocess.run(["mkswap", str(other)], check=True)
    subprocess.run(["swapon", "-p", "7", str(other)], check=True)
    before = left()
    argv = [str(image) if word == disk else word for word in sys.argv[1:]]
    gitks = options.gitk

    terminated = ended_early(argv, gitks, signal.SIGTERM)
    terminated["left"] = changed(before)
    print(f"{time.monotonic() - began:.0f} s: {json.dumps(terminated)}", flush=True)

    killed = ended_early(argv, gitks, signal.SIGKILL)
    killed["stack"] = left()["records"]
    destroy = [sys.executable, "-m", "setup.crypt_lvm", "destroy", str(image)]
    killed["destroyed"] = subprocess.run(destroy, cwd=SUITE).returncode
    killed["left"] = changed(before)
    print(f"{time.monotonic() - began:.0f} s: {json.dumps(killed)}", flush=True)

    argv[argv.index("--swap") + 1] = SWAP
    run = subprocess.run([str(SUITE / "run_test.sh"), *argv])
    events = Events(Path(str(options.run_dir)) / "events.jsonl")
    events.write(
        "check",
        crypt_lvm=check_said,
        run_status=run.returncode,
        left=changed(before),
        terminated=terminated,
        killed=killed,
    )
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
