# SPDX-License-Identifier: GPL-2.0-or-later
"""How a swap is spelled, in both directions, and as a part of a variant's name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import swap, values
from contract.swap import ALGORITHMS, ON_DISK, Swap
from contract.variant import Variant

ALGORITHM = st.none() | st.sampled_from(ALGORITHMS)
SWAPS = st.one_of(
    st.sampled_from([Swap("disk"), Swap("none")]),
    st.builds(Swap, st.just("zram"), st.none() | st.integers(swap.LEAST_SIZE, 1 << 45), ALGORITHM),
    st.builds(Swap, st.just("zram"), st.none(), ALGORITHM, share=st.integers(1, 1000)),
    st.builds(Swap, st.just("zswap"), st.none(), ALGORITHM, pool=st.none() | st.integers(1, 100)),
)


@given(SWAPS)
def test_what_is_spelled_is_read_again(one: Swap) -> None:
    assert swap.read(str(one)) == one
    assert values.LABEL.fullmatch(f"6.12-{one.label}")
    assert one.words and "None" not in one.words


@pytest.mark.parametrize(
    ("text", "spelled", "label"),
    [
        ("disk", "disk", "disk"),
        ("zram", "zram", "zram"),
        ("zram,algorithm=lz4,size=262144k", "zram,size=256M,algorithm=lz4", "zram-256M-lz4"),
        ("zswap,algorithm=lzo,pool=20", "zswap,pool=20,algorithm=lzo", "zswap-pool20-lzo"),
        ("zram,size=100%", "zram,size=100%", "zram-100pc"),
        ("none", "none", "none"),
    ],
)
def test_spellings(text: str, spelled: str, label: str) -> None:
    found = swap.read(text)
    assert (str(found), found.label) == (spelled, label)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a swap: ''"),
        ("tape", "there are disk, zram, zswap, none"),
        ("disk,size=1G", "disk takes nothing"),
        ("none,pool=3", "none takes nothing"),
        ("zram,pool=20", "zram takes size=, algorithm="),
        ("zram,size", "'size' in 'zram,size'"),
        ("zram,size=1M,size=2M", "each once"),
        ("zram,size=4096", "from 1M on"),
        ("zram,size=many", "not a size"),
        ("zram,size=0%", "not a number of 1 or more"),
        ("zram,size=1001%", "at most 1000"),
        ("zram,algorithm=zip", "no such algorithm: 'zip'"),
        ("zswap,pool=0", "not a number of 1 or more"),
        ("zswap,pool=101", "at most 100"),
        ("zswap,size=1G", "zswap takes pool=, algorithm="),
    ],
)
def test_nonsense_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(values.Refused) as caught:
        swap.read(text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = swap.read(text)
    except values.Refused as error:
        assert "\n" not in str(error)
    else:
        assert swap.read(str(found)) == found


def test_a_variant_is_named_by_its_swap_if_that_is_not_the_disk_of_all() -> None:
    plain, zram = Variant("k"), Variant("k", swap=Swap("zram"))
    assert plain.name("6.12", [plain]) == "6.12"
    assert plain.name("6.12", [plain, zram]) == "6.12-disk"
    assert zram.name("6.12", [zram]) == "6.12-zram"
    assert Variant("k", "mine", swap=Swap("zram")).name("6.12", [plain]) == "mine"
    assert plain.swap == ON_DISK and not plain.same_machine(zram)
