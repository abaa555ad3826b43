# SPDX-License-Identifier: GPL-2.0-or-later
"""contract.untrusted: whatever the bytes, a value within the bounds or one line, in linear time."""

import time
import tomllib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import machine_model
from contract.plan import parse_plan
from contract.untrusted import DEEPEST, MOST_PARTS, json_object, toml_tables
from graphs.redaction import result_files
from tests.test_one_way import SUITE, imports, modules

DOTTED = {
    "key": "a" + ".a" * 40_000 + " = 1\n",
    "table": "[a" + ".a" * 40_000 + "]\n",
    "array of tables": "[[a" + " . a" * 40_000 + "]]\n",
    "quoted": '"a"' + ".'a'" * 40_000 + " = 1\n",
    "inline": "x = {" + "a." * 40_000 + "a = 1}\n",
    "behind a text": 'x = """\n"""\n' + "a." * 40_000 + "a = 1\n",
}


def steps(work: Callable[[], object]) -> float:
    """Seconds of this process's CPU time."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def read(text: str) -> str:
    """What it is refused for; empty if it is read."""
    try:
        toml_tables(text)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("text", DOTTED.values(), ids=DOTTED)
def test_a_key_of_many_parts_is_refused_before_it_is_parsed(text: str, tmp_path: Path) -> None:
    tracemalloc.start()
    assert "more than 32" in read(text)
    plan, problems = parse_plan(text.encode())
    assert plan.tables == {} and len(problems) == 1 and "\n" not in problems[0]
    machine = tmp_path / "m.toml"
    machine.write_text(text)
    with pytest.raises(ValueError, match="has a key of"):
        machine_model.read(str(machine))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000  # parsed, it is 6 GB


def test_nobody_else_parses_toml_or_nested_json_that_may_be_a_strangers() -> None:
    of_ours = {"setup.history", "contract.untrusted"}
    assert {name for name in modules() if "tomllib" in imports(name)} == of_ours
    readers = [name for name in modules() if name.startswith(("analysis.", "contract."))]
    parsing = {n for n in readers if "json.loads" in modules()[n].read_text()}
    assert parsing == {"contract.untrusted"}
    assert SUITE.is_dir() and result_files.__name__ in modules()


ALLOWED = {
    "dots in a text": 'x = "' + "a." * 1000 + '"',
    "dots in a literal": "x = '" + "a." * 1000 + "'",
    "dots in a comment": "x = 1 # " + "a." * 1000,
    "dots in lines": 'x = """\n' + "a.b\\\n.c\n" * 1000 + '"a.' + '."a' * 50 + '"""',
    "dots in literal lines": "x = '''\n" + '"a."' * 1000 + "'''",
    "numbers": "x = [" + "1.5," * 1000 + "]",
    "parts": "a" + ".a" * (MOST_PARTS - 1) + " = 1" if MOST_PARTS < DEEPEST else "a.b = 1",
}


@pytest.mark.parametrize("text", ALLOWED.values(), ids=ALLOWED)
def test_what_is_no_long_key_is_read_as_by_tomllib(text: str) -> None:
    assert toml_tables(text) == tomllib.loads(text)


TEDIOUS = {
    "never ended": 'x = """' + '\\"""' * 1000,
    "escaped quotes": 'x = "' + '\\"' * 1000,
    "quotes": '"' * 1001,
    "apostrophes": "'" * 1001,
    "blanks": "a" + " " * 1000,
    "backslashes": '"""\\' * 1000,
}


@pytest.mark.parametrize("text", TEDIOUS.values(), ids=TEDIOUS)
def test_time_grows_with_the_text_and_not_with_its_square(text: str) -> None:
    small, large = text * 10, text * 160
    spent = min(steps(lambda: read(small)) for _ in range(3))
    assert steps(lambda: read(large)) < 100 * max(spent, 0.001)


@pytest.mark.parametrize(
    "text",
    [
        "a = 0x" + "f" * 5000,
        "a = " + "[" * 100_000,
        "a = " + "[" * 50 + "]" * 50,
        "a = " + "{b = " * 100_000,
        "x" * (2 << 20),
    ],
)
def test_what_a_walk_or_a_print_would_fail_at_is_refused(text: str) -> None:
    assert read(text) and "\n" not in read(text)


def test_an_object_is_read_as_deep_as_it_may_be() -> None:
    def nested(deep: int) -> str:
        return '{"a": ' + "[" * (deep - 1) + "]" * (deep - 1) + "}"

    assert json_object(nested(DEEPEST)) is not None
    for deep in (DEEPEST + 1, 900, 100_000):
        assert json_object(nested(deep)) is None
    assert json_object('{"a": NaN}') == {"a": None}
    assert json_object("[]") is None and json_object('{"a": ' + "9" * 5000 + "}") is None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    json_object(data)
    parse_plan(data)
