# SPDX-License-Identifier: GPL-2.0-or-later
"""The README's examples run, and its output is a real run's own."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from errors import Exit

SUITE = Path(__file__).resolve().parent.parent
README = (SUITE / "README.md").read_text()
EXAMPLES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
# What they name is on no machine of ours, or not on all: then that is what is said.
NAMED_ONLY = {"--device": "/dev/sdX5: No such file", "host": "the running kernel's image"}
# Of themselves, and by tests/hosts.
RUN_ELSEWHERE = ("tests/run.sh", "./container.sh")


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples(line: str) -> None:
    words = shlex.split(line)
    if words[0] == "sudo":
        del words[0]
    program = words[0]
    if program == "./run_test.sh":
        words += [] if "--dry-run" in words else ["--dry-run"]
    elif program in RUN_ELSEWHERE:
        words = ["test", "-x", program]
    elif program == "python3":
        words = [sys.executable, *words[1:3], "--help"]
    done = subprocess.run(words, cwd=SUITE, capture_output=True, text=True)
    missing = [said for word, said in NAMED_ONLY.items() if word in words and said in done.stderr]
    if missing:
        assert done.returncode == Exit.MISSING and done.stderr.count("\n") == 1
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


def test_the_output_shown_is_a_real_runs() -> None:
    examples = SUITE / "docs" / "example"
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    blocks = [text for language, text in fenced if not language]
    assert len(blocks) == 3
    sources = (
        examples / "laptop" / "summary.txt",
        examples / "laptop-six-kernels" / "summary.txt",
        examples / "laptop" / "causes.txt",
    )
    for block, source in zip(blocks, sources, strict=True):
        pieces = [piece.strip("\n") for piece in re.split(r"^…$", block, flags=re.MULTILINE)]
        assert all(piece in source.read_text() for piece in pieces), source


def test_the_mail_shown_is_a_real_campaigns() -> None:
    text = (SUITE / "docs" / "BUNDLE.md").read_text()
    shown = (SUITE / "docs" / "example" / "laptop-six-kernels" / "mail.txt").read_text()
    assert f"\n```\n{shown}```\n" in text


def test_no_warning_of_a_summary_that_is_quoted_is_left_out() -> None:
    """What a kernel cannot record, and legends, are no warnings."""
    legends = ("Causes of ", "A verdict needs ", "Each run: ", "Exploratory: ", "every line would ")
    quoted = re.findall(r"\]\((docs/example/[^)]*summary[^)]*\.txt)\)", README)
    assert len(quoted) >= 2
    for path in quoted:
        summary = (SUITE / path).read_text()
        notes = re.findall(r"^(?:- |with care +).*\n(?:  .*\n)*", summary, re.MULTILINE)
        assert len(notes) > 0, path
        for note in notes:
            assert note in README or note[2:].startswith(legends), f"{path}: {note}"


def test_every_example_is_linked_from_a_page() -> None:
    examples = SUITE / "docs" / "example"
    pages = [SUITE / "README.md", *sorted((SUITE / "docs").rglob("*.md"))]
    linked = {
        (page.parent / target).resolve()
        for page in pages
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())
    }
    files = [path for path in examples.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if path not in linked] == []


def test_it_is_read_to_its_end() -> None:
    assert len(README.splitlines()) <= 180


def test_the_examples_of_a_noisy_machine_are_real_runs() -> None:
    text = (SUITE / "docs" / "EXAMPLES.md").read_text()
    examples = SUITE / "docs" / "example"
    assert f"\n```\n{(examples / 'summary.txt').read_text()}```\n" in text
    assert f"\n```\n{(examples / 'quick' / 'summary.txt').read_text()}```\n" in text
    assert f"\n```\n{(examples / 'causes.txt').read_text().rstrip()}\n```\n" in text
    for name in ("standard", "mglru", "twice"):
        summary = (examples / name / "summary.txt").read_text()
        head = re.split(r"^variant +run  ended", summary, maxsplit=1, flags=re.MULTILINE)[0]
        assert head != summary and f"\n```\n{head.rstrip()}\n```\n" in text, name


def test_pictures_and_links_are_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(targets) >= 4
    for target in targets:
        assert (SUITE / target).exists(), target


def test_the_documents_name_files_that_are_there() -> None:
    named = 0
    for document in [SUITE / "README.md", *sorted((SUITE / "docs").rglob("*.md"))]:
        for path in re.findall(
            r"(?<![\w/.-])[a-z_]+(?:/[a-z_]+)+\.(?:py|sh|toml)\b", document.read_text()
        ):
            named += 1
            places = (SUITE / path, document.parent / path)
            assert any(place.is_file() for place in places), f"{document.name}: {path}"
    assert named > 30


def test_the_house_has_no_room_that_the_documents_leave_out() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=SUITE, capture_output=True, text=True).stdout
    rooms = {path.split("/")[0] for path in tracked.split() if path.endswith(".py") and "/" in path}
    house = (SUITE / "docs" / "developer" / "architecture.md").read_text()
    assert len(rooms) > 10
    for room in rooms:
        assert re.search(rf"^\|[^|]*`{room}/`", house, re.MULTILINE), room
        assert re.search(rf"^\|[^|]*`{room}/`", README, re.MULTILINE), room
