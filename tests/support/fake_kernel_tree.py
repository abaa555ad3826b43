# SPDX-License-Identifier: GPL-2.0-or-later
"""A source that is configured and built in a moment, by a Makefile that behaves as Kbuild does.

What is in mm/ is compiled, unless it has an #error; what is elsewhere is not.
"""

import subprocess
from pathlib import Path

import pytest

from setup import cache, config_file
from setup.trees import toolchain
from setup.userland import tools

FRAGMENT = """\
CONFIG_64BIT=y
CONFIG_SWAP=y
# If it exists: since 6.1
CONFIG_LRU_GEN=y
"""
# With O=; prints a step a line; a .config keeps the options that Kconfig has, and no others.
MAKEFILE = """\
.PHONY: tinyconfig olddefconfig bzImage modules modules_install
tinyconfig:
	@echo 'CONFIG_TINY=y' >$(O)/.config
olddefconfig:
	@sed -n 's/^config /CONFIG_/p' Kconfig >$(O)/known
	@grep -F -f $(O)/known $(O)/.config >$(O)/kept || true
	@mv $(O)/kept $(O)/.config
bzImage:
	@mkdir -p $(O)/arch/x86/boot $(O)/include/config
	@echo 7.2.0$(LOCALVERSION) >$(O)/include/config/kernel.release
	@test ! -e $(O)/stale || { echo 'a stale build folder'; exit 1; }
	@touch $(O)/stale
	@for file in mm/*.c; do \\
		echo "  CC      $${file%c}o"; \\
		if grep -n '#error' $$file; then \\
			echo "$$file:1:2: error: #error as asked"; exit 2; \\
		fi; \\
	done
	@echo "  LD      vmlinux"
	@cat mm/*.c $(O)/.config >$(O)/arch/x86/boot/bzImage
	@echo "$$KBUILD_BUILD_TIMESTAMP $$KBUILD_BUILD_USER" >>$(O)/arch/x86/boot/bzImage
modules:
	@echo "  CC [M]  fs/x.o"
modules_install:
	@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/7.2.0/kernel
	@echo x >$(INSTALL_MOD_PATH)/lib/modules/7.2.0/kernel/x.ko
	@ln -s /nowhere $(INSTALL_MOD_PATH)/lib/modules/7.2.0/build
"""
VMSCAN = "".join(f"int line_{number};\n" for number in range(40))
FILES = {
    "Makefile": MAKEFILE,
    "Kbuild": "",
    "MAINTAINERS": "",
    "Kconfig": "config 64BIT\nconfig SWAP\nconfig TINY\nconfig MODULES\n",
    "mm/vmscan.c": VMSCAN,
    "mm/swap.c": "int swap;\n",
    "fs/unused.c": "int unused;\n",
    ".gitignore": "*.o\n",
}


class Tree:
    """A git repository with such a source."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "master")
        for name, text in FILES.items():
            self.write(name, text)
        self.first = self.commit("first")
        self.git("tag", "v7.2")

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example"]
        command = ["git", "-C", str(self.path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def commit(self, message: str) -> str:
        """Commit all that there is; its id."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, name: str, line: int, text: str) -> str:
        """Commit another text of one line of a file; the commit's id."""
        lines = (self.path / name).read_text().splitlines(keepends=True)
        lines[line] = f"{text}\n"
        self.write(name, "".join(lines))
        return self.commit(f"{name}: {text}")

    def state(self) -> dict[str, bytes]:
        """All files of the repository and its work tree."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        return {str(path.relative_to(self.path)): path.read_bytes() for path in files}


def on_the_host(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on builds are done by the host's make, and need no userland; a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "cache"))
    root = place / "root"
    for name in toolchain.CHANGING:
        (root / name).mkdir(parents=True)
    (root / tools.IDENTITY).write_text("compiler one\n")
    monkeypatch.setattr(toolchain, "root", lambda mirror=None: root)

    def command(at: Path, argv: list[str], env: dict[str, str]) -> list[str]:
        inside = f"/{toolchain.BUILD}/"
        words = [word.replace(inside, f"{at}{inside}") for word in argv]
        return ["env", *(f"{name}={value}" for name, value in env.items()), *words]

    monkeypatch.setattr(toolchain, "command", command)
    fragment = place / "kernel.config"
    fragment.write_text(FRAGMENT)
    monkeypatch.setattr(config_file, "FRAGMENT", fragment)
    cache.root()
