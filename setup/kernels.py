# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the image, modules and config of the kernel that a user names by a SPEC.

SPECs are debian:SUITE or debian:VERSION, also with /FLAVOUR; host; PATH[,modules=DIR] of a bzImage;
a kernel build tree; and those that setup.trees builds: git:PATH@REV, debian-source:VERSION.
"""

import argparse
import os
import re
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contract import values
from errors import Exit, UserError, run_command
from setup import apt, built_tree, cache, debian, mirrors, package_lists
from setup.trees import specs
from setup.trees.progress import Progress, Shown

SPECS = """\
kernels:
  debian:stable, debian:bookworm, debian:sid     the newest of a suite of Debian
  debian:6.1, debian:7.3-rc7                     the newest of that version in any suite
  debian:6.12.90+deb13, debian:6.12.90-1         exactly that package
    (the newest that the mirror has: one that is listed but gone is named, and the next is taken)
  debian:6.12/amd64, debian:stable/rt-amd64      another flavour than cloud-amd64
  host                                           the kernel that runs now
  PATH, or PATH,modules=DIR                      a bzImage; modules beside it, or in DIR
  DIR                                            a kernel build tree
  git:PATH@REV, git:PATH, debian-source:7.2      built here; each also with ,patch=FILE
                                                 ,revert=COMMIT ,config=NAME
                                                 (docs/guides/own-kernel-and-patches.md)
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel that is ready to boot. modules is .../lib/modules/RELEASE, None if there are none.

    package: the version of its Debian package or its commit, if it has one. log: that of its build,
    if it was built here; changes: a patch with the changes of its source, if there are any.
    """

    spec: str
    label: str
    release: str
    image: Path
    modules: Path | None
    config: Path | None
    image_digest: str
    config_digest: str | None
    package: str | None = None
    log: Path | None = None
    changes: bytes = b""


def image_release(image: Path) -> str:
    """The release in a bzImage's header; UserError (3) if it is not a complete Linux image."""
    try:
        with open(image, "rb") as handle:
            head = handle.read(64 << 10)
            size = os.fstat(handle.fileno()).st_size
    except OSError as error:
        raise UserError(f"cannot read the kernel image {image}: {error.strerror}") from None
    if head[:4] == b"\x7fELF":
        raise UserError(
            f"{image} is an uncompressed vmlinux", hint="give arch/x86/boot/bzImage instead"
        )
    if len(head) < 0x264 or head[0x202:0x206] != b"HdrS" or head[0x1FE:0x200] != b"\x55\xaa":
        raise UserError(f"{image} is not a Linux kernel image")
    offset = struct.unpack_from("<H", head, 0x20E)[0] + 0x200
    version = head[offset:].partition(b"\0")[0].decode("ascii", "replace").split()
    if not version or not re.fullmatch(r"\d[\w.+~-]*", version[0], re.ASCII):
        raise UserError(f"{image} is not a Linux kernel image", hint="its header names no release")
    setup_sectors = head[0x1F1] or 4
    expected = (setup_sectors + 1) * 512 + struct.unpack_from("<I", head, 0x1F4)[0] * 16
    if size + 4096 < expected:
        raise UserError(f"{image} is cut short: {size} of {expected} bytes")
    return version[0]


def _label(release: str) -> str:
    text = re.sub(r"[^A-Za-z0-9._+-]", "-", release).lstrip("._+-")[:64]
    return text or "kernel"


def _kernel(
    spec: str,
    label: str,
    release: str,
    image: Path,
    modules: Path | None,
    config: Path | None,
    package: str | None = None,
) -> Kernel:
    return Kernel(
        spec,
        _label(label),
        release,
        image,
        modules,
        config,
        cache.file_digest(image),
        cache.file_digest(config) if config else None,
        package,
    )


def _readable(paths: list[Path]) -> Path | None:
    for path in paths:
        if path.is_file() and os.access(path, os.R_OK):
            return path
    return None


def _is_modules(path: Path, release: str) -> bool:
    return path.is_dir() and (
        path.name == release or (path / "modules.order").is_file() or (path / "kernel").is_dir()
    )


def _given_modules(folder: Path, release: str) -> Path:
    for path in (folder / "lib/modules" / release, folder / "usr/lib/modules" / release):
        if path.is_dir():
            return path
    for path in (folder / release, folder):
        if _is_modules(path, release):
            return path.resolve()
    raise UserError(f"no modules of {release} in {folder}")


def _modules_beside(image: Path, release: str) -> Path | None:
    here = image.parent
    trees = [here, here.parent, here.parent / "usr"]
    for path in [*(tree / "lib/modules" / release for tree in trees), here / release, here]:
        if path.is_dir() and (path.name == release or (path / "modules.order").is_file()):
            return path
    return None


def _config_beside(image: Path, release: str, modules: Path | None) -> Path | None:
    names = [f"config-{release}", "config", ".config"]
    if image.name.startswith(("vmlinuz-", "bzImage-")):
        names.insert(0, "config-" + image.name.partition("-")[2])
    candidates = [image.parent / name for name in names]
    if modules:
        candidates += [modules / "config", modules / "build/.config"]
    return _readable(candidates)


def _from_image(spec: str, image: Path, folder: Path | None) -> Kernel:
    image = image.resolve()
    release = image_release(image)
    modules = _given_modules(folder, release) if folder else _modules_beside(image, release)
    return _kernel(spec, release, release, image, modules, _config_beside(image, release, modules))


def _host(spec: str) -> Kernel:
    release = os.uname().release
    modules = Path("/lib/modules") / release
    image = _readable([Path("/boot") / f"vmlinuz-{release}", modules / "vmlinuz"])
    if image is None:
        exists = (Path("/boot") / f"vmlinuz-{release}").exists()
        raise UserError(
            f"the running kernel's image /boot/vmlinuz-{release} "
            + ("may not be read by this user" if exists else "is not on this machine"),
            hint="give another kernel, for example debian:stable",
        )
    config = _config_beside(image, release, modules) or _readable([Path("/proc/config.gz")])
    image_release(image)
    return _kernel(spec, release, release, image, modules if modules.is_dir() else None, config)


def _from_tree(spec: str, tree: Path) -> Kernel:
    tree = tree.resolve()
    image = built_tree.image(tree)
    release = image_release(image)
    config = _readable([tree / ".config"])
    return _kernel(spec, release, release, image, built_tree.modules(tree, release), config)


def _split(spec: str) -> tuple[Path, Path | None]:
    text, comma, folder = spec.partition(",modules=")
    path = values.path(text)
    if not path.exists():
        raise UserError(
            f"unknown kernel {spec!r}",
            hint="give debian:SUITE, debian:VERSION, git:PATH@REV, host, or the path of a bzImage "
            "or a build tree, e.g. /boot/vmlinuz-6.8.0",
            status=Exit.USAGE,
        )
    return path, values.path(folder) if comma else None


def absolute(spec: str) -> str:
    """The SPEC with absolute paths, so that a campaign can be resumed from any folder."""
    if spec == "host" or spec.startswith("debian:"):
        return spec
    if specs.is_tree(spec):
        return specs.absolute(spec)
    paths = spec.split(",modules=", 1)
    return ",modules=".join(str(values.path(path).absolute()) for path in paths)


def _debian(spec: str) -> tuple[str, str]:
    """The suite or version and the flavour of a debian:… SPEC; UserError (2) if it is invalid."""
    wanted = spec.removeprefix("debian:")
    if not re.fullmatch(r"[A-Za-z0-9][\w.+~-]*(/[a-z0-9-]+)?", wanted, re.ASCII):
        raise UserError(
            f"not a suite or version: {spec!r}",
            hint="for example debian:stable, debian:6.12 or debian:6.12/amd64",
            status=Exit.USAGE,
        )
    return debian.split(wanted)


def resolve(
    spec: str, *, mirror: str | None = None, progress: Callable[[Progress], None] | None = None
) -> Kernel:
    """Find (and fetch, unpack, build) the kernel that spec means.

    progress: called at each step of a build, instead of showing it on stderr.
    UserError: 2 for an invalid SPEC, 3 if something is missing or damaged.
    """
    if spec.startswith("debian:"):
        wanted, flavour = _debian(spec)
        candidate, folder = debian.find(wanted, mirror=mirror, flavour=flavour)
        image = folder / "vmlinuz"
        release = image_release(image)
        config = _readable([folder / "config"])
        modules = folder / "lib/modules" / release
        return _kernel(spec, candidate.label, release, image, modules, config, candidate.version)
    if specs.is_tree(spec):
        return _built(spec, mirror, progress or Shown())
    return as_it_is(spec) or _from_tree(spec, _split(spec)[0])


def _built(spec: str, mirror: str | None, progress: Callable[[Progress], None]) -> Kernel:
    """The kernel built from a source; failures.NotBuilt if it cannot be built."""
    built, source = specs.resolve(spec, mirror=mirror, progress=progress)
    for note in source.notes:
        mirrors.say_once(note)
    exact = source.package or (source.commit if source.is_committed else "")
    return Kernel(
        spec,
        _label(built.label),
        built.release,
        built.image,
        built.modules,
        built.config,
        built.digest,
        cache.file_digest(built.config),
        exact or None,
        built.log,
        source.changes,
    )


def as_it_is(spec: str) -> Kernel | None:
    """The kernel, if nothing has to be fetched or built for it, else None.

    UserError as resolve().
    """
    if spec.startswith("debian:"):
        _debian(spec)
        return None
    if specs.is_tree(spec):
        specs.checked(spec)
        return None
    if spec == "host":
        return _host(spec)
    path, modules_folder = _split(spec)
    if path.is_dir():
        image_release(built_tree.image(path))
        return None
    return _from_image(spec, path, modules_folder)


def describe(spec: str) -> str:
    """One line about what resolve() would do; writes and fetches nothing."""
    if spec.startswith("debian:"):
        wanted, flavour = _debian(spec)
        packages = package_lists.stored()
        fitting = debian.fitting(packages, wanted, flavour) if packages else []
        if not fitting:
            kind = "suite" if debian.is_suite(wanted) else "version"
            return (
                f"the newest {flavour} kernel of Debian {kind} {wanted}: package lists and "
                "kernel fetched through apt (100 to 250 MB) into the cache"
            )
        candidate = fitting[0]
        size = sum(package.size for package in candidate.packages) / 1e6
        cached = (apt.home().parent / "kernels" / candidate.digest).exists()
        fetched = f"{size:.0f} MB to fetch through apt (if the mirror lacks it, the next older one)"
        how = "already in the cache" if cached else fetched
        return f"Debian's kernel {candidate.label} ({candidate.release}), {how}"
    if specs.is_tree(spec):
        return specs.describe(spec)
    kernel = as_it_is(spec)
    if kernel is None:
        path, _ = _split(spec)
        return f"the built kernel tree {path}: {image_release(built_tree.image(path))}"
    if spec == "host":
        return f"the running kernel {kernel.release}"
    modules = kernel.modules or "none"
    return f"the kernel image {kernel.image}: {kernel.release}, modules: {modules}"


def main() -> int:
    """python3 -m setup.kernels SPEC...: prepare kernels and print their paths; the exit status."""
    parser = argparse.ArgumentParser(
        prog="setup.kernels",
        description=__doc__,
        epilog=SPECS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("specs", nargs="+", metavar="SPEC")
    parser.add_argument("--mirror", metavar="URL", help="instead of the one in the host's sources")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be done")
    arguments = parser.parse_args()
    for spec in arguments.specs:
        if arguments.dry_run:
            print(f"{spec}: {describe(spec)}")
            continue
        kernel = resolve(spec, mirror=arguments.mirror)
        print(
            f"{kernel.label}\t{kernel.release}\t{kernel.image}\t{kernel.modules}\t{kernel.config}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.kernels", main))
