# SPDX-License-Identifier: GPL-2.0-or-later
"""Failed allocations: the kernel's log and the kernel's own count, joined; the file to attach."""

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.figures.echo import echoes
from analysis.figures.failed_allocations import RunFailures, attachment, flag_names, look
from analysis.figures.metrics import measure
from analysis.reading.load import Run, load_campaign
from analysis.text.summary_files import summary
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import line_log, meta, table, write_run
from graphs.allocation_failures import logs_of
from graphs.report import make_report

GFP = {"GFP_ATOMIC": 0x820, "__GFP_HIGH": 0x20, "__GFP_KSWAPD_RECLAIM": 0x800}
GFP |= {"__GFP_NOWARN": 0x2000, "__GFP_COMP": 0x40000, "__GFP_NOMEMALLOC": 0x80000}
ECHO = "__alloc_pages <- __kmalloc_large_node <- kmalloc_reserve <- __alloc_skb <- icmp_push_reply"
POOL = "__alloc_pages <- mempool_alloc <- bio_alloc_bioset <- crypt_map <- __map_bio"
LOGGED = """\
[   14.100000] <4> swapper/1: page allocation failure: order:2, mode:0x820(GFP_ATOMIC)
[   14.100010] <4> CPU: 1 PID: 0 Comm: swapper/1 Not tainted 6.1.0-cloud-amd64 #1
[   14.100020] <4> Call Trace:
[   14.100030] <4>  warn_alloc+0x12c/0x1b0
[   14.100040] <4>  __alloc_pages+0x2f/0x80
[   14.100050] <4>  e1000_alloc_rx_buffers+0x1c/0x2f0
[   14.100060] <4>  ret_from_fork+0x22/0x30
"""
HEAD = "elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack\n"
ROWS = [
    f"1.500\t30\t412\tpython3\t2\t0xc2820\t{ECHO}\n",
    f"2.500\t20\t0\tksoftirqd/0\t2\t0xc2820\t{ECHO}\n",
    f"1.600\t4000\t33\tkworker/0:1\t0\t0x2800\t{POOL}\n",
    "1.700\t3\t0\tswapper/1\t2\t0x820\te1000_alloc_rx_buffers <- e1000_clean\n",
]


def one_run(folder: Path, **files: str | bytes) -> Run:
    """A run with a log, an atomic load, and what is in files."""
    facts: dict[str, Any] = {"evidence": {"gfp_flags": GFP}, "parameters": {"gitk": 1}}
    facts["atomic"] = {"order": 2, "rate": 1000, "checked": "yes", "per_echo": 1.0}
    found: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("6.1", **facts)),
        "latency-gitk-1.log": line_log([(0.5, "pass 1 commits 100")] * 8, 0.1),
        "latency-echo.log": line_log([(2.0, "echo 2000 lost 47 missed 9")], 0.1),
        "kern.log": LOGGED,
        "trace.tsv": table(
            {"elapsed_s": [1, 2, 3], "late_s": [0, 0, 0], "alloc_failures": [0, 1, 4053]}
        ),
        "allocfail.tsv": HEAD + "".join(ROWS),
    }
    found |= files
    write_run(folder / "6.1" / "1", {name: text for name, text in found.items() if text})
    return load_campaign(folder).runs[0]


def test_what_the_log_does_not_show_is_told_by_kind(tmp_path: Path) -> None:
    found = look(one_run(tmp_path))
    assert (found.logged, found.happened, found.unknown, found.echoes_lost) == (1, 4053, 0, 47)
    assert found.problems == []
    kinds = {(one.caller, one.order): one for one in found.silent}
    echo = (
        kinds["kmalloc_reserve", 2] if ("kmalloc_reserve", 2) in kinds else kinds["__alloc_skb", 2]
    )
    assert (echo.count, echo.fall_back) == (50, None)
    assert echo.flags == "GFP_ATOMIC|__GFP_COMP|__GFP_NOMEMALLOC|__GFP_NOWARN"
    pool = kinds["bio_alloc_bioset", 0]
    assert (pool.count, pool.fall_back, pool.flags) == (
        4000,
        "the pool",
        "__GFP_KSWAPD_RECLAIM|__GFP_NOWARN",
    )
    limited = kinds["e1000_alloc_rx_buffers", 2]
    assert (limited.happened, limited.count) == (3, 2)  # one of the three is in the log
    assert found.unlogged == 52  # those of the pool cost nothing
    text = found.words()
    assert text.startswith("1 in the kernel's log, 52 that it does not log: 50 order:2 GFP_ATOMIC|")
    assert "2 order:2 GFP_ATOMIC in e1000_alloc_rx_buffers (the log's rate limit)" in text
    assert "; 4,000 more with a fallback (bio_alloc_bioset: the pool); 47 echo replies lost" in text


@pytest.mark.parametrize(
    ("order", "stack", "instead"),
    [
        # As 7.2 has them, where GFP_NOWAIT holds __GFP_NOWARN.
        (0, "allocate_slab <- kmem_cache_alloc_noprof <- bio_alloc_bioset", "the pool"),
        (5, "alloc_pages_noprof <- crypt_alloc_buffer <- kcryptd_crypt", "single pages"),
        (0, "alloc_pages_noprof <- crypt_alloc_buffer <- kcryptd_crypt", None),
        (6, "folio_alloc_noprof <- __filemap_get_folio_mpol", "a smaller folio"),
    ],
)
def test_who_falls_back_to_what(
    order: int, stack: str, instead: str | None, tmp_path: Path
) -> None:
    rows = HEAD + f"1.5\t7\t9\tgit\t{order}\t0x52800\t__alloc_pages_slowpath <- {stack}\n"
    names = {"GFP_NOWAIT": 0x2800, "__GFP_NOWARN": 0x2000, "__GFP_REST": 0x50000}
    run = one_run(tmp_path, **{"allocfail.tsv": rows})
    run.meta["evidence"] = {"gfp_flags": names}
    (one,) = (each for each in look(run).silent if each.count == 7)
    assert (one.fall_back, one.nowarn, one.flags) == (instead, True, "GFP_NOWAIT|__GFP_REST")


def test_metrics_and_summary_have_them(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    figures = measure(run)
    assert [figures[key] for key in ("allocation", "unlogged", "echo-lost")] == [1, 52, 47]
    said = " ".join(summary(load_campaign(tmp_path)).split())
    assert "allocation page allocation failures: 1 in the kernel's log, 52 that it does not" in said
    assert "echo 2,000 echoes, 47 replies lost, 9 not sent in time; 1 order-2 atomic" in said


def test_the_file_to_attach_has_each_in_full(tmp_path: Path) -> None:
    run = one_run(tmp_path)
    text = "".join(attachment(run, look(run)))
    assert LOGGED.splitlines()[0].split("> ", 1)[1] in text
    for frame in ("__kmalloc_large_node", "icmp_push_reply", "crypt_map"):
        assert f"\n {frame}\n" in text
    assert "     30 at 1.500 s: python3 [412]\n     20 at 2.500 s: ksoftirqd/0 [0]\n" in text
    assert "2 of 3 order:2 mode:0x820(GFP_ATOMIC), in e1000_alloc_rx_buffers" in text
    assert "falls back to the pool" in text


def test_the_report_writes_it_and_follows_no_link(tmp_path: Path) -> None:
    one_run(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    place = tmp_path / "6.1" / "1" / "allocation-failures.log"
    place.symlink_to(outside)
    make_report(load_campaign(tmp_path), tmp_path / "report")
    assert outside.read_text() == "mine" and not place.is_symlink()
    assert place.read_text().startswith("page allocation failures: 1 in the kernel's log, 52")
    assert "52 that it does not" in " ".join(
        (tmp_path / "report" / "index.html").read_text().split()
    )


@pytest.mark.parametrize("name", ["allocfail.tsv", "trace.tsv", "kern.log", "meta.json"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00junk\n\t\t\n1\t2", b"elapsed_s\tcount\n1\tx\n"])
def test_damage_never_raises(tmp_path: Path, name: str, content: bytes) -> None:
    if name == "meta.json" and content:
        content = b'{"format": 1, "evidence": {"gfp_flags": {"a": "b", "c": -1, "": true}}}'
    found = look(one_run(tmp_path, **{name: content}))
    assert found.words()
    if name == "allocfail.tsv":
        assert found.unlogged == 4052 and found.unknown == 4052
    if name == "kern.log" and not content:
        assert found.words().startswith("not available in the kernel's log")


def test_without_evidence_nothing_is_claimed(tmp_path: Path) -> None:
    run = one_run(tmp_path, **{"allocfail.tsv": b"", "trace.tsv": b"", "latency-echo.log": b""})
    found = look(run)
    assert (found.unlogged, found.echoes_lost, echoes(run)) == (None, None, None)
    assert found.words() == "1 in the kernel's log"
    assert measure(run)["unlogged"] is None


@pytest.mark.parametrize("stack", ["", "0xffffffff8112a4b0 <- ffffffff810b0c11"])
def test_without_a_name_in_any_stack_nobody_knows_what_falls_back(
    tmp_path: Path, stack: str
) -> None:
    bare = "".join(row.rpartition("\t")[0] + f"\t{stack}\n" for row in ROWS)
    run = one_run(tmp_path, **{"allocfail.tsv": HEAD + bare})
    found = look(run)
    assert found.unlogged is None and found.happened == 4053
    assert "4,052 that it does not log (no stack has names" in found.words()
    assert measure(run)["unlogged"] is None
    one_named = HEAD + bare + ROWS[0]
    assert look(one_run(tmp_path / "b", **{"allocfail.tsv": one_named})).unlogged is not None


def test_names_of_flags_are_the_kernels_own() -> None:
    assert flag_names(0x820, GFP) == "GFP_ATOMIC"
    assert flag_names(0x20, GFP) == "__GFP_HIGH"
    assert flag_names(0x1, GFP) is None and flag_names(0x820, {}) is None
    assert RunFailures(log=None).words() == "not available in the kernel's log"


def test_echoes_that_are_not_what_they_claim_are_called_so(tmp_path: Path) -> None:
    atomic = {"order": 3, "rate": 9, "checked": "yes", "per_echo": 0.0}
    facts = json.dumps(meta("6.1", atomic=atomic, parameters={"gitk": 1}))
    found = echoes(one_run(tmp_path, **{"meta.json": facts}))
    assert found is not None and "NOT the load that was asked for: 0 order-3" in found.words()


@pytest.mark.parametrize(("order", "fall_back"), [(3, "single pages"), (0, None)])
def test_the_fall_back_of_a_large_order_has_none_of_its_own(
    tmp_path: Path, order: int, fall_back: str | None
) -> None:
    stack = "__alloc_pages <- __page_frag_cache_refill <- __netdev_alloc_skb <- virtnet_poll"
    row = f"1.5\t5000\t0\tksoftirqd/0\t{order}\t0x820\t{stack}\n"
    run = one_run(tmp_path, **{"allocfail.tsv": HEAD + row, "kern.log": "", "trace.tsv": ""})
    found = look(run)
    assert [one.fall_back for one in found.silent] == [fall_back]
    assert found.unlogged == (0 if fall_back else 5000)


def test_failures_without_names_are_in_the_report(tmp_path: Path) -> None:
    rows = "".join(row.rpartition("\t")[0] + "\t0xffffffff8112a4b0\n" for row in ROWS)
    quiet = {"kern.log": "[ 1.0] <6> quiet\n", "latency-echo.log": ""}
    run = one_run(tmp_path, **{"allocfail.tsv": HEAD + rows}, **quiet)
    assert look(run).unlogged is None
    logs = logs_of(compare(load_campaign(tmp_path)))
    assert "4,053 that it does not log (no stack has names" in logs[run.path]


def test_a_machine_s_log_of_before_the_run_is_not_the_run_s(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"accelerator": "none", "t0": 500_000.0, "parameters": {"gitk": 1}}
    lately = LOGGED.replace("[   14.", "[500014.")
    files = {"meta.json": json.dumps(meta("6.1", **facts)), "kern.log": LOGGED + lately}
    run = one_run(tmp_path, **files, **{"allocfail.tsv": "", "trace.tsv": ""})
    found = look(run)
    assert found.logged == 1
    text = "".join(attachment(run, found))
    assert text.count("page allocation failure: order:2") == 1
    booted = {"meta.json": json.dumps(meta("6.1", **{**facts, "accelerator": "tcg"}))}
    run = one_run(tmp_path / "vm", **{**files, **booted, "allocfail.tsv": "", "trace.tsv": ""})
    assert look(run).logged == 2
