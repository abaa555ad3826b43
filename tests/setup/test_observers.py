# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' program: compiled without a warning, once, or why not in one line."""

import re
import subprocess
from pathlib import Path

import pytest

from errors import UserError
from monitors.launch import SamplerProcess
from setup import observers


def compiled(*command: str) -> str:
    """What a compiler wrote to its output; it may not have warned."""
    done = subprocess.run(command, cwd=observers.SOURCES.parent, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_no_warnings() -> None:
    sources = [path for path in observers.SOURCES.rglob("*.c") if path != observers.TRACE]
    assert len(sources) > 20
    flags = ["-Werror", "-fsyntax-only", f"-I{observers.SOURCES}", '-DTRACE_OBJECT=""']
    compiled(*(word for word in observers.PROGRAM if word != "-static"), *flags, *map(str, sources))


def test_what_a_kernel_before_5_12_would_refuse_is_in_the_exact_programs_only() -> None:
    text = compiled(*observers.BPF, "-Werror", observers.INCLUDE, "-S", "-o-", str(observers.TRACE))
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


PARTS = ("begin", "again", "end", "missed")


def test_it_is_compiled_once() -> None:
    first = observers.program()
    when = first.stat().st_mtime_ns
    observers.program.cache_clear()
    assert observers.program() == first and first.stat().st_mtime_ns == when


def test_a_compiler_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    observers.program.cache_clear()
    monkeypatch.setattr(observers, "COMPILERS", ("clang-that-is-not-here",))
    with pytest.raises(UserError, match="clang-that-is-not-here: No such file") as caught:
        observers.program()
    assert "apt-get install clang" in str(caught.value.hint)
    observers.program.cache_clear()


def test_sources_that_do_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "trace.bpf.c").write_text("int nothing;\n")
    (tmp_path / "broken.c").write_text("int main(void) { return nothing; }\n")
    observers.program.cache_clear()
    monkeypatch.setattr(observers, "SOURCES", tmp_path)
    monkeypatch.setattr(observers, "TRACE", tmp_path / "trace.bpf.c")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(UserError, match=r"cannot be compiled: .*broken\.c.*nothing"):
        observers.program()
    assert list((tmp_path / "cache" / "desktop-freeze" / "observers").iterdir()) == []
    observers.program.cache_clear()


def test_a_program_that_cannot_be_started(tmp_path: Path) -> None:
    broken = tmp_path / "observers"
    broken.write_text("no program")
    with pytest.raises(UserError, match="observers: Permission denied"):
        SamplerProcess(broken, tmp_path, {})
