# SPDX-License-Identifier: GPL-2.0-or-later
"""A private apt root in the cache for Debian's kernels, so that the host's own apt is not touched.

The host's proxy and certificate settings apply, and every file is checked against Debian's archive
keys. setup.package_lists finds out which kernels exist.
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from setup import cache

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
HOST = Path("/etc/apt")  # its configuration
# apt's last lines, which do not name the cause of an error.
SAYS_NOTHING = re.compile(r"E: (?:Download Failed|Some index files failed|Unable to fetch some)")
# The mirror lacks the file: a web server's answer, and that of a mirror on this machine's disk.
GONE = re.compile(
    r"E: Failed to fetch (?:\S+\s+(?:404|410)\s|copy:\S+\s+Failed to stat .*\(2: No such file)"
)


class Gone(UserError):
    """The mirror answers, but lacks a file that its lists name."""


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
    """The last meaningful line of a tool's output; error lines are preferred."""
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
        output = (done.stderr if done.stderr.strip() else done.stdout).decode(errors="replace")
        raise UserError(f"{what} failed: {last_line(output)}", hint=hint)
    return done.stdout


def run(
    command: Sequence[str | Path], *, what: str, cwd: Path | None = None, hint: str = ""
) -> str:
    """run_bytes() for a tool that prints text."""
    return run_bytes(command, what=what, cwd=cwd, hint=hint).decode(errors="replace")


def home() -> Path:
    """The path of the private apt root, which may not exist: --dry-run uses it, too."""
    return cache.place() / "apt"


def configure() -> None:
    """Write the root's configuration; apt's command line names the lists to read."""
    root = home()
    for folder in ("archives/partial", "empty.d"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    # The host's hooks are cleared: they act on the host's own apt (and may write there).
    (root / "apt.conf").write_text(
        f"""\
#include "{HOST}/apt.conf.d/";
{f'#include "{HOST}/apt.conf";' if (HOST / "apt.conf").exists() else ""}
Dir::Etc::parts "{root}/empty.d";
Dir::Etc::main "/dev/null";
Dir::Etc::sourcelist "/dev/null";
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
#clear APT::Update::Post-Invoke-Stats;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
"""
    )


def environment() -> list[str]:
    """The words before a command of apt that make it work in the private root."""
    return ["env", f"APT_CONFIG={home() / 'apt.conf'}", "LC_ALL=C.UTF-8"]


def _apt(tool: str, *arguments: str, what: str) -> str:
    return run([*environment(), tool, *arguments], what=what, hint="check the network and --mirror")


def host_settings(prefixes: Sequence[str]) -> list[str]:
    """The lines of the host's apt configuration with these prefixes (proxy, certificates), for
    tools with a configuration of their own."""
    dump = run(["apt-config", "dump", "--no-empty"], what="reading apt's configuration")
    return [line for line in dump.splitlines() if line.startswith(tuple(prefixes))]


def download(package: Package) -> Path:
    """Fetch one .deb into the cache, checked against the signed lists' hash; return its path.

    Gone (3) if the mirror no longer has it, another UserError (3) if it does not arrive complete.
    """
    target = home() / "archives" / package.uri.rsplit("/", 1)[1]
    with cache.lock("apt"):
        if target.exists() and cache.file_digest(target) == package.sha256:
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
            if cache.file_digest(aside) != package.sha256:
                raise UserError(f"{target.name} did not arrive complete", hint="try again")
            aside.rename(target)
        except UserError as error:
            if GONE.search(str(error)):
                raise Gone(f"the mirror lists {target.name}, but does not have it") from None
            raise
        finally:
            aside.unlink(missing_ok=True)
    return target
