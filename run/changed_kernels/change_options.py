# SPDX-License-Identifier: GPL-2.0-or-later
"""--patch, --revert and --kernel-config: options about kernels that are built."""

import argparse

from contract.values import not_empty
from setup.trees import specs


def add(parser: argparse.ArgumentParser) -> None:
    """Add --patch, --revert and --kernel-config, which become part of a variant's kernel SPEC."""
    group = parser.add_argument_group(
        "changed kernels",
        "for --kernel git:PATH@REV (a revision of a git tree, built here), git:PATH (its work tree "
        "as it is) and debian-source:VERSION (Debian's source, without a clone): "
        "docs/guides/own-kernel-and-patches.md",
    )
    for kind, metavar, help in (
        (
            specs.PATCH,
            "FILE",
            "also test each kernel that is built here with this patch added; may be repeated, each "
            "makes a variant; 'a.patch b.patch' makes one with both",
        ),
        (
            specs.REVERT,
            "COMMIT",
            "also test each kernel that is built here with this commit reverted; may be repeated",
        ),
    ):
        group.add_argument(
            f"--{kind}", dest="changes", action=_Change, type=not_empty, metavar=metavar, help=help
        )
    group.add_argument(
        "--kernel-config",
        type=not_empty,
        metavar="FILE",
        help="configuration of kernels that are built: a .config, host (the running kernel's) or "
        "defconfig (default: setup/kernel.config on make tinyconfig)",
    )


class _Change(argparse.Action):
    """Appends (kind, value): patches and reverts stay in the order in which they were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        kind = (option_string or "").removeprefix("--")
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), (kind, values)])


def without_kernel(given: argparse.Namespace) -> str:
    """The first of these options if no --kernel is built; else ""."""
    if any(map(specs.is_tree, given.kernel or ())):
        return ""
    if given.changes:
        return f"--{given.changes[0][0]}"
    return "--kernel-config" if given.kernel_config else ""


def kernels(given: argparse.Namespace) -> list[str]:
    """SPECs: each --kernel, followed by variants with each patch and without each commit."""
    listed: list[str] = []
    for kernel in given.kernel or ["debian:stable"]:
        if not specs.is_tree(kernel):
            listed.append(kernel)
            continue
        base = specs.with_config(kernel, given.kernel_config or "")
        listed += [base, *(specs.with_change(base, *change) for change in given.changes or ())]
    return listed
