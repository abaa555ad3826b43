# SPDX-License-Identifier: GPL-2.0-or-later
"""The facts of meta.json that must be equal in all runs that are compared.

docs/explain/verdicts.md
"""

from typing import NamedTuple

from contract.workload import KEY

CLOCK = ("clock", "kind")
HOSTS_CPU = ("host", "cpu_model")  # the guest's own clock does not depend on it
IMAGE = ("guest", "image")  # a workload may have its own image
SWAP_SIZE = ("swap", "size_kib")  # of the volume: equal everywhere; of zram: per variant
WORKLOAD = ((KEY, "name"), (KEY, "primary"), (KEY, "settled"))


class KeyFact(NamedTuple):
    """Where meta.json has a fact; of_host: whether it depends on the host and its programs.

    A resumed campaign checks the facts of its host before it runs anything.
    """

    keys: tuple[str, ...]
    of_host: bool = False


EVERYWHERE = (
    *map(KeyFact, WORKLOAD),
    KeyFact(("accelerator",), of_host=True),
    KeyFact(CLOCK, of_host=True),
    KeyFact(("mem_total_kib",)),
    KeyFact(("cpus",)),
    KeyFact(("cpu_model",)),
    *(KeyFact(("machine", key), of_host=True) for key in ("type", "cpu", "mips")),
    KeyFact(HOSTS_CPU, of_host=True),
    KeyFact(IMAGE),
    KeyFact(("guest", "suite"), of_host=True),
    *(KeyFact(("disk", key)) for key in ("size_bytes", "cache", "iops", "bps")),
    KeyFact(("disk", "model"), of_host=True),
    *(KeyFact(("disk", key)) for key in ("kind", "parallel", "depth", "queues")),
    KeyFact(SWAP_SIZE),
    KeyFact(("crypt",)),
    KeyFact(("fs",)),
    KeyFact(("evidence", "asked")),
)
OF_THE_HOST = tuple(fact.keys for fact in EVERYWHERE if fact.of_host)
