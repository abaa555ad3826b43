# SPDX-License-Identifier: GPL-2.0-or-later
"""What a host needs for a job: the suite as a tarball named by its hash, and files by digest."""

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

# What `python3 -m run.one` needs.
PACKAGES = (
    *("contract", "echo_load", "errors.py", "fake_gitk", "fake_player", "machines", "measure"),
    *("monitors", "run", "run_test.sh", "setup", "vm", "workloads"),
)
LEFT_OUT = "__pycache__"
# Not sent from the folder of QEMU and compilers: programs may be writing there.
WRITTEN = ("/tmp/*", "/work/*")


@functools.cache
def suite() -> tuple[str, bytes]:
    """The suite's SHA-256, and the suite as a tarball; equal files give equal bytes."""
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
            yield from (Path(folder) / file for file in sorted(inside))


def needed(job: Job) -> dict[str, tuple[str, Path]]:
    """The files that a host's cache needs for a job: place in the cache -> (digest, path here)."""
    paths = [*jobs.files(job.guest).values(), tools.root()]
    paths += [job.guest.timing.library] if job.guest.timing.library else []
    digests = {path: jobs.digest_of(path) for path in paths}
    return {
        plan_file.place_of(jobs.name_in_cache(path), digest): (digest, path)
        for path, digest in digests.items()
    }
