# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' program: compiled without a warning, once, or why not in one line."""

import re
import subprocess
from pathlib import Path

import pytest

from errors import UserError
from monitors.launch import SamplerProcess
from setup import compile_observers, observers
from setup.userland import tools


def compiled(*command: str) -> str:
    """What a compiler wrote to its output; it may not have warned."""
    with tools.workplace() as place:
        compile_observers.copy_sources(sorted(SOURCES.rglob("*.[ch]")), place)
        done = subprocess.run(place.command(command), capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_no_warnings() -> None:
    with tools.workplace() as place:
        sources = compile_observers.copy_sources(sorted(SOURCES.rglob("*.[ch]")), place)
    assert len(sources) > 20
    flags = ["-Werror", "-fsyntax-only", "-Imonitors", '-DTRACE_OBJECT=""']
    words = [word for word in compile_observers.PROGRAM if word != "-static"]
    compiled(*words, *flags, *sources)


def test_what_a_kernel_before_5_12_would_refuse_is_in_the_exact_programs_only() -> None:
    source = f"monitors/{compile_observers.TRACE}"
    text = compiled(*compile_observers.BPF, "-Werror", "-S", "-o-", source)
    programs = re.split(r"^(\w+):\s*# @", text, flags=re.MULTILINE)
    assert len(programs) > 40
    exact = set()
    for name, body in zip(programs[1::2], programs[2::2], strict=True):
        assert "atomic_fetch" not in body and "xchg_" not in body.replace("cmpxchg_", ""), name
        if "cmpxchg_" in body:
            exact.add(name)
    # Each of them has a plain twin.
    devices = {f"{device}_{part}" for device in ("disk", "crypt", "data") for part in PARTS}
    assert exact == devices
    assert {f"{name}_plain" for name in exact} <= set(programs[1::2])


SOURCES = compile_observers.SOURCES
PARTS = ("begin", "again", "end", "missed")


def test_it_is_compiled_once() -> None:
    first = observers.program()
    when = first.stat().st_mtime_ns
    observers.program.cache_clear()
    assert observers.program() == first and first.stat().st_mtime_ns == when


def test_sources_that_do_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "monitors"
    (sources / "trace").mkdir(parents=True)
    (sources / "trace" / "trace.bpf.c").write_text("int nothing;\n")
    (sources / "broken.c").write_text("int main(void) { return nothing; }\n")
    monkeypatch.setattr(compile_observers, "SOURCES", sources)
    with pytest.raises(UserError, match=r"compiling the observers failed: .*broken\.c.*nothing"):
        compile_observers.program()


def test_the_program_is_the_same_bytes_again(tmp_path: Path) -> None:
    compile_observers._compile(sorted(SOURCES.rglob("*.[ch]")), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == observers.program().read_bytes()


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    broken = tmp_path / "observers"
    broken.write_text("no program")
    with pytest.raises(UserError, match="observers: Permission denied"):
        SamplerProcess(broken, tmp_path, {})
