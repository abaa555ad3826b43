# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's [[variant]] tables in plan.toml: the facts of each variant and its kernel."""

import re
from pathlib import Path
from typing import Any

from contract.swap import ON_DISK
from contract.variant import Variant
from errors import UserError
from setup.kernels import Kernel

OWN = ("workload", "load", "memory")  # keys of a variant with its own workload
# The keys of a variant's table that affect its runs.
MEASURED = ("append", "swap", *OWN, "knobs", "daemon", "slice", "image_digest")
# Names of a campaign's or bundle's own files and folders, not allowed for variants.
RESERVED = re.compile(r"report|manifest|redactions|.*\.(txt|toml|csv|json|html|png|gz)", re.I)


def entry_of(variant: Variant, label: str, kernel: Kernel | None) -> dict[str, Any]:
    """The table of a variant; UserError if the label is not allowed."""
    if RESERVED.fullmatch(label):
        raise UserError(f"a variant cannot be called {label!r}", hint="choose another --label")
    entry: dict[str, Any] = {"label": label, "kernel": variant.kernel}
    if variant.append:
        entry["append"] = variant.append
    if variant.swap != ON_DISK:
        entry["swap"] = str(variant.swap)
    if variant.workload:
        entry |= {key: getattr(variant, key) for key in OWN}
    if kernel is not None:
        entry["release"] = kernel.release
        entry["version"] = kernel.label
        if kernel.package:
            entry["package"] = kernel.package
        entry["image_digest"] = kernel.image_digest
    if variant.remedy:
        entry["remedy"] = variant.remedy
    if variant.daemon:
        entry["daemon"] = variant.daemon
    if variant.knobs:
        entry["knobs"] = dict(variant.knobs)
    if variant.slice:
        entry["slice"] = dict(variant.slice)
    return entry


def refuse_another(place: Path, before: dict[str, Any], entry: dict[str, Any]) -> None:
    """UserError if the runs in place are of a different variant with the same label."""
    for key in MEASURED:
        old, new = before.get(key), entry.get(key)
        if old != new and (key != "image_digest" or None not in (old, new)):
            what = {"image_digest": "kernel"}.get(key, key)
            was, now = old or "none", new or "none"
            if key == "image_digest":
                was = f"{before.get('release')} {was[:12]}"
                now = f"{entry.get('release')} {now[:12]}"
            raise UserError(
                f"{entry['label']}: its runs in {place} have another {what} ({was}, now {now})",
                hint="give this one a --label of its own",
            )


def times_before(entries: list[dict[str, Any]], label: str) -> int:
    """The number of earlier variants that are the same under another label."""
    place = next(n for n, entry in enumerate(entries) if entry["label"] == label)
    asked, *earlier = (
        [entry.get(key) for key in MEASURED] for entry in (entries[place], *entries[:place])
    )
    return earlier.count(asked)
