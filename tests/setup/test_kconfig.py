# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel configs: the fragment has all that is needed; what is lacking is named."""

import gzip
from pathlib import Path

import pytest

from contract import remedy
from contract.swap import read
from contract.variant import Variant
from errors import Exit, UserError
from setup import kconfig
from setup.kernels import Kernel

FILE_SYSTEMS = ["ext2", "ext3", "ext4", "xfs"]


def without(*beginnings: str) -> str:
    """The fragment without the options whose names begin so."""
    lines = kconfig.FRAGMENT.read_text().splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(beginnings))


def kernel_with(config: Path | None, modules: Path | None) -> Kernel:
    return Kernel("x", "x", "6.1.0", Path("x"), modules, config, "0", "0")


@pytest.mark.parametrize("crypt", [False, True])
@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_the_fragment_has_all_built_in(fs: str, crypt: bool) -> None:
    assert kconfig.missing(kconfig.FRAGMENT, fs, crypt, no_modules=True) == []
    assert kconfig.recommended(kconfig.FRAGMENT) == []


def test_every_option_that_is_needed_is_missed(tmp_path: Path) -> None:
    text = kconfig.FRAGMENT.read_text()
    for group in kconfig.REQUIRED + kconfig.CRYPT:
        config = tmp_path / "config"
        lines = text.splitlines()
        config.write_text(
            "\n".join(line for line in lines if line.partition("=")[0] not in group.split("|"))
        )
        assert kconfig.missing(config, "ext4", True) == [group]


def test_without_dm_crypt(tmp_path: Path) -> None:
    config = tmp_path / "config"
    text = kconfig.FRAGMENT.read_text()
    config.write_text(text.replace("CONFIG_DM_CRYPT=y", "# CONFIG_DM_CRYPT is not set"))
    with pytest.raises(UserError, match=r"kernel 6\.1\.0 lacks: CONFIG_DM_CRYPT \(") as error:
        kconfig.check(kernel_with(config, tmp_path), "ext4", True)
    assert error.value.status is Exit.MISSING
    kconfig.check(kernel_with(config, tmp_path), "ext4", False)


def test_a_module_counts_only_where_there_are_modules(tmp_path: Path) -> None:
    config = tmp_path / "config.gz"
    text = kconfig.FRAGMENT.read_text().replace("CONFIG_DM_CRYPT=y", "CONFIG_DM_CRYPT=m")
    config.write_bytes(gzip.compress(text.encode()))
    kconfig.check(kernel_with(config, tmp_path), "ext4", True)
    with pytest.raises(UserError, match=r"lacks built in .*: CONFIG_DM_CRYPT "):
        kconfig.check(kernel_with(config, None), "ext4", True)
    kconfig.check(kernel_with(None, None), "ext4", True)


def test_a_file_that_is_no_config(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(UserError, match="cannot read the kernel config"):
        kconfig.read(config)
    config.write_text("nothing\n")
    with pytest.raises(UserError, match="is not a kernel config"):
        kconfig.read(config)


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("zram", "CONFIG_ZRAM"),
        ("zswap", "CONFIG_ZSWAP"),
        ("zram,algorithm=lzo-rle", "CONFIG_ZRAM_BACKEND_LZO"),
        ("zswap,algorithm=lz4", "CONFIG_CRYPTO_LZ4"),
    ],
)
def test_a_swap_that_a_kernel_cannot_do_is_named(tmp_path: Path, text: str, option: str) -> None:
    config, asked = tmp_path / "config", read(text)
    config.write_text(without(f"{option}="))
    kconfig.check(kernel_with(config, tmp_path), "ext4", True)
    with pytest.raises(UserError, match=f"lacks, for --swap {text}: {option} ") as error:
        kconfig.check(kernel_with(config, tmp_path), "ext4", True, asked)
    assert error.value.status is Exit.MISSING
    assert error.value.hint.startswith("another --swap, or a kernel with it: merge ")
    config.write_text(without(f"{option}=", "CONFIG_PCI="))
    with pytest.raises(UserError, match=rf"lacks: CONFIG_PCI, for .*: {option} \(merge "):
        kconfig.check(kernel_with(config, tmp_path), "ext4", True, asked)


@pytest.mark.parametrize("algorithm", ["lzo", "lzo-rle", "lz4", "zstd"])
@pytest.mark.parametrize("kind", ["zram", "zswap"])
def test_the_fragment_has_the_algorithms_before_6_12_and_since(
    tmp_path: Path, kind: str, algorithm: str
) -> None:
    asked, older = read(f"{kind},algorithm={algorithm}"), tmp_path / "config"
    assert kconfig.missing(kconfig.FRAGMENT, "ext4", True, asked, no_modules=True) == []
    older.write_text(without(kconfig.BACKEND))
    assert kconfig.missing(older, "ext4", True, asked, no_modules=True) == []


def test_what_a_workload_needs_is_named_with_it(tmp_path: Path) -> None:
    config = tmp_path / "config"
    kernel = kernel_with(config, tmp_path)

    def refused(*left_out: str) -> str:
        config.write_text(without(*left_out))
        needs = ("CONFIG_MEMCG", "CONFIG_CGROUPS")
        with pytest.raises(UserError) as caught:
            kconfig.check(kernel, "ext4", True, read("zram"), workload="w", needs=needs)
        return str(caught.value).replace(kconfig.MERGE, "merge")

    of_it = "for --workload w: CONFIG_MEMCG"
    assert refused("CONFIG_MEMCG") == (
        f"kernel 6.1.0 lacks, {of_it} (another --workload, or a kernel with it: merge)"
    )
    assert refused("CONFIG_MEMCG", "CONFIG_ZRAM=") == (
        f"kernel 6.1.0 lacks, for --swap zram: CONFIG_ZRAM, {of_it}"
        " (another --swap and --workload, or a kernel with it: merge)"
    )
    assert refused("CONFIG_MEMCG", "CONFIG_PCI=") == (
        f"kernel 6.1.0 lacks: CONFIG_PCI, {of_it} (merge)"
    )
    kconfig.check(kernel_with(None, None), "ext4", True, workload="w", needs=("CONFIG_MEMCG",))


def test_a_swap_is_a_variant_s_and_not_recommended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config"
    config.write_text(without("CONFIG_ZSWAP="))
    kernel = kernel_with(config, tmp_path)
    monkeypatch.setattr("setup.kernels.resolve", lambda spec, mirror: kernel)
    monkeypatch.setattr("sys.argv", ["setup.kconfig", "x"])
    assert kconfig.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        f"x: {config} has all that is needed; recommended and lacking: nothing",
        "x: it cannot do --swap zswap, which needs CONFIG_ZSWAP",
    ]
    assert kconfig.swaps_lacking(kconfig.FRAGMENT) == {}


def test_the_algorithm_of_a_kernel_s_own_choice(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("CONFIG_ZRAM=m\n")
    assert kconfig.compressor(config, read("zram")) == "lzo-rle"
    assert kconfig.compressor(None, read("zswap")) == "lzo"
    assert kconfig.compressor(None, read("zswap,algorithm=zstd")) == "zstd"
    assert kconfig.compressor(config, read("disk")) == kconfig.compressor(None, read("none")) == ""
    assert not kconfig.has_backends(config)
    config.write_text(without("CONFIG_ZRAM_BACKEND_ZSTD") + 'CONFIG_ZRAM_DEF_COMP="lz4"\n')
    assert kconfig.compressor(config, read("zram")) == "lz4"
    assert kconfig.has_backends(config)
    kconfig.check(kernel_with(config, tmp_path), "ext4", True, read("zram,algorithm=lz4"))
    with pytest.raises(UserError, match="CONFIG_ZRAM_BACKEND_ZSTD"):
        kconfig.check(kernel_with(config, tmp_path), "ext4", True, read("zram,algorithm=zstd"))


def test_a_kernel_that_guesses_its_stacks_is_known(tmp_path: Path) -> None:
    assert not kconfig.guesses_stacks(kconfig.FRAGMENT)
    config = tmp_path / "config"
    config.write_text("# CONFIG_UNWINDER_ORC is not set\nCONFIG_UNWINDER_GUESS=y\n")
    assert kconfig.guesses_stacks(config)
    assert "CONFIG_UNWINDER_ORC|CONFIG_UNWINDER_FRAME_POINTER" in kconfig.recommended(config)


def test_a_remedy_that_a_kernel_cannot_have_is_known_by_its_config(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(without("CONFIG_LRU_GEN", "CONFIG_ZSWAP"))
    kernel = kernel_with(config, tmp_path)

    def lacks(name: str) -> str:
        return kconfig.remedy_lacks(kernel, remedy.find(name).applied(Variant("x")))

    assert lacks("min-ttl") == "CONFIG_LRU_GEN"
    assert lacks("zswap") == "CONFIG_ZSWAP"
    assert lacks("swappiness-10") == ""
    assert kconfig.remedy_lacks(kernel, Variant("x")) == ""
    # Nothing is known of a kernel without a config.
    assert kconfig.remedy_lacks(kernel_with(None, None), Variant("x", remedy="zswap")) == ""
