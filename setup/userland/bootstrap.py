# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a tar of Debian packages with mmdebstrap, which checks them against Debian's keys."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from errors import UserError
from setup import apt, mirrors

SUITE = "bookworm"
WHEN = 1257163200  # the time stamp of all files of a guest: the day of the mail (reference/001)


def make_tar(
    tar: Path,
    packages: Iterable[str],
    options: Sequence[str],
    *,
    mirror: str | None,
    what: str,
    prefix: Sequence[str] = (),
) -> None:
    """Make a tar of SUITE's packages; UserError (3) if it fails.

    options: further ones of mmdebstrap. what: the name of this step in errors. prefix: the first
    words of a command that runs mmdebstrap.
    """
    if not apt.KEYRING.exists():
        raise UserError(f"{apt.KEYRING} is missing", hint="run setup/packages.sh")
    main, security = mirrors.find(mirror)
    mirrors.announce(mirror)
    signed = f"[signed-by={apt.KEYRING}]"
    sources = f"deb {signed} {main} {SUITE} main\n"
    if security:
        sources += f"deb {signed} {security} {SUITE}-security main\n"
    listed = tar.with_name(f"{tar.name}.sources.list")
    listed.write_text(sources)
    command: list[str | Path] = [
        # For all times that maintainer scripts write.
        *("env", f"SOURCE_DATE_EPOCH={WHEN}"),
        *prefix,
        *("mmdebstrap", "--quiet", "--architectures=amd64"),
        f"--include={','.join(packages)}",
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Languages "none"',
        '--aptopt=Acquire::Retries "2"',
    ]
    proxy = apt.host_settings(("Acquire::http", "Acquire::https", "Acquire::Check"))
    command += [f"--aptopt={line}" for line in proxy]
    apt.run([*command, *options, SUITE, tar, listed], what=what, hint="check the network")
