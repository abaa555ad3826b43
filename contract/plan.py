# SPDX-License-Identifier: GPL-2.0-or-later
"""plan.toml (docs/reference/plan-toml.md): its keys, and how it is read.

run.plans.asked refuses an invalid plan of the user's; all other code reads plans with
`parse_plan`, which never raises: invalid values are replaced by their defaults, and listed in the
problems.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from contract.levels import ALPHA, MARGIN, level_of_a_look
from contract.option_rows import IN_MACHINE, PARAMETERS, PLAN
from contract.option_table import NOTED
from contract.options import in_table
from contract.run_files import FORMAT_VERSION, PLAN_FILE
from contract.swap import ON_DISK, Swap
from contract.swap import read as read_swap
from contract.untrusted import toml_tables
from contract.values import LEAST_MEMORY, Refused
from contract.variant import Variant

CHANGES = "changes.patch"  # of a kernel's source, in its variant's folder
HOSTS_FILE = "hosts.json"  # in the campaign's folder: which host did which run; see HOST_OF_RUNS
HOST_OF_RUNS = "runs"  # key in HOSTS_FILE of an object "VARIANT/NUMBER": host
MOST_LOOKS = 1000
MOST, MOST_MEMORY = 10**9, 1 << 50  # bytes
TABLES = (PARAMETERS, IN_MACHINE)
# Table ("": top level) -> keys that a user may write. KEPT has those that only the suite writes.
ASKED = {
    "": (*in_table(PLAN), *TABLES, "variant"),
    **{table: tuple(in_table(table)) for table in TABLES},
    "variant": (
        *("label", "kernel", "append", "swap", "workload", "load", "memory", "knobs", "remedy"),
    ),
    "stop_when_sure": ("looks",),
}
TEXTS_OF_VARIANT = ("kernel", "label", "append", "workload", "load", "remedy", "daemon")
KEPT = {
    "": ("format", "alpha", "command", "suite", "run", "extended"),
    PARAMETERS: tuple(NOTED),
    "variant": (
        "release",
        "version",
        "package",
        "image_digest",
        "daemon",
        "slice",
        "requested_runs",
    ),
}


OLDER = "a suite before version 0.1.0 wrote it, and this one does not go on with it"


def is_older(tables: Mapping[str, Any]) -> bool:
    """Whether a suite older than version 0.1.0 wrote this plan."""
    machine = tables.get(IN_MACHINE)
    without_clock = isinstance(machine, dict) and bool(machine) and "clock" not in machine
    return without_clock or ("run" in tables and "variant" not in tables)


def machine_file(tables: Mapping[str, Any]) -> str:
    """The path of the user's own machine file in a plan; empty if the plan names none."""
    machine = tables.get(IN_MACHINE)
    named = machine.get("machine") if isinstance(machine, dict) else None
    return named if isinstance(named, str) and named.endswith(".toml") else ""


@dataclass(frozen=True)
class Plan:
    """A plan; every part of it may be absent.

    `margin` is the ratio within which two kernels count as equivalent, `alpha` the level of the
    verdicts, `looks` the numbers of runs per variant after which they are judged, `extended` those
    after which the campaign was judged and then made longer, `orders` the place (1, 2, ...) of
    (variant, number) among all runs begun, `text` and `tables` the file's content, `format` the
    version in the file.
    """

    baseline: str | None = None
    margin: float = MARGIN
    alpha: float = ALPHA
    runs: int | None = None
    looks: tuple[int, ...] = ()
    extended: tuple[int, ...] = ()
    command: str = ""
    variants: tuple[Variant, ...] = ()
    orders: dict[tuple[str, int], int] = field(default_factory=dict)
    text: str = ""
    tables: dict[str, Any] = field(default_factory=dict)
    format: Any = FORMAT_VERSION

    @property
    def level(self) -> float:
        """The level of one look at the verdicts, 0 to 1."""
        return level_of_a_look(self.alpha, len(self.looks), len(self.extended))

    @property
    def machine_copy(self) -> str:
        """The name of the machine file's copy beside the plan; empty if the plan names no file."""
        name = PurePath(machine_file(self.tables)).name
        return name if name != PLAN_FILE and name.isprintable() else ""


def parse_plan(raw: bytes) -> tuple[Plan, list[str]]:
    """The plan, and one line for each invalid part of it."""
    problems: list[str] = []
    text = raw.decode("utf-8", "replace")
    try:
        tables = toml_tables(text)
    except ValueError as error:
        return Plan(text=text), [f"cannot be read, nothing of it is known ({error})"]
    table = _Table(tables, problems)
    plan = Plan(
        baseline=table.text("baseline") or None,
        margin=table.real("margin", MARGIN, 0, 10),
        alpha=table.real("alpha", ALPHA, 0, 0.5),
        runs=table.whole("runs"),
        looks=_looks(tables.get("stop_when_sure"), problems),
        extended=_extended(tables.get("extended"), problems),
        command=table.text("command"),
        variants=variants_of(table.tables("variant"), problems),
        orders=_orders(table.tables("run"), problems),
        text=text,
        tables=tables,
        format=tables.get("format", FORMAT_VERSION),
    )
    return plan, list(dict.fromkeys(problems))


@dataclass(frozen=True)
class _Table:
    """A TOML table whose values may have the wrong type."""

    values: dict[str, Any]
    problems: list[str]
    name: str = ""

    def _bad(self, key: str) -> None:
        where = f" of {self.name}" if self.name else ""
        self.problems.append(f"{key}{where}: not a value that it can have, its default is taken")

    def text(self, key: str) -> str:
        value = self.values.get(key, "")
        if isinstance(value, str):
            return value
        self._bad(key)
        return ""

    def real(self, key: str, default: float, above: float, below: float) -> float:
        value = self.values.get(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool) and above < value < below:
            return float(value)
        self._bad(key)
        return default

    def whole(self, key: str, below: int = MOST, least: int = 1) -> int | None:
        value = self.values.get(key)
        if value is None or (_is_whole(value, below) and value >= least):
            return value
        self._bad(key)
        return None

    def tables(self, key: str) -> list[dict[str, Any]]:
        value = self.values.get(key, [])
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return value
        self._bad(key)
        return []


def _is_whole(value: object, below: int = MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < below


def variants_of(tables: list[dict[str, Any]], problems: list[str]) -> tuple[Variant, ...]:
    """The variants of [[variant]] tables; a line for each invalid part is added to problems."""
    variants: dict[str, Variant] = {}
    for values in tables:
        table = _Table(values, problems, "a variant")
        label = table.text("label")
        if not label or label in variants:
            problems.append("a variant without a label of its own, left out")
            continue
        table.whole("requested_runs")  # read by run.campaign; here only checked
        variants[label] = Variant(
            **{key: table.text(key) for key in TEXTS_OF_VARIANT},
            swap=_swap(table, problems),
            memory=table.whole("memory", MOST_MEMORY, least=LEAST_MEMORY) or 0,
            knobs=_texts_of(table, "knobs"),
            slice=_texts_of(table, "slice"),
        )
    return tuple(variants.values())


def _texts_of(table: _Table, key: str) -> tuple[tuple[str, str], ...]:
    texts = table.values.get(key, {})
    if isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()):
        return tuple(texts.items())
    table.problems.append(f"{key} of a variant: not texts, left out")
    return ()


def _swap(table: _Table, problems: list[str]) -> Swap:
    try:
        return read_swap(table.text("swap") or str(ON_DISK))
    except Refused as error:
        problems.append(f"swap of a variant: {error}; taken for {ON_DISK}")
        return ON_DISK


def _orders(tables: list[dict[str, Any]], problems: list[str]) -> dict[tuple[str, int], int]:
    """The place of each run among all that were begun.

    A run that was cut short and repeated is listed twice: the later place counts.
    """
    orders: dict[tuple[str, int], int] = {}
    for values in tables:
        label, number, order = (values.get(key) for key in ("variant", "number", "order"))
        if not (isinstance(label, str) and label and _is_whole(number) and _is_whole(order)):
            problems.append("a run without its variant, number or order, left out")
            continue
        orders[label, int(str(number))] = int(str(order))
    return orders


def _looks(value: object, problems: list[str]) -> tuple[int, ...]:
    """Growing numbers of runs; () if the campaign does not stop by its verdicts."""
    if value is None:
        return ()
    looks = value.get("looks") if isinstance(value, dict) else None
    if isinstance(looks, list) and are_growing(looks):
        return tuple(looks)
    problems.append("stop_when_sure: its looks cannot be read, the verdicts do not allow for them")
    return ()


def _extended(value: object, problems: list[str]) -> tuple[int, ...]:
    """Numbers of runs after which a judged campaign was made longer; () if it never was."""
    if value is None:
        return ()
    if isinstance(value, list) and are_growing(value, allow_equal=True):
        return tuple(value)
    problems.append("extended: cannot be read, the verdicts do not allow for earlier looks")
    return ()


def are_growing(looks: list[Any], *, allow_equal: bool = False) -> bool:
    """Whether these are numbers of runs, each larger than the one before (or equal to it)."""
    whole = 0 < len(looks) <= MOST_LOOKS and all(_is_whole(look) for look in looks)
    return whole and looks == sorted(looks if allow_equal else set(looks))
