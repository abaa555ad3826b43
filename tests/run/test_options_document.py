# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/reference/options.md is what the option table says."""

from pathlib import Path

from contract.command_line import build_parser
from contract.option_table import ROWS
from contract.options import flag
from run.plans import options_document

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "options.md"


def test_the_page_is_made_from_the_table() -> None:
    made = "\n".join(options_document.page()) + "\n"
    assert PAGE.read_text() == made, (
        "python3 -m run.plans.options_document > docs/reference/options.md"
    )


def test_each_option_is_on_it_once() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("- `--")]
    named = [line.removeprefix("- `").split("`")[0].split(" ")[0] for line in lines]
    assert len(named) == len({*named}) > len(ROWS)
    assert {flag(name) for name in ROWS} <= {*named}
    known = {word for action in build_parser()._actions for word in action.option_strings}
    assert {word for word in known if word.startswith("--")} - {"--help"} <= {*named}
