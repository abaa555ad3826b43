# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as a job: all that is needed to do it, as values for a JSON file.

Files are named by their place in the cache (an absolute path if they are elsewhere) and by their
SHA-256: a worker accepts no file with another digest.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from contract.option_rows import FAKE_GITKS
from contract.options import Options
from errors import UserError
from setup import cache
from setup.kernels import Kernel
from vm import disk_model, emulator
from vm.disk_spec import DiskModel
from vm.guest import Guest, GuestFiles, GuestJob, Hardware, Timing
from workloads import registry

KERNEL_FILES = ("image", "config")
PARTS = {"kernel", "files", "hardware", "timing", "emulator"}  # of a Guest; all else is text


@dataclass(frozen=True)
class Streams:
    """What a view of a run needs: its streams, its gitk's commits, its time limit in seconds."""

    names: tuple[str, ...]
    commits: int  # 0: it has no gitk's
    passes: int
    limit_s: float

    @classmethod
    def of(cls, options: Options, names: list[str]) -> "Streams":
        """The streams of a variant's runs; options: the variant's; names: of its streams."""
        commits = registry.find(options.workload).reads(options) if options.gitks else 0
        passes = options.passes if FAKE_GITKS in options.gitks else 1
        return cls(tuple(names), commits, passes, options.timeout)


@dataclass(frozen=True)
class Job:
    """A run of a variant. facts: further facts for its meta.json.

    place: of the run among all ("3 of 8", "" if it is alone); expected: its duration as text. Both
    are only displayed.
    """

    label: str
    number: int
    guest: Guest
    guest_job: GuestJob
    facts: Mapping[str, Any]
    streams: Streams
    place: str = field(default="", compare=False)
    expected: str = field(default="", compare=False)

    @property
    def key(self) -> tuple[str, int]:
        """Identifies it among the campaign's runs."""
        return self.label, self.number

    @property
    def title(self) -> str:
        """Its name on the screen."""
        return f"{self.label} {self.number}" + (f" ({self.place})" if self.place else "")


def files(guest: Guest) -> dict[str, Path]:
    """The files of a guest: their kind -> path."""
    paths = {f"kernel {name}": getattr(guest.kernel, name) for name in KERNEL_FILES}
    paths |= {name.replace("_", " "): path for name, path in guest.files._asdict().items()}
    return {name: path for name, path in paths.items() if path is not None}


def name_in_cache(path: Path) -> str:
    """A file's name in a job: its place in the cache, or its absolute path."""
    path = path.absolute()
    inside = path.is_relative_to(cache.place())
    return str(path.relative_to(cache.place()) if inside else path)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file or folder: the cache's note of it, else computed now."""
    kind = path.absolute().parent.parent
    return cache.digest(path) if kind == cache.place() else cache.digest_now(path)


def to_json(job: Job) -> dict[str, Any]:
    """The job as JSON values, without fields that are only displayed."""
    guest = job.guest
    kernel = {
        item.name: getattr(guest.kernel, item.name)
        for item in fields(Kernel)
        if item.name not in (*KERNEL_FILES, "modules", "log", "changes")
    }
    return {
        "label": job.label,
        "number": job.number,
        "facts": dict(job.facts),
        "streams": asdict(job.streams),
        "guest_job": asdict(job.guest_job),
        "kernel": kernel,
        "guest": {
            item.name: getattr(guest, item.name) for item in fields(Guest) if item.name not in PARTS
        },
        "hardware": asdict(guest.hardware),
        "clock": {"clock": guest.timing.clock, "why": guest.timing.why},
        "disk": None if guest.timing.disk is None else asdict(guest.timing.disk),
        "qemu_disk_model": guest.timing.library is not None,
        "qemu": guest.emulator.origin,
        "files": {
            what: {"name": name_in_cache(path), "sha256": digest_of(path)}
            for what, path in files(guest).items()
        },
    }


def from_json(stored: Mapping[str, Any]) -> Job:
    """The job, with files of this host's cache; UserError if a file is missing or differs.

    KeyError, TypeError or ValueError if the JSON is not a job.
    """
    there = {what: _checked(what, file) for what, file in stored["files"].items()}
    qemu = emulator.find(stored["qemu"])
    kernel = Kernel(
        **stored["kernel"],
        image=there["kernel image"],
        modules=None,
        config=there.get("kernel config"),
    )
    paths: dict[str, Any] = {name: there.get(name.replace("_", " ")) for name in GuestFiles._fields}
    guest = Guest(
        kernel=kernel,
        files=GuestFiles(**paths),
        hardware=Hardware(**_with_tuples(stored["hardware"])),
        timing=Timing(
            **stored["clock"],
            disk=DiskModel(**stored["disk"]) if stored["disk"] else None,
            library=_library(qemu) if stored["qemu_disk_model"] else None,
        ),
        emulator=qemu,
        **stored["guest"],
    )
    return Job(
        label=stored["label"],
        number=stored["number"],
        guest=guest,
        guest_job=GuestJob(**_with_tuples(stored["guest_job"], but="files")),
        facts=stored["facts"],
        streams=Streams(**_with_tuples(stored["streams"])),
    )


def _with_tuples(values: Mapping[str, Any], but: str = "") -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) and name != but else value
        for name, value in values.items()
    }


def _checked(what: str, file: Mapping[str, str]) -> Path:
    path = cache.place() / file["name"]
    try:
        digest = cache.digest_now(path)
    except OSError as error:
        raise UserError(f"{what}: {path}: {error.strerror}", hint="copy it here again") from None
    if digest != file["sha256"]:
        raise UserError(
            f"{what}: {path} has SHA-256 {digest[:12]}, and the plan wants {file['sha256'][:12]}",
            hint="copy it here again",
        )
    return path


def _library(qemu: emulator.Emulator) -> Path:
    try:
        return disk_model.library(qemu)
    except disk_model.Unusable as error:
        raise UserError(str(error), hint="leave this host out") from None
