# SPDX-License-Identifier: GPL-2.0-or-later
"""hosts.json, in the folder of a campaign: where its runs are done, for who goes on with it."""

import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path

from contract.hosts_file import HOSTS_FILE
from contract.run_record import write_json
from contract.untrusted import json_object
from errors import UserError

FORMAT = 1


@dataclass
class Kept:
    """on: the last --on. campaign: its name on every host. proof: what all hosts' proofs are.

    proved: each host's suite, when its proof was that. runs: which host did which run.
    """

    on: str
    campaign: str = field(default_factory=lambda: secrets.token_hex(8))
    proof: dict[str, str] = field(default_factory=dict)
    proved: dict[str, str] = field(default_factory=dict)
    runs: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Put it into the folder, by a rename."""
        write_json(folder / HOSTS_FILE, {"format": FORMAT, **asdict(self)})


def read(folder: Path) -> Kept | None:
    """What a folder has kept; None if all its runs were done here. UserError if it is damaged."""
    path = folder / HOSTS_FILE
    try:
        found = json_object(path.read_bytes()) or {}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    wanted = {"on": str, "campaign": str, "proof": dict, "proved": dict, "runs": dict}
    values = {name: found.get(name) for name in wanted}
    if found.get("format") != FORMAT or any(
        not isinstance(values[name], kind) for name, kind in wanted.items()
    ):
        raise UserError(
            f"{path} is damaged", hint="remove it: runs that other hosts still have are repeated"
        )
    return Kept(**values)  # type: ignore[arg-type]
