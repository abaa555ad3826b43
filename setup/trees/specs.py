# SPDX-License-Identifier: GPL-2.0-or-later
"""The spelling of kernels that are built here, on a command line and in a plan.toml alike.

git:PATH@REV, git:PATH (the work tree with its changes), or debian-source:VERSION; then any number
of `,patch=FILE` (several files separated by spaces) and `,revert=COMMIT`, which are done in this
order; then `,config=NAME`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from contract import values
from errors import Exit, UserError
from setup.trees import changes, configs, debian_source, sources, toolchain
from setup.trees.build import BuiltKernel, build_kernel
from setup.trees.progress import Progress
from setup.trees.sources import Source

GIT = "git:"
PATCH, REVERT, CONFIG = "patch", "revert", "config"
PREFIXES = (GIT, debian_source.PREFIX)
COMMIT = re.compile(r"[0-9a-f]{7,64}")


def is_tree(spec: str) -> bool:
    """Whether this SPEC's kernel is built here."""
    return spec.startswith(PREFIXES)


@dataclass(frozen=True)
class Spec:
    """A kernel that is built here: its source's place, its changes, and its configuration."""

    origin: str
    changes: tuple[tuple[str, str], ...] = ()
    config: str = ""

    def __str__(self) -> str:
        more = [f",{kind}={value}" for kind, value in self.changes]
        return self.origin + "".join(more) + (f",{CONFIG}={self.config}" if self.config else "")

    @property
    def git(self) -> tuple[Path, str]:
        """The repository and the revision; "" means the work tree."""
        text = self.origin.removeprefix(GIT)
        places = [match.start() for match in re.finditer("@", text)]
        if not values.path(text).is_dir():
            for place in places:
                if values.path(text[:place]).is_dir():
                    return values.path(text[:place]), text[place + 1 :]
        return values.path(text), ""


def parse(spec: str) -> Spec:
    """Parse a SPEC; UserError (2) if it is invalid."""
    origin, *rest = spec.split(",")
    changed: list[tuple[str, str]] = []
    config = ""
    for word in rest:
        kind, equals, value = word.partition("=")
        if (
            not equals
            or not value
            or kind not in (PATCH, REVERT, CONFIG)
            or (config and kind == CONFIG)
        ):
            raise UserError(
                f"{word!r} in {spec!r}: after a source come {PATCH}=FILE, {REVERT}=COMMIT and one "
                f"{CONFIG}=NAME",
                status=Exit.USAGE,
            )
        if kind == CONFIG:
            config = value
        else:
            changed.append((kind, value))
    if origin.startswith(debian_source.PREFIX):
        debian_source.wanted_of(origin)
    elif not origin.removeprefix(GIT):
        raise UserError(
            f"not a kernel: {spec!r}", hint="for example git:~/linux@v7.2", status=Exit.USAGE
        )
    return Spec(origin, tuple(changed), config)


def checked(spec: str) -> Spec:
    """Parse a SPEC; UserError (2) if a file that it names is missing. Writes nothing."""
    parsed = parse(spec)
    if parsed.origin.startswith(GIT):
        path, _ = parsed.git
        if not path.is_dir():
            raise UserError(f"no such folder: {parsed.origin!r}", status=Exit.USAGE)
    for kind, value in parsed.changes:
        if kind == REVERT and not COMMIT.fullmatch(value):
            raise UserError(
                f"not a commit: {value!r}", hint="7 to 64 hex digits", status=Exit.USAGE
            )
        for patch in value.split() if kind == PATCH else []:
            if not values.path(patch).is_file():
                raise UserError(f"no such patch: {patch!r}", status=Exit.USAGE)
    configs.find(parsed.config)
    return parsed


def absolute(spec: str) -> str:
    """The SPEC with absolute paths."""
    parsed = parse(spec)
    if parsed.origin.startswith(GIT):
        path, revision = parsed.git
        at = f"@{revision}" if revision else ""
        parsed = replace(parsed, origin=f"{GIT}{_absolute(str(path))}{at}")
    changed = tuple(
        (kind, " ".join(map(_absolute, value.split())) if kind == PATCH else value)
        for kind, value in parsed.changes
    )
    named = parsed.config in ("", configs.TINY, configs.DEFAULT, configs.HOST)
    config = parsed.config if named else _absolute(parsed.config)
    return str(replace(parsed, changes=changed, config=config))


def _absolute(path: str) -> str:
    return str(values.path(path).absolute())


def with_change(spec: str, kind: str, value: str) -> str:
    """The SPEC with one more change."""
    parsed = parse(spec)
    return str(replace(parsed, changes=(*parsed.changes, (kind, value))))


def with_config(spec: str, config: str) -> str:
    """The SPEC with this configuration, if it names none."""
    parsed = parse(spec)
    return str(replace(parsed, config=parsed.config or config))


def pinned(spec: str, exact: str) -> str:
    """The SPEC for exactly the commit or version of Debian's package that its runs had."""
    parsed = parse(spec)
    if parsed.origin.startswith(GIT):
        path, revision = parsed.git
        return str(replace(parsed, origin=f"{GIT}{path}@{exact}")) if revision else spec
    return str(replace(parsed, origin=f"{debian_source.PREFIX}{exact}"))


def source_of(spec: Spec, mirror: str | None = None) -> Source:
    """The SPEC's source with its changes; NotBuilt if a change does not apply."""
    if spec.origin.startswith(GIT):
        source = sources.from_git(*spec.git)
    else:
        wanted = debian_source.wanted_of(spec.origin)
        source = debian_source.from_debian(wanted, mirror=mirror)
    for kind, value in spec.changes:
        if kind == PATCH:
            source = changes.patched(source, [values.path(file) for file in value.split()])
        else:
            source = changes.reverted(source, [value])
    if spec.config:
        name = Path(spec.config).stem if "/" in spec.config else spec.config
        source = replace(source, label=f"{source.label}-{sources.safe_label(name)}")
    return source


def resolve(
    text: str, *, mirror: str | None, progress: Callable[[Progress], None]
) -> tuple[BuiltKernel, Source]:
    """The kernel of a SPEC, built if it is not in the cache; NotBuilt if it cannot be built."""
    spec = checked(text)
    source = source_of(spec, mirror)
    return build_kernel(source, configs.find(spec.config), mirror=mirror, progress=progress), source


def describe(text: str) -> str:
    """One line about what resolve() would do; writes and fetches nothing."""
    spec = checked(text)
    if spec.origin.startswith(GIT):
        path, revision = spec.git
        what = f"{revision} of {path}" if revision else f"the work tree {path} as it is"
    else:
        what = debian_source.describe(debian_source.wanted_of(spec.origin))
    done = [
        f"with {value}" if kind == PATCH else f"without {value}" for kind, value in spec.changes
    ]
    how = f"configured with {spec.config or 'setup/kernel.config on tinyconfig'}"
    return f"{', '.join([what, *done])}, built here, {how}, by {toolchain.describe()}"
