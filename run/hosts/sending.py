# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host is sent for a job: the suite as a tarball named by its hash, and files by digest."""

import functools
import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from contract import checkout
from run.jobs import job as jobs
from run.jobs import plan_file
from run.jobs.job import Job
from setup.userland import tools

# What `python3 -m run.one` imports.
PACKAGES = (
    *("contract", "echo_load", "errors.py", "fake_gitk", "fake_player", "machines", "measure"),
    *("monitors", "run", "run_test.sh", "setup", "vm", "workloads"),
)
LEFT_OUT = "__pycache__"
# Of the folder of QEMU and compilers: what programs are writing there at this moment.
WRITTEN = ("/tmp/*", "/work/*")


@functools.cache
def suite() -> tuple[str, bytes]:
    """The suite as a tarball, and its SHA-256. The same files are the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _files():
            entry = tarfile.TarInfo(str(path.relative_to(checkout.ROOT)))
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            data = path.read_bytes()
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packed = gzip.compress(raw.getvalue(), mtime=0)
    return hashlib.sha256(packed).hexdigest(), packed


def _files() -> Iterator[Path]:
    for name in PACKAGES:
        if (checkout.ROOT / name).is_file():
            yield checkout.ROOT / name
        for folder, names, inside in os.walk(checkout.ROOT / name):
            names[:] = sorted(set(names) - {LEFT_OUT})
            yield from (Path(folder) / one for one in sorted(inside))


def needed(job: Job) -> dict[str, tuple[str, Path]]:
    """What has to be in a host's cache for a job: its place there, its digest, and where it is."""
    found = [*jobs.files(job.guest).values(), tools.root()]
    found += [job.guest.library] if job.guest.library else []
    digests = {path: jobs.digest_of(path) for path in found}
    return {
        plan_file.place_of(jobs.name_in_cache(path), digest): (digest, path)
        for path, digest in digests.items()
    }
