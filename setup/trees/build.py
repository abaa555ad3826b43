# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles a kernel from a Source, or takes it from the cache.

Equal sources, configurations and compilers share one kernel in the cache. Each kernel is compiled
in an empty folder; only ccache keeps compiled files, by their contents. The result does not depend
on the host's name, user, time, compiler or folders.
"""

import contextlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from errors import UserError
from setup import cache, config_file
from setup.trees import configs, toolchain
from setup.trees.configs import Config
from setup.trees.failures import DoesNotCompile
from setup.trees.progress import Follower, Progress, steps_of
from setup.trees.sources import Source, git, text_of
from setup.userland.bootstrap import WHEN

KIND = "built-kernels"
FORMAT = "1"
IMAGE, CONFIG, LOG, FACTS = "bzImage", "config", "build.log", "facts.json"
MODULES = "lib/modules"
# Their folders as the toolchain's programs see them: fixed, because object files have these names.
SOURCE, OUT, INDEX = "source", "out", "index"
WITHIN = f"/{toolchain.BUILD}"
MAKE = (
    *("make", "-C", f"{WITHIN}/{SOURCE}", f"O={WITHIN}/{OUT}", "ARCH=x86_64", "LOCALVERSION="),
    *("CC=ccache gcc", "HOSTCC=ccache gcc", f"PAHOLE=/{toolchain.PAHOLE}"),
)
ENVIRONMENT = {
    "KBUILD_BUILD_TIMESTAMP": time.strftime("%Y-%m-%d", time.gmtime(WHEN)),
    "KBUILD_BUILD_USER": "suite",
    "KBUILD_BUILD_HOST": "desktop-freeze",
    "KBUILD_BUILD_VERSION": "1",
    "SOURCE_DATE_EPOCH": str(WHEN),
    "CCACHE_DIR": f"/{toolchain.CCACHE}",
    "CCACHE_MAXSIZE": "5G",
    "CCACHE_COMPRESSLEVEL": "1",
}
ROOM = 4 << 30  # bytes for a source, its build, and some of ccache's files
NO_ROOM = "No space left on device"
# The first line with the first of these words that occurs names the error.
PROBLEMS = ("error:", "Error ", "undefined reference", "No rule to make target", "fatal:", "***")


@dataclass(frozen=True)
class BuiltKernel:
    """A compiled kernel, whose files are in the cache.

    digest: SHA-256 of the image; sources with equal digests give the same kernel. modules:
    `…/lib/modules/RELEASE`, None if the configuration has none. log: that of the build; seconds:
    how long it took; cached: whether it was built earlier.
    """

    label: str
    release: str
    image: Path
    modules: Path | None
    config: Path
    digest: str
    log: Path
    seconds: float
    cached: bool


@dataclass(frozen=True)
class _Facts:
    release: str
    digest: str
    seconds: float
    steps: int


def build_kernel(
    source: Source,
    config: Config,
    *,
    mirror: str | None = None,
    jobs: int = 0,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> BuiltKernel:
    """The kernel of this source and configuration.

    jobs: number of simultaneous compilers, one per CPU by default. progress: called at each step of
    the build. failures.NotBuilt (OptionLost, DoesNotCompile) if it cannot be built; another
    UserError (3) if the tools are missing.
    """
    tools = toolchain.root(mirror)
    cached = True

    def make(folder: Path) -> None:
        nonlocal cached
        cached = False
        with cache.lock("kernel-builds"), _place(tools, source) as place:
            _Build(source, config, tools, place, jobs or _cpus(), progress).make(folder)

    folder = cache.built(KIND, _key(source, config), make)
    facts = _Facts(**json.loads((folder / FACTS).read_text()))
    modules = folder / MODULES / facts.release
    return BuiltKernel(
        label=source.label,
        release=facts.release,
        image=folder / IMAGE,
        modules=modules if modules.is_dir() else None,
        config=folder / CONFIG,
        digest=facts.digest,
        log=folder / LOG,
        seconds=facts.seconds,
        cached=cached,
    )


@contextlib.contextmanager
def built_tree(
    source: Source,
    config: Config,
    *,
    mirror: str | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[tuple[Path, Path]]:
    """Build a kernel and leave its files where they are: the tools' root, and its place in it.

    Errors as with build_kernel().
    """
    tools = toolchain.root(mirror)
    with cache.lock("kernel-builds"), _place(tools, source) as place:
        _Build(source, config, tools, place, _cpus(), progress).build()
        yield tools, place


def command_in(tools: Path, argv: Sequence[str]) -> list[str]:
    """The command that runs argv with the tools' root as its root, as in every build."""
    env = {**ENVIRONMENT, "CCACHE_COMPILERCHECK": f"string:{toolchain.identity()}"}
    return toolchain.command(tools, argv, env)


def _key(source: Source, config: Config) -> str:
    how = (*MAKE, *ENVIRONMENT.values(), toolchain.identity())
    return cache.key(FORMAT, *how, source.tree, *config.parts)


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def _place(tools: Path, source: Source) -> Iterator[Path]:
    """The folder with the source's files; the previous build's output is removed."""
    place = tools / toolchain.BUILD
    shutil.rmtree(place / OUT, ignore_errors=True)
    if shutil.disk_usage(place).free < ROOM:
        raise UserError(
            f"{place}: a kernel's build needs {ROOM >> 30} GiB of free space",
            hint=cache.NEEDS_ROOM,
        )
    (place / OUT).mkdir()
    (place / SOURCE).mkdir(exist_ok=True)
    # git only writes the files that differ from those of the last kernel.
    index = place / INDEX
    index.with_name(f"{INDEX}.lock").unlink(missing_ok=True)
    how = ["read-tree", "--reset", "-u", source.tree]
    done = git(how, source.objects, index=index, worktree=place / SOURCE)
    if done.returncode:
        # A killed build may have left the folder in any state.
        shutil.rmtree(place / SOURCE)
        (place / SOURCE).mkdir()
        index.unlink(missing_ok=True)
        done = git(how, source.objects, index=index, worktree=place / SOURCE)
    # Objects that a partial clone lacks are not fetched here.
    lacks = " (does the clone lack objects? git fetch --refetch)" if source.repository else ""
    text_of(done, f"writing the files of {source.label}{lacks}")
    clean = git(["clean", "-ffdxq"], source.objects, index=index, worktree=place / SOURCE)
    text_of(clean, f"writing the files of {source.label}")
    try:
        yield place
    finally:
        shutil.rmtree(place / OUT, ignore_errors=True)


class _Build:
    """The build of one kernel, from its files to its image."""

    def __init__(
        self,
        source: Source,
        config: Config,
        tools: Path,
        place: Path,
        jobs: int,
        progress: Callable[[Progress], None],
    ) -> None:
        self._source = source
        self._config = config
        self._tools = tools
        self._out = place / OUT
        self._jobs = jobs
        self._progress = progress
        self._log: list[str] = []

    def make(self, folder: Path) -> None:
        """Compile the kernel and put its results into folder."""
        began = time.monotonic()
        steps = self.build()
        has_modules = self._has_modules()
        folder.mkdir()
        if has_modules:
            self._install_modules(folder)
        shutil.copyfile(self._out / "arch/x86/boot" / IMAGE, folder / IMAGE)
        shutil.copyfile(self._out / ".config", folder / CONFIG)
        (folder / LOG).write_text("".join(self._log))
        facts = _Facts(
            (self._out / "include/config/kernel.release").read_text().strip(),
            cache.file_digest(folder / IMAGE),
            round(time.monotonic() - began, 1),
            steps,
        )
        (folder / FACTS).write_text(json.dumps(asdict(facts), indent=1) + "\n")

    def build(self) -> int:
        """Compile the kernel; returns the number of steps."""
        self._configure()
        return self._compile(["bzImage", *(["modules"] if self._has_modules() else [])])

    def _has_modules(self) -> bool:
        options = config_file.read(self._out / ".config")
        return options.get("CONFIG_MODULES") == "y"

    def _configure(self) -> None:
        config = self._out / ".config"
        if self._config.target:
            self._run([self._config.target])
        else:
            config.write_text(self._config.base)
        if self._config.fragment:
            with open(config, "a") as file:
                file.write(f"\n{self._config.fragment}")
        self._run(["olddefconfig"])
        options = config_file.read(config)
        configs.check(self._source, self._config, options, "".join(self._log))

    def _compile(self, targets: list[str]) -> int:
        known = steps_of(self._config.parts)
        follower = Follower(self._source.label, known.get(), self._progress)
        self._run([f"-j{self._jobs}", *targets], follower)
        known.keep(follower.done)
        return follower.done

    def _install_modules(self, folder: Path) -> None:
        target = f"{WITHIN}/{OUT}/installed"
        self._run(
            ["modules_install", f"INSTALL_MOD_PATH={target}", "INSTALL_MOD_STRIP=1", "DEPMOD=true"]
        )
        releases = list((self._out / "installed" / MODULES).iterdir())
        for link in ("build", "source"):
            (releases[0] / link).unlink(missing_ok=True)
        shutil.copytree(self._out / "installed" / MODULES, folder / MODULES)

    def _run(self, arguments: list[str], follower: Follower | None = None) -> None:
        """Run make; DoesNotCompile with the first line that names the error."""
        command = command_in(self._tools, [*MAKE, *arguments])
        self._log.append(f"$ {' '.join([*MAKE, *arguments])}\n")
        first = len(self._log)
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    self._log.append(line)
                    if follower is not None:
                        follower.see(line)
            except BaseException:
                process.terminate()
                raise
        if process.returncode < 0:
            raise UserError(f"{self._source.label}: make was ended by signal {-process.returncode}")
        if process.returncode:
            if any(NO_ROOM in line for line in self._log[first:]):
                raise UserError(f"{self._source.label}: {NO_ROOM}", hint=cache.NEEDS_ROOM)
            lines = [line.strip() for line in self._log[first:] if line.strip()]
            wrong = (line for word in PROBLEMS for line in lines if word in line)
            status = f"make ended with status {process.returncode}"
            why = next(wrong, lines[-1] if lines else status)
            raise DoesNotCompile(
                f"{self._source.label} does not compile: {why.removeprefix(f'{WITHIN}/{SOURCE}/')}",
                log="".join(self._log),
                label=self._source.label,
            )
