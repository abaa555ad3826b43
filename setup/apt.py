# SPDX-License-Identifier: GPL-2.0-or-later
"""A private apt root under the cache: Debian's kernels of all suites, the host's own apt untouched.

The mirror is the one that the host's sources name (or --mirror); proxy and certificate settings of
the host's apt configuration stay in force; every file is checked against Debian's archive keys.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from errors import UserError, run_command
from setup import cache, mirrors

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SUITES = ("bullseye", "bookworm", "trixie", "trixie-backports", "sid", "experimental")
SECURITY_SUITES = ("bullseye-security", "bookworm-security", "trixie-security")
MAX_AGE_S = 24 * 3600
# What apt says last, after it has said what was wrong.
SAYS_NOTHING = re.compile(r"E: (?:Download Failed|Some index files failed|Unable to fetch some)")
NO_SUCH_SUITE = re.compile(r"E: The repository .* does not have a Release file")
# apt has asked, and the file is not there: of a web server, and of a mirror on this machine's disk.
GONE = re.compile(
    r"E: Failed to fetch (?:\S+\s+(?:404|410)\s|copy:\S+\s+Failed to stat .*\(2: No such file)"
)
INDEXED = re.compile(rb"^Package: linux-(?:image|binary|modules|base)-.*\n(?:.+\n)*", re.MULTILINE)


class Gone(UserError):
    """The mirror answers, and lacks a file that its lists name."""


@dataclass(frozen=True)
class Package:
    """A version of a binary package as a suite's Packages file lists it."""

    name: str
    version: str
    suite: str
    codename: str
    uri: str
    sha256: str
    size: int


def last_line(output: str) -> str:
    """The last line of a tool's output that says something; errors are preferred to the rest."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "error:", "fatal:", "W:"))]
    errors = [line for line in errors if not SAYS_NOTHING.match(line)]
    chosen = [line for line in errors if not line.startswith("W:")] or errors or lines
    return chosen[-1] if chosen else "it printed nothing"


def run_bytes(
    command: Sequence[str | Path], *, what: str, cwd: Path | None = None, hint: str = ""
) -> bytes:
    """Run a tool and return its standard output; its failure is a UserError with its last line."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError(
            f"{what}: {command[0]} is not installed", hint="run setup/packages.sh"
        ) from None
    if done.returncode != 0:
        said = (done.stderr if done.stderr.strip() else done.stdout).decode(errors="replace")
        raise UserError(f"{what} failed: {last_line(said)}", hint=hint)
    return done.stdout


def run(
    command: Sequence[str | Path], *, what: str, cwd: Path | None = None, hint: str = ""
) -> str:
    """run_bytes() for a tool that prints text."""
    return run_bytes(command, what=what, cwd=cwd, hint=hint).decode(errors="replace")


def sources(mirror: str | None = None, extra: Iterable[str] = ()) -> list[str]:
    """The lines of the private root's sources.list."""
    main, security = mirrors.find(mirror)
    # Only Packages: the host may have more index targets configured (AppStream icons, Contents).
    options = f"[arch=amd64 target=Packages signed-by={KEYRING}]"
    lines = [f"deb {options} {main} {suite} main" for suite in (*SUITES, *extra)]
    if security:
        lines += [f"deb {options} {security} {suite} main" for suite in SECURITY_SUITES]
    return lines


def home() -> Path:
    """The private apt root; not made by asking for it, for --dry-run asks too."""
    return cache.place() / "apt"


def _configure(lines: Iterable[str]) -> Path:
    root = home()
    for folder in ("lists/partial", "archives/partial", "empty.d"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    (root / "sources.list").write_text("\n".join(lines) + "\n")
    path = root / "apt.conf"
    # The host's hooks are cleared: they act on the host's own apt (and may write there).
    path.write_text(
        f"""\
#include "/etc/apt/apt.conf.d/";
{'#include "/etc/apt/apt.conf";' if Path("/etc/apt/apt.conf").exists() else ""}
Dir::Etc::parts "{root}/empty.d";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "{root}/empty.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{root}/empty.d";
Dir::State::lists "{root}/lists";
Dir::State::status "{root}/status";
Dir::State::extended_states "{root}/extended_states";
Dir::Cache "{root}";
Dir::Cache::archives "{root}/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Log "{root}";
APT::Architecture "amd64";
APT::Sandbox::User "root";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "2";
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
"""
    )
    return path


def _environment() -> list[str]:
    return ["env", f"APT_CONFIG={home() / 'apt.conf'}", "LC_ALL=C.UTF-8"]


def _apt(tool: str, *arguments: str, what: str) -> str:
    return run(
        [*_environment(), tool, *arguments], what=what, hint="check the network and --mirror"
    )


def host_settings(prefixes: Sequence[str]) -> list[str]:
    """Lines of the host's apt configuration under these names (proxy, certificates), for tools
    that bring a configuration of their own."""
    dump = run(["apt-config", "dump", "--no-empty"], what="reading apt's configuration")
    return [line for line in dump.splitlines() if line.startswith(tuple(prefixes))]


def _field(record: str, name: str) -> str:
    match = re.search(rf"^{name}: (.*)$", record, re.MULTILINE)
    return match[1] if match else ""


def _read_lists() -> list[Package]:
    listing = _apt(
        "apt-get",
        "indextargets",
        "--format",
        "$(FILENAME)|$(REPO_URI)|$(RELEASE)|$(SUITE)|$(CODENAME)",
        "Created-By: Packages",
        what="reading the package lists",
    )
    packages: list[Package] = []
    for line in listing.splitlines():
        filename, base, release, suite, codename = line.split("|")
        packages += packages_in(filename, base, suite or release, codename or release)
    return packages


def packages_in(filename: str, base: str, suite: str, codename: str) -> Iterator[Package]:
    """The kernels that one Packages file lists, however it is packed; UserError if it is damaged.

    base: the URI that its file names are relative to.
    """
    again = "fetch the lists again: python3 -m setup.apt --force"
    command = ["/usr/lib/apt/apt-helper", "cat-file", filename]
    data = run_bytes(command, what=f"reading the package list {filename}", hint=again)
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


def _stored() -> tuple[float, list[str], list[Package]] | None:
    path = home() / "index.json"
    try:
        stored = json.loads(path.read_text())
        packages = [Package(**package) for package in stored["packages"]]
        return time.time() - path.stat().st_mtime, stored["sources"], packages
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored() -> list[Package] | None:
    """The index as it lies in the cache, however old; None if there is none."""
    found = _stored()
    return found[2] if found else None


def update(
    mirror: str | None = None, *, need: str = "", max_age_s: float = MAX_AGE_S
) -> list[Package]:
    """Return the kernel packages of all suites, fetching lists that are too old or absent.

    need: a suite beyond the usual ones. Where fetching fails, lists that are there are used.
    """
    with cache.lock("apt"):
        old = _stored()
        packages = old[2] if old else []
        if old is None or old[0] >= max_age_s or not _covers(old[1], mirror):
            try:
                packages = _fetch(sources(mirror))
            except UserError as error:
                if old is None or mirror is not None:
                    raise
                print(
                    f"using the package lists of {old[0] / 3600:.0f} h ago: {error}",
                    file=sys.stderr,
                )
        names = {name for package in packages for name in (package.suite, package.codename)}
        if need and need not in names:
            packages = _fetch(sources(mirror, [need]))
        return packages


def _covers(fetched: list[str], mirror: str | None) -> bool:
    """Whether lists fetched from these sources will do; they do where the host names no mirror."""
    try:
        return set(sources(mirror)) <= set(fetched)
    except UserError:
        return mirror is None


def _fetch(lines: list[str]) -> list[Package]:
    if not KEYRING.exists():
        raise UserError(f"{KEYRING} is missing", hint="run setup/packages.sh")
    if shutil.which("apt-get") is None:
        raise UserError("apt-get is not installed: Debian's kernels cannot be fetched")
    with cache.writing():
        _configure(lines)
    command = ["apt-get", "-q", "--error-on=any", "-o", "pkgCacheFile::Generate=false", "update"]
    done = subprocess.run([*_environment(), *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # A suite that this mirror lacks is no failure as long as others came.
        lacking = [line for line in done.stderr.splitlines() if NO_SUCH_SUITE.match(line)]
        others = [
            line
            for line in done.stderr.splitlines()
            if line.startswith("E:") and line not in lacking and not SAYS_NOTHING.match(line)
        ]
        if others or not lacking:
            raise UserError(
                f"fetching the package lists failed: {last_line(done.stderr)}",
                hint="check the network and --mirror",
            )
        for line in lacking:
            print(line.removeprefix("E: "), file=sys.stderr)
    packages = _read_lists()
    if not packages:
        raise UserError("the mirror's package lists name no kernel", hint="see --mirror")
    index = {"sources": lines, "packages": [asdict(package) for package in packages]}
    aside = home() / "index.json.new"
    with cache.writing():
        aside.write_text(json.dumps(index, indent=0))
        aside.rename(home() / "index.json")
    return packages


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def download(package: Package) -> Path:
    """Fetch one .deb into the cache, checked against the signed lists' hash; return its path.

    Gone (3) if it is no longer on the mirror, another UserError (3) if it does not arrive whole.
    """
    target = home() / "archives" / package.uri.rsplit("/", 1)[1]
    with cache.lock("apt"):
        if target.exists() and _sha256(target) == package.sha256:
            return target
        target.unlink(missing_ok=True)
        aside = target.with_name(target.name + ".part")
        uri = re.sub("^file:", "copy:", package.uri)
        try:
            _apt(
                "/usr/lib/apt/apt-helper",
                *("-q", "download-file", uri, str(aside), f"SHA256:{package.sha256}"),
                what=f"downloading {target.name}",
            )
            if _sha256(aside) != package.sha256:
                raise UserError(f"{target.name} did not arrive whole", hint="try again")
            aside.rename(target)
        except UserError as error:
            if GONE.search(str(error)):
                raise Gone(f"{target.name} is listed, but not on the mirror") from None
            raise
        finally:
            aside.unlink(missing_ok=True)
    return target


def main() -> int:
    """python3 -m setup.apt: refresh the lists and say what they hold."""
    parser = argparse.ArgumentParser(prog="setup.apt", description=__doc__)
    parser.add_argument("--mirror", metavar="URL", help="instead of the one in the host's sources")
    parser.add_argument("--force", action="store_true", help="fetch even if younger than 24 h")
    arguments = parser.parse_args()
    packages = update(arguments.mirror, max_age_s=0 if arguments.force else MAX_AGE_S)
    print(f"{len(packages)} kernel packages of {len({p.codename for p in packages})} suites")
    print(home())
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.apt", main))
