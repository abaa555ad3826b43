# SPDX-License-Identifier: GPL-2.0-or-later
"""The examples of README, tutorial and guides work, and their output is that of real runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from errors import Exit

SUITE = Path(__file__).resolve().parent.parent
README = (SUITE / "README.md").read_text()
DOCS = SUITE / "docs"
EXAMPLE = DOCS / "example"
# Without other READMEs, such as those in tests/.
DOCUMENTS = [SUITE / "README.md", *sorted(DOCS.rglob("*.md"))]
WITH_EXAMPLES = [SUITE / "README.md", DOCS / "tutorial.md", *sorted((DOCS / "guides").glob("*.md"))]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


EXAMPLES = commands(SUITE / "README.md")
ALL_EXAMPLES = list(dict.fromkeys(line for page in WITH_EXAMPLES for line in commands(page)))
# These name things that our machines lack, or some of them: then this error is expected.
NAMED_ONLY = {
    "--device": ("/dev/sdX5: No such file", Exit.MISSING),
    "host": ("the running kernel's image", Exit.MISSING),
    "git:~/linux@HEAD": ("no such folder: 'git:", Exit.USAGE),
    "git:~/linux@v7.2": ("no such folder: 'git:", Exit.USAGE),
    "--on": (" here (install it)", Exit.MISSING),
    "--bisect": ("--dry-run does not go with a bisect", Exit.USAGE),
    "--bisect-hunks": ("--dry-run does not go with a bisect", Exit.USAGE),
}
# Tested by themselves, or by tests/hosts.
RUN_ELSEWHERE = ("tests/run.sh", "./container.sh")
SYSTEMS_OWN = ("mkdir", "cp", "systemctl", "loginctl")


@pytest.mark.parametrize(
    "line", [line for line in ALL_EXAMPLES if line.split()[0] not in SYSTEMS_OWN]
)
def test_examples(line: str) -> None:
    words = shlex.split(line)
    if words[0] == "sudo":
        del words[0]
    if "|" in words:  # what comes before it is the system's
        words = words[words.index("|") + 1 :]
    program = words[0]
    if program == "./run_test.sh":
        words += [] if "--dry-run" in words else ["--dry-run"]
    elif program in RUN_ELSEWHERE:
        words = ["test", "-x", program]
    elif program == "python3":
        words = [sys.executable, *words[1:3], "--help"]
    elif program == "./nightly.sh":
        words = [program, "--help"]
    done = subprocess.run(words, cwd=SUITE, capture_output=True, text=True)
    for word, (text, status) in NAMED_ONLY.items():
        if word in words and text in done.stderr:
            assert done.returncode == status and done.stderr.count("\n") == 1
            return
    assert done.returncode == 0, done.stderr
    if program == "./latency_output.py":
        return
    assert done.stdout or program in RUN_ELSEWHERE


def test_there_are_examples_of_each_kind() -> None:
    text = "\n".join(EXAMPLES)
    for part in (
        "--kernel debian:",
        "--device",
        "--profile quick",
        "latency_output.py",
        "tests/run",
    ):
        assert part in text


QUOTED = {
    "README.md": ["laptop-six-kernels/summary.txt"],
    "findings/atomic-allocations.md": [],  # no file was kept: the output is quoted from the page
    "tutorial.md": ["laptop/summary.txt", "laptop-two-kernels/summary.txt"],
    "guides/ci-nightly.md": ["laptop-trend/trend.txt"],
    "guides/report-upstream.md": ["laptop-six-kernels/mail.txt"],
}


def outputs(text: str) -> list[str]:
    """The code blocks without a language, which are output of commands."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for language, block in fenced if not language]


@pytest.mark.parametrize("name", [name for name in QUOTED if QUOTED[name]])
def test_the_output_shown_is_a_real_runs(name: str) -> None:
    page = SUITE / name if name == "README.md" else DOCS / name
    blocks = outputs(page.read_text())
    for block, source in zip(blocks, QUOTED[name], strict=True):
        pieces = [piece.strip("\n") for piece in re.split(r"^…$", block, flags=re.MULTILINE)]
        assert all(piece in (EXAMPLE / source).read_text() for piece in pieces), source


def test_each_page_with_output_says_whose_it_is() -> None:
    pages = [*WITH_EXAMPLES, *(DOCS / "findings").glob("*.md")]
    names = {str(page.relative_to(SUITE)).removeprefix("docs/") for page in pages}
    with_output = {
        name
        for name in names
        if outputs((SUITE / name if name == "README.md" else DOCS / name).read_text())
    }
    assert with_output == QUOTED.keys()


def test_the_outputs_of_the_tutorial_are_whole() -> None:
    """The tutorial shows the complete output."""
    text = (DOCS / "tutorial.md").read_text()
    for source in QUOTED["tutorial.md"]:
        assert f"\n```\n{(EXAMPLE / source).read_text()}```\n" in text, source


def test_no_warning_of_a_summary_that_is_quoted_is_left_out() -> None:
    """Legends, and notes about what a kernel cannot record, are not warnings."""
    legends = ("Causes of ", "A verdict needs ", "Each run: ", "Exploratory: ", "every line would ")
    quoted = 0
    for page in WITH_EXAMPLES:
        text = page.read_text()
        for path in re.findall(r"\]\(([^)]*\bexample/[^)]*summary[^)]*\.txt)\)", text):
            quoted += 1
            summary = (page.parent / path).read_text()
            notes = re.findall(r"^(?:- |with care +).*\n(?:  .*\n)*", summary, re.MULTILINE)
            assert len(notes) > 0, path
            for note in notes:
                assert note in text or note[2:].startswith(legends), f"{path}: {note}"
    assert quoted >= 2


def test_every_example_is_linked_from_a_page() -> None:
    linked = {
        (page.parent / target).resolve()
        for page in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
    }
    files = [path for path in EXAMPLE.rglob("*") if path.is_file() and path.suffix != ".md"]
    assert len(files) > 20
    assert [path for path in files if path not in linked] == []


def test_it_is_read_to_its_end() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(SUITE)))
def test_pictures_and_links_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
            assert anchor in slugs, target


def test_the_documents_name_files_that_are_there() -> None:
    named = 0
    for document in DOCUMENTS:
        for path in re.findall(
            r"(?<![\w/.-])[a-z_]+(?:/[a-z_]+)+\.(?:py|sh|toml)\b", document.read_text()
        ):
            named += 1
            places = (SUITE / path, document.parent / path)
            assert any(place.is_file() for place in places), f"{document.name}: {path}"
    assert named > 30


def test_the_code_names_pages_that_are_there() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=SUITE, capture_output=True, text=True).stdout
    named = 0
    for name in tracked.split():
        if not name.endswith((".md", ".txt", ".png", ".json")) and "golden" not in name:
            text = (SUITE / name).read_text(errors="replace") if (SUITE / name).is_file() else ""
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text):
                named += 1
                assert (SUITE / page).is_file(), (name, page)
    assert named > 50


def test_the_architecture_page_has_all_packages() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=SUITE, capture_output=True, text=True).stdout
    python = [path for path in tracked.split() if path.endswith(".py") and "/" in path]
    packages = {path.split("/")[0] for path in python}
    page = (SUITE / "docs" / "developer" / "architecture.md").read_text()
    assert len(packages) > 10
    for package in packages:
        assert re.search(rf"^\|[^|]*`{package}/`", page, re.MULTILINE), package
