#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Stamps each line of a program's output: `elapsed_s gap_s line`.

docs/reference/results-format.md describes the format.

One stream as a command; monitors/recorder serves all streams of a test from one process.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from contract.run_files import latency_log
from errors import Exit, UserError, run_command
from monitors.terminal import Program, Recording, Writer

_EXAMPLES = """examples:
  git log | ./latency_output.py -o git.log
  ./latency_output.py -o slow.log -- ping -i 0.1 localhost
  ./latency_output.py --stream gitk-1 -o DIR -- python3 -m fake_gitk --repo linux

Without -o the lines go to the standard output, with it nothing does. If -o is a folder, the file is
latency-NAME.log in it. Exits with CMD's status, 128 + the signal if CMD or this was ended by one.
CMD has a terminal for its output and no input."""


def _parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(
        prog="latency_output.py",
        description="Stamp each line of a program's output: elapsed seconds, gap, line.",
        usage="CMD | latency_output.py [OPTIONS]\n       latency_output.py [OPTIONS] -- CMD [ARGS]",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="append to FILE")
    parser.add_argument("--stream", metavar="NAME", help="the stream's name")
    split = argv.index("--") if "--" in argv else len(argv)
    options = parser.parse_args(argv[:split])
    if split < len(argv) and not argv[split + 1 :]:
        parser.error("a command must follow --")
    return options, argv[split + 1 :]


def main() -> int:
    """The command: record one stream."""
    options, command = _parse(sys.argv[1:])
    name = options.stream or "output"
    sink = 1
    if options.output is None and sys.stdout is None:
        raise UserError("the standard output is closed", hint="-o FILE", status=Exit.USAGE)
    if not command and sys.stdin is None:
        raise UserError("the standard input is closed", hint="-- CMD", status=Exit.USAGE)
    if options.output is not None:
        path = options.output
        path = path / latency_log(name) if path.is_dir() else path
        try:
            sink = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}", status=Exit.USAGE) from None
    caught: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: caught.append(number))

    program = Program(name, command) if command else None
    writer = Writer(sink)
    status = Recording(program, writer).run(lambda: bool(caught) or writer.gone)
    if writer.lost[1]:
        lost = "{} lines ({} bytes)".format(*writer.lost)
        print(f"latency_output.py: {name}: lost {lost}: output is full", file=sys.stderr)
    if caught:
        return 128 + caught[0]
    if writer.gone:
        return 128 + signal.SIGPIPE
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(run_command("latency_output.py", main))
