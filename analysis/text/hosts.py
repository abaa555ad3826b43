# SPDX-License-Identifier: GPL-2.0-or-later
"""Which host did which run, and whether a host's runs differ from the others'."""

from collections.abc import Callable, Iterator, Mapping

from analysis.figures.by_host import HostFigures, by_host
from analysis.reading.load import Campaign
from analysis.reading.words import safe_line
from analysis.text.layout import grid, paragraph

LEGEND = (
    "Mean: of the runs' figures, each divided by its variant's mean over all hosts, with the "
    "standard error. On the guest's clock it is 1 but for the scatter of the runs."
)


def section(
    campaign: Campaign, labels: Mapping[str, str], width: int, *, named: bool = True
) -> Iterator[str]:
    """A row for each host; nothing if all runs were done on one machine.

    named: False where others may read the text: it then has "host 1", … instead of hosts' names.
    """
    figures = by_host(campaign)
    if not figures:
        return
    names = names_of(figures, named=named)
    rows = [("host", "runs", "mean")]
    rows += [
        (name, str(len(host.runs)), mean(host)) for name, host in zip(names, figures, strict=True)
    ]
    yield from grid(rows, width)
    for name, host in zip(names, figures, strict=True):
        yield from paragraph(f"{name}: {runs_of(host, lambda variant: labels[variant])}", "  ")
    for name, host in zip(names, figures, strict=True):
        if host.is_far:
            yield from paragraph(f"WARNING: {far(name)}", "  ")
    yield from paragraph(LEGEND)


def names_of(found: list[HostFigures], *, named: bool = True) -> list[str]:
    """The names that the text gives the hosts."""
    if named:
        return [safe_line(host.host, 40) for host in found]
    return [f"host {number}" for number in range(1, len(found) + 1)]


def mean(one: HostFigures) -> str:
    """'1.03 ±0.05': a ratio and its standard error; '-' if no figure is known."""
    if one.ratio is None:
        return "-"
    return f"{one.ratio:.2f}" + ("" if one.error is None else f" ±{one.error:.2f}")


def runs_of(one: HostFigures, label: Callable[[str], str]) -> str:
    """The numbers of the host's runs by variant: '6.12 1, 3; 7.2 2'."""
    by_variant: dict[str, list[int]] = {}
    for variant, number in one.runs:
        by_variant.setdefault(variant, []).append(number)
    return "; ".join(
        f"{safe_line(label(variant), 40)} {', '.join(map(str, sorted(numbers)))}"
        for variant, numbers in by_variant.items()
    )


def far(name: str) -> str:
    """The warning about a host whose runs differ from the others'."""
    return f"the runs of {name} differ from all hosts' by more than 3 standard errors"
