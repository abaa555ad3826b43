# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells within seconds whether changed files of a kernel still compile and link.

One kernel is built whole. Then only the changed C files are compiled, with the commands that make
recorded (`.vmscan.o.cmd`), and their symbols are compared with what the rest of the kernel defines
and needs.
"""

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from setup import cache
from setup.trees.build import OUT, SOURCE, WITHIN, built_tree, command_in
from setup.trees.configs import Config
from setup.trees.progress import Progress
from setup.trees.sources import Source

RECORDED = re.compile(r"^(?:saved)?cmd_\S+ := (.*?)(?: ; .*)?$", re.MULTILINE)
DEPENDENCIES = re.compile(r"-Wp,-MMD,\S+ ")
OUTPUT = re.compile(r" -c -o \S+ ")
# A static function without a body is only a warning, until the kernel is linked.
PROBLEMS = ("error:", "used but never defined")
TRIED = "tried.o"


class HunkCheck:
    """Compiles changed files of a kernel that is built in this place."""

    def __init__(self, tools: Path, place: Path, paths: Sequence[str]) -> None:
        self._tools = tools
        self._place = place
        self._commands = {path: line for path in paths if (line := self._recorded(path))}
        self._known: dict[tuple[str, str, bool], str] = {}  # file, its key, whether linked: problem
        self._symbols: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
        ours = {str(Path(path).with_suffix(".o")) for path in self._commands}
        linked = self._defined_by("vmlinux")
        self._defined = linked.difference(*map(self._defined_by, ours))
        # Others need symbols of the boot loader and the like, too, which vmlinux does not define.
        self._needed = linked & self._needed_by(self._others(ours))

    def problem(self, files: Mapping[str, bytes | None], *, linked: bool) -> str:
        """Why the kernel with these files (None: without that file) does not compile; "": it does.

        linked: also whether every symbol that is used is defined.
        """
        for path, data in files.items():
            self._write(path, data)
        headers = [
            cache.key(path, repr(data)) for path, data in files.items() if not path.endswith(".c")
        ]
        keys = {path: cache.key(repr(files[path]), *headers) for path in self._commands}
        for path, key in keys.items():
            if files[path] is None:
                continue
            if (path, key, linked) not in self._known:
                self._known[path, key, linked] = self._compile(path, key, linked)
            if problem := self._known[path, key, linked]:
                return problem
        return self._unresolved(keys) if linked else ""

    def _unresolved(self, keys: Mapping[str, str]) -> str:
        pairs = [pair for item in keys.items() if (pair := self._symbols.get(item))]
        defined = self._defined.union(*(ours for ours, _ in pairs))
        needed = self._needed.union(*(theirs for _, theirs in pairs))
        lacks = sorted(needed - defined)
        return f"undefined reference to {lacks[0]}" if lacks else ""

    def _write(self, path: str, data: bytes | None) -> None:
        file = self._place / SOURCE / path
        if data is None:
            file.unlink(missing_ok=True)
        elif not file.is_file() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

    def _recorded(self, path: str) -> str:
        """The command that compiled a C file; "" if this kernel does not have it."""
        file = Path(path)
        record = self._place / OUT / file.parent / f".{file.stem}.o.cmd"
        match = RECORDED.search(record.read_text()) if record.is_file() else None
        return DEPENDENCIES.sub("", match[1]) if match else ""

    def _compile(self, path: str, key: str, linked: bool) -> str:
        how = f" -c -o {TRIED} " if linked else " -fsyntax-only "
        done = self._run(OUTPUT.sub(how, self._commands[path]))
        lines = done.stderr.splitlines()
        if problem := next((line for line in lines if any(word in line for word in PROBLEMS)), ""):
            return problem.removeprefix(f"{WITHIN}/{SOURCE}/")
        if done.returncode:
            return lines[-1] if lines else f"{path}: status {done.returncode}"
        if linked:
            self._symbols[path, key] = self._defined_by(TRIED), self._needed_by([TRIED])
        return ""

    def _defined_by(self, name: str) -> set[str]:
        listed = self._nm("--defined-only --extern-only", [name])
        return {line.split()[-1] for line in listed if line.strip()}

    def _needed_by(self, names: Sequence[str]) -> set[str]:
        # Weak ones (w, v) may stay undefined.
        return {
            words[-1]
            for line in self._nm("--undefined-only", names)
            if "U" in (words := line.split())
        }

    def _others(self, ours: set[str]) -> list[str]:
        """The kernel's other objects, without vmlinux.o, which has ours in it."""
        out = self._place / OUT
        objects = (str(file.relative_to(out)) for file in out.rglob("*.o"))
        return [name for name in objects if name not in ours and name != "vmlinux.o"]

    def _nm(self, how: str, names: Sequence[str]) -> list[str]:
        lines: list[str] = []
        for first in range(0, len(names), 500):
            words = shlex.join(names[first : first + 500])
            # Objects without symbols are none of ours.
            done = self._run(f"nm {how} {words} 2>/dev/null || true")
            lines += done.stdout.splitlines()
        return [line for line in lines if not line.endswith(":")]

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        script = f"cd {WITHIN}/{OUT} && {line}"
        command = command_in(self._tools, ["sh", "-c", script])
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)


@contextlib.contextmanager
def checking(
    source: Source,
    config: Config,
    paths: Sequence[str],
    *,
    mirror: str | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[HunkCheck]:
    """Build a kernel, and check changes of these C files on it.

    NotBuilt if the kernel itself cannot be built; UserError (3) if the tools are missing.
    """
    with built_tree(source, config, mirror=mirror, progress=progress) as (tools, place):
        yield HunkCheck(tools, place, [path for path in paths if path.endswith(".c")])
