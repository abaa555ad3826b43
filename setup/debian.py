# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernel packages: finds those that exist, chooses by version or suite, unpacks them.

Each version has flavours (`cloud-amd64`, `amd64`, `rt-amd64`), which differ in configuration. There
are two layouts: one linux-image-V with everything (6.18's, too, although it depends on
linux-base-V); since 6.19 an empty linux-image-V beside linux-binary-V, linux-modules-V and
linux-base-V, which has the config. Some suites have incomplete old versions: only complete ones are
candidates.
"""

import functools
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from setup import apt, cache, package_lists

# Lists older than this may name packages that the mirror has replaced: they are fetched again
# before an older kernel is taken.
FRESH_S = 3600
JUST_NOW_S = 60  # a suite that could not be fetched is not fetched again sooner
FLAVOUR = "cloud-amd64"  # if none is named
IMAGE = re.compile(r"linux-(image|binary|binary-unsigned)-(\d\S*?)-((?:[a-z]+-)*amd64)(-unsigned)?")


@dataclass(frozen=True)
class Candidate:
    """A kernel in Debian's archive: its release, version, suites and packages."""

    release: str
    abi: str
    flavour: str
    version: str
    suites: frozenset[str]
    packages: tuple[apt.Package, ...]

    @property
    def upstream(self) -> str:
        """The upstream version: `6.1.170`, `7.3-rc7`."""
        return (
            self.version.rpartition("-")[0]
            .partition(":")[2 if ":" in self.version else 0]
            .replace("~", "-")
        )

    @property
    def label(self) -> str:
        """The upstream version, with the flavour if that is not the default: `6.12.117-amd64`."""
        return self.upstream if self.flavour == FLAVOUR else f"{self.upstream}-{self.flavour}"

    @property
    def name(self) -> str:
        """Debian's version, and whether it is the build without Debian's signature."""
        unsigned = "-unsigned" in self.packages[0].name
        return f"{self.version} (unsigned)" if unsigned else self.version

    @property
    def digest(self) -> str:
        """A key that identifies the contents of all packages."""
        return cache.key(*(package.sha256 for package in self.packages))


def _order(character: str) -> int:
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256


def compare(left: str, right: str) -> int:
    """Compare versions in Debian's order: a negative, zero or positive number."""

    def split(version: str) -> tuple[int, str, str]:
        epoch, colon, rest = version.partition(":")
        if not colon:
            epoch, rest = "0", version
        upstream, dash, revision = rest.rpartition("-")
        return int(epoch), upstream if dash else rest, revision if dash else "0"

    def part(a: str, b: str) -> int:
        while a or b:
            text_a, text_b = re.match(r"\D*", a)[0], re.match(r"\D*", b)[0]  # type: ignore[index]
            for index in range(max(len(text_a), len(text_b))):
                order_a = _order(text_a[index]) if index < len(text_a) else 0
                order_b = _order(text_b[index]) if index < len(text_b) else 0
                if order_a != order_b:
                    return order_a - order_b
            a, b = a[len(text_a) :], b[len(text_b) :]
            digits_a, digits_b = re.match(r"\d*", a)[0], re.match(r"\d*", b)[0]  # type: ignore[index]
            if int(digits_a or 0) != int(digits_b or 0):
                return int(digits_a or 0) - int(digits_b or 0)
            a, b = a[len(digits_a) :], b[len(digits_b) :]
        return 0

    (epoch_a, up_a, rev_a), (epoch_b, up_b, rev_b) = split(left), split(right)
    return epoch_a - epoch_b or part(up_a, up_b) or part(rev_a, rev_b)


version_key = functools.cmp_to_key(compare)


def candidates(packages: Iterable[apt.Package], flavour: str) -> list[Candidate]:
    """The complete kernels of this flavour in the lists, oldest first, signed ones last."""
    by_name: dict[tuple[str, str], list[apt.Package]] = {}
    for package in packages:
        by_name.setdefault((package.name, package.version), []).append(package)

    def package_of(name: str, version: str) -> apt.Package | None:
        return by_name.get((name, version), [None])[0]

    complete: list[tuple[bool, Candidate]] = []
    for (name, version), listed in by_name.items():
        match = IMAGE.fullmatch(name)
        if not match or match[3] != flavour or "-" not in version:
            continue
        release = f"{match[2]}-{flavour}"
        base = package_of(f"linux-base-{release}", version)
        modules = package_of(f"linux-modules-{release}", version)
        if match[1] == "image":
            # An image package of a few kB is the empty one of the newer layout.
            if listed[0].size < 1 << 20:
                continue
            parts = [listed[0], base]
        else:
            if not base or not modules:
                continue
            parts = [listed[0], modules, base]
        suites = frozenset(word for package in listed for word in (package.suite, package.codename))
        signed = "unsigned" not in name
        whole = tuple(package for package in parts if package)
        complete.append((signed, Candidate(release, match[2], flavour, version, suites, whole)))
    complete.sort(key=lambda item: (version_key(item[1].version), item[0]))
    return [candidate for _, candidate in complete]


def matches(candidate: Candidate, wanted: str) -> bool:
    """Whether wanted (`6.1`, `7.3-rc7`, `6.12.90+deb13`, `6.1.170-3`) means this kernel."""
    upstream = candidate.upstream
    return wanted in (
        upstream,
        candidate.abi,
        candidate.release,
        candidate.version,
    ) or upstream.startswith((f"{wanted}.", f"{wanted}-rc"))


def in_suite(candidate: Candidate, suite: str) -> bool:
    """Whether the kernel is in the suite or in its security or point updates."""
    return bool(candidate.suites & {suite, f"{suite}-security", f"{suite}-updates"})


def is_suite(wanted: str) -> bool:
    """Whether wanted is the name of a suite, not a version."""
    return not wanted[:1].isdigit()


def split(wanted: str) -> tuple[str, str]:
    """The suite or version, and the flavour, of `6.12` or `6.12/rt-amd64`."""
    name, _, flavour = wanted.partition("/")
    return name, flavour or FLAVOUR


def flavours(packages: Iterable[apt.Package]) -> list[str]:
    """The flavours that the lists have kernels of."""
    matches = (IMAGE.fullmatch(package.name) for package in packages)
    return sorted({match[3] for match in matches if match})


def fitting(packages: Sequence[apt.Package], wanted: str, flavour: str) -> list[Candidate]:
    """The kernels that wanted means, newest first."""
    fits = in_suite if is_suite(wanted) else matches
    return [item for item in reversed(candidates(packages, flavour)) if fits(item, wanted)]


def what_exists(packages: Sequence[apt.Package], wanted: str, flavour: str) -> str:
    """One line for the user: the flavours, the newest kernel of each series, or the suites."""
    known = flavours(packages)
    if flavour not in known:
        return "flavours: " + ", ".join(known)
    if is_suite(wanted):
        return "suites: " + ", ".join(sorted({package.codename for package in packages}))
    return f"{flavour} kernels: " + ", ".join(newest_of_series(packages, flavour).values())


def newest_of_series(packages: Iterable[apt.Package], flavour: str) -> dict[str, str]:
    """For each series (`6.12`) the upstream version of its newest kernel, oldest series first."""
    newest: dict[str, str] = {}
    for candidate in candidates(packages, flavour):
        newest[".".join(re.split(r"[.-]", candidate.upstream)[:2])] = candidate.upstream
    return newest


def unpack(debs: Sequence[Path], folder: Path) -> None:
    """Unpack kernel packages into folder: `vmlinuz`, `config` and `lib/modules/RELEASE`.

    UserError (3) if a package is damaged or has no kernel.
    """
    tree = folder.with_name(folder.name + ".tree")
    for deb in debs:
        # -x writes while it reads: damage may only show at the last byte.
        apt.run(["dpkg-deb", "-x", deb, tree], what=f"unpacking {deb.name}")
    images = [*tree.glob("boot/vmlinuz-*"), *tree.glob("usr/lib/modules/*/vmlinuz")]
    folders = [
        path
        for path in (*tree.glob("lib/modules/*"), *tree.glob("usr/lib/modules/*"))
        if path.is_dir()
    ]
    if len(images) != 1 or not folders:
        names = ", ".join(deb.name for deb in debs)
        raise UserError(f"{names}: no kernel image with its modules inside")
    release = folders[0].name
    (folder / "lib/modules").mkdir(parents=True)
    images[0].rename(folder / "vmlinuz")
    for config in (*tree.glob("boot/config-*"), *tree.glob("usr/lib/modules/*/config")):
        config.rename(folder / "config")
    for modules in folders:
        shutil.copytree(
            modules, folder / "lib/modules" / release, symlinks=True, dirs_exist_ok=True
        )
    shutil.rmtree(tree)
    apt.run(["depmod", "-b", folder, release], what=f"depmod of {release}")


def fetch(candidate: Candidate) -> Path:
    """The folder in the cache with the unpacked kernel, which is downloaded if needed.

    apt.Gone (3) if the mirror lacks one of its packages; UserError (3) if fetching fails otherwise.
    """

    def build(folder: Path) -> None:
        debs: list[Path] = []
        try:
            for package in candidate.packages:
                debs.append(apt.download(package))
            unpack(debs, folder)
        finally:
            for deb in debs:
                deb.unlink(missing_ok=True)

    return cache.built("kernels", candidate.digest, build)


def find(wanted: str, *, mirror: str | None, flavour: str) -> tuple[Candidate, Path]:
    """The newest kernel that wanted means and the mirror has, with its folder in the cache.

    Newer ones that are listed but gone are named on stderr. UserError (3), with the tried or the
    existing kernels, if none can be fetched; also if the mirror does not answer at all.
    """
    need = wanted if is_suite(wanted) else ""
    lists = package_lists.update(mirror, need=need)
    listed = fitting(lists.packages, wanted, flavour)
    if not listed and lists.missing:
        lists = package_lists.update(mirror, need=need, max_age_s=JUST_NOW_S)
        listed = fitting(lists.packages, wanted, flavour)
    gone: list[Candidate] = []
    while left := [kernel for kernel in listed if kernel not in gone]:
        newest = left[0]
        try:
            folder = fetch(newest)
        except apt.Gone:
            gone.append(newest)
            if len(gone) == 1:
                lists = package_lists.update(mirror, need=need, max_age_s=FRESH_S)
                listed = fitting(lists.packages, wanted, flavour)
            continue
        if newer := listed[: listed.index(newest)]:
            print(f"{_not_there(wanted, newer)}; taken: {newest.name}", file=sys.stderr)
        return newest, folder
    if gone:
        raise UserError(
            _not_there(wanted, gone), hint="name another suite or version, or another --mirror"
        )
    kind = "suite" if is_suite(wanted) else "version"
    without = f"; without {', '.join(lists.missing)}, not fetched" if lists.missing else ""
    raise UserError(
        f"Debian has no {flavour} kernel of {kind} {wanted}",
        hint=what_exists(lists.packages, wanted, flavour) + without,
    )


def _not_there(wanted: str, gone: Sequence[Candidate]) -> str:
    versions = ", ".join(dict.fromkeys(kernel.version for kernel in gone))
    return f"debian:{wanted}: listed, but not on the mirror: {versions}"
