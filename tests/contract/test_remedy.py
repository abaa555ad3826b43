# SPDX-License-Identifier: GPL-2.0-or-later
"""Remedies: what a file of one says, what a variant becomes by it, what is refused in one line."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import remedy
from contract.plan import variants_of
from contract.swap import Swap
from contract.untrusted import toml_tables
from contract.values import LABEL, Refused
from contract.variant import Variant
from run.arguments import parse
from run.measure_command import guest_command
from run.plans import plan_variants
from run.plans.asked import parse as parse_plan

WHOLE = """
what = "a daemon"
source = "a package"
costs = "a program"
acts = "kills"
desktop = ["apt install it"]
[does]
swap = "zram,size=100%"
append = "a=1  b"
daemon = "killd -v"
knobs = { "/proc/sys/vm/swappiness" = 10 }
slice = { "memory.low" = "50%" }
[needs]
packages = ["killd"]
modules = ["bfq"]
config = ["CONFIG_A|CONFIG_B"]
"""


def of(text: str) -> remedy.Remedy:
    return remedy.parse("one", toml_tables(text))


def test_the_one_that_the_developers_page_shows() -> None:
    page = Path(__file__).parents[2] / "docs" / "developer" / "adding-to-the-suite.md"
    (block,) = re.findall(r"^```toml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert of(block).knobs == (("/proc/sys/vm/swappiness", "10"),)


@pytest.mark.parametrize("name", remedy.named())
def test_those_that_come_with_the_suite(name: str) -> None:
    found = remedy.find(name)
    assert found.desktop and LABEL.fullmatch(f"6.12.118-{name}")
    # It changes something, and what has a daemon has a package to have it from.
    assert found.applied(Variant("debian:6.12")) != Variant("debian:6.12", remedy=name)
    assert bool(found.daemon) == bool(found.packages)
    assert found.acts in (remedy.KILLS, remedy.SWAPS, remedy.ALWAYS)


def test_what_a_file_says_a_variant_gets() -> None:
    found = of(WHOLE)
    assert found.config == ("CONFIG_A|CONFIG_B",)
    got = found.applied(Variant("k", append="c", knobs=(("/proc/sys/vm/swappiness", "60"),)))
    assert got.swap == Swap("zram", share=100)
    assert (got.append, got.daemon, got.slice) == ("c a=1 b", "killd -v", (("memory.low", "50%"),))
    # What was asked for of the variant goes before it.
    assert got.knobs == (("/proc/sys/vm/swappiness", "60"),)
    assert found.applied(Variant("k", swap=Swap("none"))).swap == Swap("none")


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        (('what = "a daemon"', ""), "what: a text is needed"),
        (('acts = "kills"', 'acts = "sometimes"'), "acts: kills, swaps or always"),
        (("[needs]", "[need]"), "the file has no key 'need'"),
        (('swap = "zram,size=100%"', 'swap = "tape"'), "not a swap"),
        (('desktop = ["apt install it"]', "desktop = [1]"), "a list of texts is needed"),
        (('"/proc/sys/vm/swappiness"', '"/etc/passwd"'), "not a knob"),
        (('"memory.low"', '"../memory.low"'), "not a control group's setting"),
        (('"50%"', '"150%"'), "not a control group's setting"),
        (('daemon = "killd -v"', 'daemon = "a\\nb"'), "not a daemon's command line"),
    ],
)
def test_nonsense_is_refused_in_one_line(instead: tuple[str, str], said: str) -> None:
    with pytest.raises(ValueError) as caught:
        of(WHOLE.replace(*instead))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@given(
    st.recursive(
        st.text(max_size=9) | st.integers() | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    ),
    st.sampled_from(["what", "acts", "desktop", "does", "needs", "other"]),
)
def test_any_table_is_a_remedy_or_refused(value: object, key: str) -> None:
    try:
        remedy.parse("one", toml_tables(WHOLE) | {key: value})
    except ValueError as error:
        assert str(error)


def test_each_is_a_variant_beside_the_untreated_one() -> None:
    remedies = ["--remedy", "min-ttl", "--remedy", "zram-full"]
    swaps = ["--swap", "disk", "--swap", "none"]
    asked = parse(["--kernel", "debian:6.12", *remedies, *swaps]).variants
    names = [one.name("6.12", asked) for one in asked]
    assert names == [
        *("6.12-disk", "6.12-disk-min-ttl", "6.12-zram-full"),
        *("6.12-none", "6.12-none-min-ttl"),
    ]
    every = parse(["--remedies"]).variants
    assert [one.remedy for one in every] == ["", *remedy.named()]
    assert [one.name("6.12", every) for one in every[:2]] == ["6.12", f"6.12-{every[1].remedy}"]


@pytest.mark.parametrize("swap", ["disk", "zram", "zswap", "none"])
def test_all_remedies_beside_any_swap_have_names_of_their_own(swap: str) -> None:
    every = parse(["--remedies", "--swap", swap]).variants
    names = [one.name("6.12", every) for one in every]
    assert len(set(names)) == len(names) == 1 + len(remedy.named())


def test_a_remedy_called_like_the_swap_keeps_its_own_swap_in_its_name() -> None:
    asked = parse(["--remedy", "zram", "--remedy", "zram-full", "--swap", "zram"]).variants
    assert [one.name("6.12", asked) for one in asked] == [
        *("6.12-zram", "6.12-zram-50pc-zram", "6.12-zram-full"),
    ]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--remedy", "prayer"], "no remedy 'prayer' (there are bfq, cache-pressure-50,"),
        (["--remedy", "bfq", "--remedy", "bfq"], "a remedy is given twice: bfq"),
        (["--remedy", "bfq", "--remedies"], "leave --remedy out"),
        (["--remedy", "../bfq"], "not a remedy"),
        (["--daemon", "killd"], "--daemon goes with --device"),
        (["--remedy", "bfq", "--label", "a"], "2 variants with the remedies: as many, or none"),
    ],
)
def test_what_cannot_be_is_a_usage_error_in_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    told = capsys.readouterr().err
    assert caught.value.code == 2 and said in told and told.count("\n") == 1


def test_the_guest_is_told_daemon_and_slice_and_a_plan_keeps_them() -> None:
    options = parse(["--kernel", "debian:6.12", "--remedy", "earlyoom", "--remedy", "memory-low"])
    untreated, daemon, low = options.variants
    assert "remedy" not in guest_command(options, untreated)
    assert "--remedy earlyoom --daemon 'earlyoom -r 3600'" in guest_command(options, daemon)
    assert "--remedy memory-low --slice memory.low=50%" in guest_command(options, low)
    kept = [plan_variants.entry_of(one, label, None) for one, label in ((daemon, "a"), (low, "b"))]
    first, second = variants_of(kept, [])
    assert first.same_machine(daemon) and second.same_machine(low)
    # In a plan of a user's the name is enough.
    plan = parse_plan({"variant": [{"kernel": "debian:6.12", "remedy": "earlyoom"}]})
    assert plan.variants[0].same_machine(daemon)
    with pytest.raises(ValueError, match="no remedy 'prayer'"):
        parse_plan({"variant": [{"remedy": "prayer"}]})


def test_a_damaged_file_names_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.toml").write_text("what = ")
    monkeypatch.setattr(remedy, "FOLDER", tmp_path)
    with pytest.raises(Refused, match=r"one\.toml: "):
        remedy.find("one")
