# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's sources as a tree: the package linux-source-X.Y, checked like Debian's kernels.

Debian's own kernels of that version are compiled from it: the release of kernel.org with Debian's
patches. It is imported into a git object store in the cache; no clone is needed.
"""

import lzma
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from errors import Exit, UserError
from setup import apt, cache, debian, package_lists
from setup.trees.sources import Source, environment, make_repository

PREFIX = "debian-source:"
NAME = re.compile(r"linux-source-\d+\.\d+")
TREE = "tree"  # a file with the tree's id, beside the objects
# A commit without an author: only its tree is used.
HEAD = b"commit refs/heads/source\ncommitter suite <> 1257163200 +0000\ndata 0\n"
KIND, FORMAT = "debian-sources", "1"


def fitting(packages: list[apt.Package], wanted: str) -> list[apt.Package]:
    """The source packages that a version (`7.2`, `7.2.13-1`) or a suite means, newest first."""
    by_version: dict[str, apt.Package] = {}
    for package in packages:
        if not NAME.fullmatch(package.name):
            continue
        upstream = upstream_of(package)
        if debian.is_suite(wanted):
            names = {wanted, f"{wanted}-security", f"{wanted}-updates"}
            fits = bool(names & {package.suite, package.codename})
        else:
            fits = wanted in (upstream, package.version)
            fits |= upstream.startswith((f"{wanted}.", f"{wanted}-rc"))
        if fits:
            by_version[package.version] = package
    return [
        by_version[version] for version in sorted(by_version, key=debian.version_key, reverse=True)
    ]


def upstream_of(package: apt.Package) -> str:
    """The upstream version of a package: `7.2.13`, `7.3-rc7`."""
    return package.version.rpartition("-")[0].rpartition(":")[2].replace("~", "-")


def from_debian(wanted: str, *, mirror: str | None = None) -> Source:
    """The newest source that the mirror has for a version or a suite.

    UserError (3) with the list of existing sources if there is none.
    """
    need = wanted if debian.is_suite(wanted) else ""
    lists = package_lists.update(mirror, need=need)
    gone = []
    for package in fitting(lists.packages, wanted):
        try:
            folder = fetch(package)
        except apt.Gone:
            gone.append(package.version)
            continue
        if gone:
            print(
                f"{PREFIX}{wanted}: listed, but not on the mirror: {', '.join(gone)}; taken: "
                f"{package.version}",
                file=sys.stderr,
            )
        tree = (folder / TREE).read_text().strip()
        label, objects = f"v{upstream_of(package)}", (folder / "objects",)
        return Source(label, tree, objects, package=package.version, unchanged=tree)
    every = [package for package in lists.packages if NAME.fullmatch(package.name)]
    every.sort(key=lambda package: debian.version_key(package.version))
    known = dict.fromkeys(map(upstream_of, every))
    raise UserError(
        f"the mirror has no kernel source {wanted}",
        hint=f"sources: {', '.join(known) or 'none'}",
    )


def fetch(package: apt.Package) -> Path:
    """The bare repository in the cache with the package's source, which is fetched if needed."""

    def build(folder: Path) -> None:
        deb = apt.download(package)
        try:
            _import(deb, folder)
        finally:
            deb.unlink(missing_ok=True)

    return cache.built(KIND, _key(package), build)


def _key(package: apt.Package) -> str:
    return cache.key(FORMAT, package.sha256)


def describe(wanted: str) -> str:
    """What from_debian() would take, as far as is known; writes and fetches nothing."""
    packages = fitting(package_lists.stored() or [], wanted)
    if not packages:
        return f"Debian's source of {wanted} (package lists and source fetched into the cache)"
    cached = (cache.place() / KIND / _key(packages[0])).is_dir()
    how = "in the cache" if cached else f"{packages[0].size / 1e6:.0f} MB to fetch"
    return f"Debian's source {packages[0].version} ({how})"


def _import(deb: Path, folder: Path) -> None:
    aside = folder.with_name("unpacked")
    apt.run(["dpkg-deb", "-x", deb, aside], what=f"unpacking {deb.name}")
    tars = list(aside.glob("usr/src/linux-source-*.tar.xz"))
    if len(tars) != 1:
        raise UserError(f"{deb.name} contains no kernel source")
    make_repository(folder)
    command = ["git", "-c", "core.compression=1", "fast-import", "--quiet", "--depth=0"]
    env = environment({"GIT_DIR": str(folder)})
    try:
        with (
            lzma.open(tars[0]) as data,
            tarfile.open(fileobj=data, mode="r|") as archive,
            subprocess.Popen(command, env=env, stdin=subprocess.PIPE) as importer,
        ):
            assert importer.stdin is not None
            importer.stdin.write(HEAD)
            for name, mode, content in _files(archive):
                importer.stdin.write(b"M %s inline %s\n" % (mode, name))
                importer.stdin.write(b"data %d\n%s\n" % (len(content), content))
    except (OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
        raise UserError(f"reading {deb.name} failed: {error}") from None
    if importer.returncode:
        raise UserError(f"reading {deb.name} into git failed")
    command = ["git", "rev-parse", "refs/heads/source^{tree}"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    (folder / TREE).write_text(done.stdout)


def _files(archive: tarfile.TarFile) -> Iterator[tuple[bytes, bytes, bytes]]:
    """For each file its name without the first folder, its mode in git's form, and its bytes."""
    for member in archive:
        name = member.name.removeprefix("./").partition("/")[2]
        if member.isdir() or not name:
            continue
        if "\n" in name or name.startswith('"') or ".." in name.split("/"):
            raise UserError(f"a kernel source cannot have a file {name!r}")
        if member.issym():
            yield name.encode(), b"120000", member.linkname.encode()
            continue
        content: IO[bytes] | None = archive.extractfile(member)
        if content is not None:
            mode = b"100755" if member.mode & 0o100 else b"100644"
            yield name.encode(), mode, content.read()


def wanted_of(spec: str) -> str:
    """The version or suite of `debian-source:7.2`; UserError (2) if it is invalid."""
    wanted = spec.removeprefix(PREFIX)
    if not re.fullmatch(r"[A-Za-z0-9][\w.+~-]*", wanted, re.ASCII):
        raise UserError(
            f"not a suite or version: {spec!r}",
            hint="for example debian-source:7.2",
            status=Exit.USAGE,
        )
    return wanted
