# SPDX-License-Identifier: GPL-2.0-or-later
"""Every table says a change in one way: a raw ratio, and a word. No sign, no per cent of change."""

import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.text import compare_text, vmstat
from analysis.text import trend as trend_text
from analysis.text.summary_files import summary
from analysis.trends.trend import find_trend
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.regression import Regression, regression
from graphs.bug_report.mail import mail
from graphs.bug_report.report import Contents, build
from graphs.page import page
from tests.support.counters import vmstat as counters
from tests.support.verdicts import stalling_run
from tests.support.workloads import figures_of, workload_run

# +12 %, -3.4, +1.00: but no range (0.61-0.72), no option (-cpu), no exponent (1e-05).
SIGNED = re.compile(r"(?<![\w.)])[+\u2212-]\d")
CHANGE = re.compile(r"([\d,.]+)x (worse|better)")
OLD, NEW = "6.12.1", "7.2.3"


def desktop(folder: Path, worse: bool) -> Path:
    """Five runs of each of two kernels, the newer one twice as long, or half as long, stalled."""
    times = {OLD: 30.0, NEW: 60.0} if worse else {OLD: 60.0, NEW: 30.0}
    for label, stalled in times.items():
        for n in range(1, 6):
            run = stalling_run(folder / label / str(n), stalled + n)
            grown = {"pswpin": stalled * 1000 + n, "allocstall_normal": 90_000 / stalled + n}
            (run / "vmstat.tsv").write_text(counters(grown))
    return folder


def load(folder: Path, worse: bool) -> Path:
    """The same of a load with a figure of which more is better, and one of which less is."""
    times = {OLD: 40.0, NEW: 80.0} if worse else {OLD: 80.0, NEW: 40.0}
    for label, inside in times.items():
        for n in range(1, 6):
            workload_run(folder / label / str(n), figures_of(inside + n))
    return folder


@pytest.fixture(params=[(make, worse) for make in (desktop, load) for worse in (True, False)])
def compared(request: pytest.FixtureRequest, tmp_path: Path) -> Compared:
    make, worse = request.param
    return compare(load_campaign(make(tmp_path, worse)))


class Cells(HTMLParser):
    """The texts of a page's cells, row by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        self._open = self._open or tag in ("td", "th")
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def texts(compared: Compared, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """What people read, line by line."""
    yield "compare.txt", compare_text.text(compared).splitlines()
    yield "summary.txt", summary(compared.campaign, compared).splitlines()
    contents = Contents(frozenset(), len(compared.campaign.runs))
    yield "report.txt", build(compared, contents, lambda text: text).splitlines()
    found = regression(compared)
    if isinstance(found, Regression):
        yield "mail.txt", mail(found).text.splitlines()
    yield "trend.txt", trend_text.text(find_trend(compared.campaign)).splitlines()
    rows = Cells(page.write(compared, folder / "index.html").read_text()).rows
    yield "index.html", [" | ".join(" ".join(cell.split()) for cell in row) for row in rows]


def test_a_change_is_a_raw_ratio_and_a_word(compared: Compared, tmp_path: Path) -> None:
    names = {one.name: one for one in compared.metrics}
    names |= {one.title: one for one in compared.metrics}
    told = dict(texts(compared, tmp_path))
    assert ("mail.txt" in told) == (compared.primary[NEW].verdict == "regressed")
    seen = 0
    for file, lines in told.items():
        for line in lines:
            assert not SIGNED.search(line), f"{file}: {line}"
            for ratio, word in CHANGE.findall(line):
                known = [name for name in names if line.startswith(name)]
                if not known:
                    continue
                more = float(ratio.replace(",", "")) > 1
                is_worse = more == (names[max(known, key=len)].better == "lower")
                assert is_worse == (word == "worse"), f"{file}: {line}"
                seen += 1
    assert seen >= 4


def test_a_counter_is_neither_better_nor_worse(tmp_path: Path) -> None:
    compared = compare(load_campaign(desktop(tmp_path, worse=True)))
    rows: Sequence[Sequence[str]] = vmstat.table_rows(compared, NEW)
    ratios = {row[0]: row[3] for row in rows[1:]}
    # The means of 60,003 and 30,003; of 1,503 and 3,003.
    assert ratios == {"pswpin": "2.00", "allocstall_normal": "0.50"}
