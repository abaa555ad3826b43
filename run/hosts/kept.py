# SPDX-License-Identifier: GPL-2.0-or-later
"""hosts.json, in a campaign's folder: where its runs are done; read when it is resumed."""

import secrets
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path

from contract.plan import HOSTS_FILE
from contract.run_record import write_json
from contract.untrusted import json_object
from errors import UserError
from run.plans.journal import Journal

FORMAT = 1
JOURNAL = ".hosts.jsonl"  # runs that are not in hosts.json yet


@dataclass
class Kept:
    """on: the last --on. campaign: its name on every host. proof: file digests of the proof.

    proved: host -> digest of the suite it proved itself with. runs: run -> the host that did it.
    """

    on: str
    campaign: str = field(default_factory=lambda: secrets.token_hex(8))
    proof: dict[str, str] = field(default_factory=dict)
    proved: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write it into the campaign's folder, by a rename."""
        write_json(folder / HOSTS_FILE, {"format": FORMAT, **asdict(self)})
        Journal(folder / JOURNAL).clear(0)


class RunHosts:
    """Notes which host did which run: in a campaign's hosts.json, or in its journal."""

    def __init__(self, kept: Kept, folder: Path) -> None:
        self._kept, self._folder = kept, folder
        self._journal = Journal(folder / JOURNAL, len(kept.runs))
        self._writing = threading.Lock()  # each host may have a thread

    def note(self, run: Path, host: str) -> None:
        """Note that the host has done this run."""
        name = str(run.relative_to(self._folder))
        with self._writing:
            self._kept.runs[name] = host
            if not self._journal.append({"run": name, "host": host}):
                self._write()

    def keep(self) -> None:
        """Move the journal into hosts.json."""
        with self._writing:
            if not self._journal.is_empty:
                self._write()

    def _write(self) -> None:
        self._kept.write(self._folder)
        self._journal.clear(len(self._kept.runs))


def read(folder: Path) -> Kept | None:
    """The folder's hosts.json; None if all its runs were done here. UserError if it is damaged."""
    path = folder / HOSTS_FILE
    try:
        content = json_object(path.read_bytes()) or {}
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    wanted = {"on": str, "campaign": str, "proof": dict, "proved": dict, "runs": dict}
    values = {name: content.get(name) for name in wanted}
    if content.get("format") != FORMAT or any(
        not isinstance(values[name], kind) for name, kind in wanted.items()
    ):
        raise UserError(
            f"{path} is damaged", hint="remove it: runs that other hosts still have are repeated"
        )
    kept = Kept(**values)  # type: ignore[arg-type]
    for entry in Journal(folder / JOURNAL).read():
        kept.runs[str(entry.get("run"))] = str(entry.get("host"))
    return kept
