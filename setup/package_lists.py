# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernels of all suites, from the package lists of a mirror.

The mirror is that of the host's sources (or --mirror). Each suite is fetched by its own apt-get
into its own folder: a suite that is expired or missing, or whose mirror does not answer, is named
in a line and left out; the others are used.
"""

import argparse
import concurrent.futures
import json
import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from errors import UserError, run_command
from setup import apt, cache, mirrors
from setup.apt import Package

SUITES = ("bullseye", "bookworm", "trixie", "trixie-backports", "sid", "experimental")
SECURITY_SUITES = ("bullseye-security", "bookworm-security", "trixie-security")
MAX_AGE_S = 24 * 3600
FORMAT = 2  # of the stored lists
# For a silent mirror; apt tries about four times before it gives up.
TIMEOUT_S = 10
# The mirror answered, but apt refuses the suite. Otherwise it is silent, or is just being updated.
REFUSED = re.compile(r"^E: (?:Release file for|The repository) ", re.MULTILINE)
NO_SUCH_SUITE = re.compile(r"The repository .* (?:does not have|no longer has) a Release file")
KINDS = rb"image|binary|modules|base|source"
INDEXED = re.compile(rb"^Package: linux-(?:%s)-.*\n(?:.+\n)*" % KINDS, re.MULTILINE)


@dataclass(frozen=True)
class Suite:
    """A suite of an archive, and the folder of its lists."""

    uri: str
    name: str

    @property
    def line(self) -> str:
        """Its line of a sources.list."""
        # Only Packages: the host may configure further targets (AppStream icons, Contents).
        options = f"[arch=amd64 target=Packages signed-by={apt.KEYRING}]"
        return f"deb {options} {self.uri} {self.name} main"

    @property
    def folder(self) -> Path:
        """The folder of its sources.list and its lists."""
        return apt.home() / "suites" / self.name

    @property
    def fetched(self) -> Path:
        """A file that is as old as the lists, with the sources.list line of their fetch."""
        return self.folder / "fetched"

    def age_s(self) -> float | None:
        """The age of its lists in seconds; None if they are missing or from another mirror."""
        try:
            if self.fetched.read_text() != self.line:
                return None
            return _age_s(self.fetched)
        except OSError:
            return None

    def apt_get(self, *arguments: str | Path) -> list[str | Path]:
        """The command line of an apt-get that only knows this suite."""
        return [
            *apt.environment(),
            "apt-get",
            *("-o", f"Dir::Etc::sourcelist={self.folder / 'sources.list'}"),
            *("-o", f"Dir::State::lists={self.folder / 'lists'}"),
            *arguments,
        ]


@dataclass(frozen=True)
class Lists:
    """The kernels of the suites, and for each suite that could not be fetched the reason."""

    packages: list[Package]
    missing: dict[str, str] = field(default_factory=dict)

    def needed(self, suite: str) -> set[str]:
        """The suites that `stable` or `trixie` stands for: itself, and its security updates."""
        codenames = {
            package.codename
            for package in self.packages
            if suite in (package.suite, package.codename)
        }
        return {suite} if not codenames else codenames | {f"{name}-security" for name in codenames}

    def failed(self, suite: str) -> dict[str, str]:
        """The needed suites that were not fetched but may be on the mirror, with the reasons."""
        return {
            name: why
            for name, why in self.missing.items()
            if name in self.needed(suite) and not NO_SUCH_SUITE.search(why)
        }


def suites(mirror: str | None = None, extra: Iterable[str] = ()) -> list[Suite]:
    """The suites that may have kernels."""
    main, security = mirrors.find(mirror)
    known = [Suite(main, name) for name in (*SUITES, *extra)]
    return known + ([Suite(security, name) for name in SECURITY_SUITES] if security else [])


def _field(record: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*)$", record, re.MULTILINE)
    return match[1] if match else ""


def _read(suite: Suite) -> list[Package]:
    form = "$(FILENAME)|$(REPO_URI)|$(RELEASE)|$(SUITE)|$(CODENAME)"
    listing = apt.run(
        suite.apt_get("indextargets", "--format", form, "Created-By: Packages"),
        what="reading the package lists",
    )
    packages: list[Package] = []
    for line in listing.splitlines():
        filename, base, release, name, codename = line.split("|")
        packages += packages_in(filename, base, name or release, codename or release)
    return packages


def packages_in(filename: str, base: str, suite: str, codename: str) -> Iterator[Package]:
    """The kernels in a Packages file, however it is compressed; UserError if it is damaged.

    base: the URI to which its file names are relative.
    """
    again = "fetch the lists again: python3 -m setup.package_lists --force"
    command = ["/usr/lib/apt/apt-helper", "cat-file", filename]
    data = apt.run_bytes(command, what=f"reading the package list {filename}", hint=again)
    for match in INDEXED.finditer(data):
        record = match[0].decode(errors="replace")
        name, size = _field(record, "Package"), _field(record, "Size")
        if not size.isdigit():
            raise UserError(f"{filename}: it has no size for {name}", hint=again)
        yield Package(
            name,
            _field(record, "Version"),
            suite,
            codename,
            base.rstrip("/") + "/" + _field(record, "Filename"),
            _field(record, "SHA256"),
            int(size),
        )


def _index() -> Path:
    return apt.home() / "index.json"


def _age_s(file: Path) -> float:
    # A file with a future time was written before the clock was set back: its age is unknown.
    age = time.time() - file.stat().st_mtime
    return age if age >= 0 else math.inf


def _stored() -> tuple[float, list[str], Lists] | None:
    try:
        stored = json.loads(_index().read_text())
        packages = [Package(**package) for package in stored["packages"]]
        if stored["format"] != FORMAT:
            return None
        return _age_s(_index()), stored["sources"], Lists(packages, stored["missing"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored() -> list[Package] | None:
    """The kernels of the lists in the cache, however old; None if there are no lists."""
    content = _stored()
    return content[2].packages if content else None


def update(mirror: str | None = None, *, need: str = "", max_age_s: float = MAX_AGE_S) -> Lists:
    """The kernels of all suites; the lists are fetched if they are missing or older than max_age_s.

    need: a suite, perhaps an unusual one. UserError (3) if it, or every suite, cannot be fetched.
    """
    with cache.lock("apt"):
        usual = suites(mirror)
        old = _stored()
        lists = old[2] if old else Lists([])
        now = (
            old is None
            or old[0] >= max_age_s
            or not {suite.line for suite in usual} <= set(old[1])
            or lists.failed(need)
        )
        if now:
            lists = _fetch(usual, mirror)
        names = {name for package in lists.packages for name in (package.suite, package.codename)}
        if need and need not in names and need not in lists.missing:
            lists = _fetch(suites(mirror, [need]), mirror)
    fetched = {package.codename for package in lists.packages}
    for name, why in lists.failed(need).items():
        if name not in fetched:
            raise UserError(
                f"debian:{need}: {name} cannot be fetched: {why}",
                hint="check the network and --mirror, or name a version: debian:6.12",
            )
    return lists


def _fetch(wanted: Sequence[Suite], mirror: str | None) -> Lists:
    """Fetch all suites at once; if the mirror does not answer, existing lists are used instead.

    A mirror that the user named must answer.
    """
    if not apt.KEYRING.exists():
        raise UserError(f"{apt.KEYRING} is missing", hint="run setup/packages.sh")
    if shutil.which("apt-get") is None:
        raise UserError("apt-get is not installed: Debian's kernels cannot be fetched")
    mirrors.announce(mirror)
    with cache.writing():
        apt.configure()
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        failures = list(pool.map(_ask, wanted))
    packages: list[Package] = []
    missing: dict[str, str] = {}
    lines: list[str] = []
    for suite, failure in zip(wanted, failures, strict=True):
        age_s = suite.age_s()
        if failure:
            missing[suite.name] = why = apt.last_line(failure).removeprefix("E: ")
            if mirror is not None or REFUSED.search(failure) or age_s is None:
                lines.append(f"debian:{suite.name} is left out: {why}")
                continue
            ago = f"{age_s / 3600:.0f} h ago" if age_s < math.inf else "some time ago"
            lines.append(f"debian:{suite.name}: its list of {ago} is used: {why}")
        packages += _read(suite)
    nothing_came = len(missing) == len(wanted)
    if nothing_came and not packages:
        why = next(iter(missing.values()))
        raise UserError(
            f"fetching the package lists failed: {why}", hint="check the network and --mirror"
        )
    for line in lines:
        mirrors.say_once(line)
    if not packages:
        raise UserError("the mirror's package lists name no kernel", hint="see --mirror")
    if not nothing_came:
        _keep([suite.line for suite in wanted], Lists(packages, missing))
    return Lists(packages, missing)


def _ask(suite: Suite) -> str:
    """Fetch the new lists of a suite; returns apt's output if that fails, else ""."""
    with cache.writing():
        (suite.folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        (suite.folder / "sources.list").write_text(suite.line + "\n")
    options = ["-q", "--error-on=any", "-o", "pkgCacheFile::Generate=false"]
    options += ["-o", "Acquire::Retries=1"]
    for scheme in ("http", "https"):
        options += ["-o", f"Acquire::{scheme}::Timeout={TIMEOUT_S}"]
    done = subprocess.run(
        suite.apt_get(*options, "update"), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        with cache.writing():
            suite.fetched.write_text(suite.line)
        return ""
    return done.stderr or f"E: apt-get ended with status {done.returncode}"


def _keep(lines: list[str], lists: Lists) -> None:
    aside = apt.home() / "index.json.new"
    index = {
        "format": FORMAT,
        "sources": lines,
        # An unusual suite is fetched whenever it is needed.
        "missing": {k: why for k, why in lists.missing.items() if k in SUITES + SECURITY_SUITES},
        "packages": [asdict(package) for package in lists.packages],
    }
    with cache.writing():
        aside.write_text(json.dumps(index, indent=0))
        aside.rename(_index())


def main() -> int:
    """python3 -m setup.package_lists: refresh the lists and print their size; the exit status."""
    parser = argparse.ArgumentParser(prog="setup.package_lists", description=__doc__)
    parser.add_argument("--mirror", metavar="URL", help="instead of the one in the host's sources")
    parser.add_argument(
        "--force", action="store_true", help="fetch the lists even if they are younger than 24 h"
    )
    arguments = parser.parse_args()
    lists = update(arguments.mirror, max_age_s=0 if arguments.force else MAX_AGE_S)
    codenames = {package.codename for package in lists.packages}
    print(f"{len(lists.packages)} kernel packages of {len(codenames)} suites")
    print(apt.home())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.package_lists", main))
