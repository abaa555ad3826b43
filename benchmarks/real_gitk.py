# SPDX-License-Identifier: GPL-2.0-or-later
"""What gitk and fake_gitk keep of a history: `python3 -m benchmarks.real_gitk [-o PICTURE.png]`.

gitk, fake_gitk, and fake_gitk with 8 copies of each commit read the newest commits of the made
history on this machine, one after the other, with memory to spare. Output: after so many commits
the anonymous and the resident memory (MiB, of /proc/PID/smaps_rollup), the minor faults (of
/proc/PID/stat) and the CPU time (s) since it printed `ready`, and at the end the KiB that one
commit takes. It needs the packages gitk and xvfb.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt

from errors import UserError, run_command
from monitors.streams import Stream
from run.arguments import parse
from setup import history
from workloads import desktop, gitk, x_server
from workloads.workload import WorkloadEnvironment

HISTORY = 40_000
ROWS = 8
COPIES = "8 copies"  # fake_gitk with --commit-copies
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Kept:
    """What a program has after that many commits; memory in KiB, CPU time in s."""

    commits: int
    anonymous: int
    resident: int
    faults: int
    cpu: float


def sample(pid: int, commits: int) -> Kept:
    """What the process has now."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    memory = {name: int(value.split()[0]) for name, value in (line.split(":") for line in lines)}
    # proc(5): the words after the command's name, from `state` on.
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    cpu = (int(words[11]) + int(words[12])) / TICKS
    return Kept(commits, memory["Anonymous"], memory["Rss"], int(words[7]), cpu)


def follow(stream: Stream) -> list[Kept]:
    """What the stream's program has when it is ready, and at each of its lines but the last."""
    with subprocess.Popen(
        stream.argv, env=stream.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise UserError(f"{stream.argv[0]} did not start")
        samples = [sample(process.pid, 0)]
        process.stdin.write("\n")
        process.stdin.flush()
        for line in process.stdout:
            commits = int(line.split()[-1])
            # Else a fast program is thousands of commits further when it is looked at.
            process.send_signal(signal.SIGSTOP)
            try:
                samples.append(sample(process.pid, commits))
            except (FileNotFoundError, ProcessLookupError, ValueError):
                break  # the program has ended meanwhile
            finally:
                process.send_signal(signal.SIGCONT)
    if process.returncode:
        raise UserError(f"{stream.argv[0]} ended with status {process.returncode}")
    return samples


def measure(commits: int) -> dict[str, list[Kept]]:
    """The samples of each program."""
    gitk.WORKLOAD.check_commands()
    words = ["--profile", "quick", "--gitk", "1", "--commits"]
    fakes = {
        "fake_gitk": parse([*words, str(commits)]),
        COPIES: parse([*words, str(commits), "--commit-copies", COPIES.split()[0]]),
    }
    real = parse([*words, str(HISTORY), "--workload", "gitk", "--load", f"commits={commits}"])
    with tempfile.TemporaryDirectory() as folder:
        environment = WorkloadEnvironment(Path(folder), "", Path(folder, "figures"))
        desktop.fill(environment.scratch, str(history.build(HISTORY)))
        (real_gitk,) = gitk.programs(real, environment)
        with x_server.running(x_server.key_file(environment)):
            samples = {"gitk": follow(real_gitk)}
        for name, options in fakes.items():
            (fake_gitk,) = desktop.programs(options, environment)
            samples[name] = follow(fake_gitk)
        return samples


def table(name: str, samples: list[Kept]) -> list[str]:
    """Some of the samples as text, and what a commit takes."""
    first, last = samples[0], samples[-1]
    lines = [f"{name:10}{'anon MiB':>10}{'RSS MiB':>10}{'faults':>10}{'CPU s':>8}"]
    for kept in samples[:: max(1, len(samples) // ROWS)]:
        lines.append(
            f"{kept.commits:10,}{kept.anonymous / 1024:10.1f}{kept.resident / 1024:10.1f}"
            f"{kept.faults - first.faults:10,}{kept.cpu - first.cpu:8.2f}"
        )
    per_commit = (last.anonymous - first.anonymous) / last.commits
    return [
        *lines,
        f"{per_commit:.2f} KiB of anonymous memory a commit, of {last.commits:,} commits",
        "",
    ]


def draw(samples: dict[str, list[Kept]], path: Path) -> None:
    """Anonymous memory over commits."""
    figure, axes = plt.subplots(figsize=(7, 4))
    for name, curve in samples.items():
        commits, memory = zip(
            *((kept.commits, kept.anonymous / 1024) for kept in curve), strict=True
        )
        axes.plot(commits, memory, label=name)
    axes.set(xlabel="commits read", ylabel="anonymous memory (MiB)", ylim=(0, None))
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.real_gitk", description=__doc__)
    parser.add_argument("--commits", type=int, default=20_000, metavar="N", help="to read")
    parser.add_argument("-o", type=Path, metavar="PNG", dest="picture", help="draw it, too")
    options = parser.parse_args(argv)
    samples = measure(options.commits)
    for name, rows in samples.items():
        print("\n".join(table(name, rows)))
    if options.picture is not None:
        draw(samples, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.real_gitk", lambda: main(sys.argv[1:])))
