# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: reduces a real run to the evidence of one gitk, for a golden file of the tests.

usage: python3 -m tests.pack_run RUN GOLDEN.tar.xz

It keeps the gitk with the most stalled seconds: its latency log and rows, the rows of tasks without
a stream, the kernel's sums and first MOST_FAILURES failed allocations, and the counters and facts
of the machine that a card needs.
"""

import io
import json
import sys
import tarfile
from pathlib import Path

from analysis.figures.stalls import stalls
from analysis.reading.load import load_campaign

COUNTERS = {
    "vmstat.tsv": ("elapsed_s", "late_s", "pswpin", "pswpout", "pgpgin", "pgpgout"),
    "diskstats.tsv": (
        *("elapsed_s", "late_s", "disk_read_sectors", "disk_write_sectors"),
        *("disk_io_ms", "crypt_io_ms"),
    ),
}
WHOLE = ("trace.tsv", "reclaim.tsv", "status.json")
MOST_FAILURES = 1000  # rows
OF_STREAM = ("tasks.tsv", "blocked.tsv")
FACTS = ("format", "label", "kernel", "t0", "crypt", "evidence", "observers")


def packed(folder: Path) -> dict[str, bytes]:
    """The files of the golden run."""
    run = load_campaign(folder).runs[0]
    stream = max(run.subjects, key=lambda gitk: sum(stall.length for stall in stalls(gitk))).name
    files = {
        f"latency-{stream}.log": (folder / f"latency-{stream}.log").read_bytes(),
        "meta.json": json.dumps({k: run.meta[k] for k in FACTS if k in run.meta}).encode(),
        "events.jsonl": "".join(
            json.dumps(event) + "\n" for event in run.events if event.get("stream") == stream
        ).encode(),
    }
    for name in WHOLE:
        if (folder / name).is_file():
            files[name] = (folder / name).read_bytes()
    if (folder / "allocfail.tsv").is_file():
        failed = (folder / "allocfail.tsv").read_bytes().splitlines(keepends=True)
        files["allocfail.tsv"] = b"".join(failed[: 1 + MOST_FAILURES])
    for name in OF_STREAM:
        if (folder / name).is_file():
            head, *rows = (folder / name).read_text().splitlines()
            place = head.split("\t").index("stream")
            kept = [row for row in rows if row.split("\t")[place] in (stream, "-")]
            files[name] = "".join(f"{row}\n" for row in (head, *kept)).encode()
    for name, wanted in COUNTERS.items():
        if (folder / name).is_file():
            files[name] = _columns((folder / name).read_text(), wanted)
    return files


def _columns(text: str, wanted: tuple[str, ...]) -> bytes:
    rows = [row.split("\t") for row in text.splitlines()]
    places = [place for place, name in enumerate(rows[0]) if name in wanted]
    return "".join("\t".join(row[place] for place in places) + "\n" for row in rows).encode()


def main(folder: Path, golden: Path) -> None:
    """Write the golden file."""
    golden.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(golden, "w:xz", preset=9) as archive:
        for name, content in sorted(packed(folder).items()):
            member = tarfile.TarInfo(f"{folder.resolve().parent.name}/1/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    print(f"{golden}: {golden.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
