# SPDX-License-Identifier: GPL-2.0-or-later
"""Remedies against a freeze, remedies/NAME.toml: settings of a variant under one name.

A remedy sets what every variant has (swap, knobs, words of the kernel's command line), a daemon
that runs beside the workload, and the control group (`slice`) of the workload's programs.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contract import swap, values
from contract.swap import ON_DISK, Swap
from contract.untrusted import LARGEST_TOML, toml_tables
from contract.values import Refused
from contract.variant import Variant

FOLDER = Path(__file__).resolve().parent.parent / "remedies"
TEXTS = ("what", "source", "costs", "acts")
NEEDS = ("packages", "modules", "config")
DOES = ("swap", "append", "daemon", "knobs", "slice")
KILLS, SWAPS, ALWAYS = "kills", "swaps", "always"


@dataclass(frozen=True)
class Remedy:
    """A remedy; desktop: shell commands that do the same on a desktop, as root.

    acts: how to know that it acted: it KILLS a program, it SWAPS out a page, or ALWAYS.
    packages: of Debian; modules and config: of the kernel; `CONFIG_A|CONFIG_B` is either of them.
    """

    name: str
    what: str
    source: str
    costs: str
    acts: str
    desktop: tuple[str, ...]
    swap: Swap | None = None
    append: str = ""
    daemon: str = ""
    knobs: tuple[tuple[str, str], ...] = ()
    slice: tuple[tuple[str, str], ...] = ()
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    config: tuple[str, ...] = ()

    def applied(self, variant: Variant) -> Variant:
        """The variant with the remedy; the variant's own settings take precedence."""
        return replace(
            variant,
            remedy=self.name,
            swap=self.swap if self.swap and variant.swap == ON_DISK else variant.swap,
            append=" ".join(filter(None, (variant.append, self.append))),
            knobs=tuple((dict(self.knobs) | dict(variant.knobs)).items()),
            daemon=variant.daemon or self.daemon,
            slice=variant.slice or self.slice,
        )


def named() -> list[str]:
    """Names of all remedies."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def find(name: str) -> Remedy:
    """The remedy of that name; Refused, in one line, with the list of names, if there is none."""
    if name not in named():
        raise Refused(f"no remedy {name!r:.60} (there are {', '.join(named())})")
    path = FOLDER / f"{name}.toml"
    with path.open(encoding="utf-8") as file:
        text = file.read(LARGEST_TOML + 1)
    try:
        return parse(name, toml_tables(text))
    except ValueError as error:
        raise Refused(f"{path}: {error}") from None


def of_variant(variant: Variant) -> Remedy | None:
    """The variant's remedy; None if it has none, or one that the suite no longer has."""
    return find(variant.remedy) if variant.remedy in named() else None


def packages(variants: Iterable[Variant]) -> tuple[str, ...]:
    """Debian packages in the image of a campaign's guests; all remedies' if a variant needs any.

    All variants, also those without a remedy, run in the same image.
    """
    if not any(remedy.packages for variant in variants if (remedy := of_variant(variant))):
        return ()
    return tuple(sorted({package for name in named() for package in find(name).packages}))


def parse(name: str, tables: Mapping[str, Any]) -> Remedy:
    """The remedy of a parsed file; ValueError, in one line, names an invalid key."""
    _only(tables, (*TEXTS, "desktop", "does", "needs"), "the file")
    texts = {key: _text(tables, key) for key in TEXTS}
    if texts["acts"] not in (KILLS, SWAPS, ALWAYS):
        raise ValueError(f"acts: {KILLS}, {SWAPS} or {ALWAYS}, not {texts['acts']!r}")
    does, needs = _table(tables, "does", DOES), _table(tables, "needs", NEEDS)
    try:
        return Remedy(
            name,
            what=texts["what"],
            source=texts["source"],
            costs=texts["costs"],
            acts=texts["acts"],
            desktop=_texts(tables, "desktop"),
            swap=swap.read(_text(does, "swap")) if "swap" in does else None,
            append=values.append(_text(does, "append")) if "append" in does else "",
            daemon=values.daemon(_text(does, "daemon")) if "daemon" in does else "",
            knobs=_pairs(does, "knobs", values.knob),
            slice=_pairs(does, "slice", values.slice),
            packages=_texts(needs, "packages"),
            modules=_texts(needs, "modules"),
            config=_texts(needs, "config"),
        )
    except Refused as error:
        raise ValueError(str(error)) from None


def _only(table: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise ValueError(f"{where} has no key {key!r} (it has {', '.join(keys)})")


def _table(tables: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ValueError(f"[{name}] is no table")
    _only(table, keys, f"[{name}]")
    return table


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key}: a text is needed, not {value!r}")
    return value


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    texts = table.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{key}: a list of texts is needed, not {texts!r}")
    return tuple(texts)


def _pairs(
    does: Mapping[str, Any], key: str, read: Callable[[str], tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    table = does.get(key, {})
    if not isinstance(table, dict):
        raise ValueError(f"[does.{key}] is no table")
    return tuple(read(f"{name}={value}") for name, value in table.items())
