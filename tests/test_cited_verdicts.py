# SPDX-License-Identifier: GPL-2.0-or-later
"""Every verdict that a page cites has its file under docs/example."""

import re
from pathlib import Path

import pytest

SUITE = Path(__file__).resolve().parent.parent
# The verdicts on these pages are made up or simulated, to explain them.
EXPLAINING = {"verdicts.md", "verdict-validation.md", "compare-json.md"}
PAGES = [
    SUITE / "README.md",
    *sorted(page for page in (SUITE / "docs").rglob("*.md") if page.name not in EXPLAINING),
]
WORD = r"(?:regressed|improved|equivalent|undecided)"
VERDICT = re.compile(rf"\*\*{WORD}\b|\b{WORD}`?, p = |\bp [=<] 0\.\d|\s{WORD}$")
# 0.55 times (0.35 to 0.83), 1.18 (1.00-1.31)
RATIO = re.compile(r"(\d+\.\d+)(?: times)?,? \((\d+\.\d+)(?: to |-)(\d+\.\d+)")


def passages(text: str) -> list[str]:
    """The text's passages: each begins with a heading, or with a paragraph that begins in bold."""
    return re.split(r"^(?=#+ |\*\*)", text, flags=re.MULTILINE)


def uncited(page: Path, text: str) -> list[str]:
    """The lines with a verdict that has no file, or with a figure that its file lacks."""
    lines = []
    for passage in passages(text):
        links = re.findall(r"\]\(([^)#]*\bexample/[^)#]+\.txt)\)", passage)
        cited = "".join((page.parent / link).read_text() for link in links)
        for line in passage.splitlines():
            figures = [figure for ratio in RATIO.findall(line) for figure in ratio]
            if (VERDICT.search(line) and not links) or (
                links and any(figure not in cited for figure in figures)
            ):
                lines.append(line)
    return lines


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_pages_verdicts_have_their_files(page: Path) -> None:
    assert uncited(page, page.read_text()) == []


def test_there_are_verdicts_with_a_file() -> None:
    texts = [passage for page in PAGES for passage in passages(page.read_text())]
    of_verdicts = [text for text in texts if any(map(VERDICT.search, text.splitlines()))]
    assert len(of_verdicts) >= 8 and all("example/" in text for text in of_verdicts)
    assert sum(len(RATIO.findall(text)) for text in of_verdicts) >= 8


SUMMARY = "[summary](example/laptop-zswap/summary.txt)"


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("# A\nwith zram **improved**, p = 0.0079\n", True),
        ("# A\nwith zram **improved**, p = 0.0079 (no file kept)\n", True),
        (f"# A\n{SUMMARY}: **regressed**, 1.43 times (1.16 to 2.25; p = 0.0079)\n", False),
        (f"# A\n{SUMMARY}: **regressed**, 9.43 times (1.16 to 2.25; p = 0.0079)\n", True),
        (f"# A\n{SUMMARY}\n# B\n6.1.192  5  0  19.3  1.35 (1.31-1.41)  regressed\n", True),
        (f"# A\n{SUMMARY}\n\n**Another**: **equivalent**\n", True),
        ("# A\nno difference is not equivalence\n", False),
    ],
)
def test_what_is_cited_without_its_file_is_found(text: str, bad: bool) -> None:
    assert bool(uncited(SUITE / "docs" / "any.md", text)) == bad
