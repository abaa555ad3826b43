# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides which names of hosts, users and homes are secrets, and where they can be replaced.

A name such as `anna` is replaced wherever it is a word. Replacing `max` or `swap` everywhere would
damage kernel messages: they are replaced only if the context shows that they are names
(`/home/max`, `USER=max`, `max@…`). `root` and `localhost` reveal nothing and stay.
"""

import getpass
import os
import pwd
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SHORTEST = 4  # characters of a name that is searched for everywhere
_PUBLIC = (
    "root nobody none localhost localdomain guest debian ubuntu fedora linux archlinux opensuse "
    "buildd builder mockbuild lists vger daemon systemd"
)
# Common words of the results, the report, kernels and English.
_COMMON = (
    "abort aborted accel admin alloc amd64 analysis append arch arm64 armhf asked audio audit base "
    "baseline beat beats bill block boot bound bpf build bundle byte bytes cache cause chance "
    "chase chunk chunks clone cloud code command commit commits common compare complete completed "
    "config console core count counter cpus crypt data date default desktop device dirty disk dist "
    "done drew drop dump elapsed email empty end ended equivalent error event events every ext3 "
    "ext4 faith failed failures file files first flags forced frank free freeze fsck full gaps "
    "gate generic gitk grace grant graph graphs group guest hang hard hart head heartbeat hint "
    "history home hope host hung hunter huge hugepage idle improved init input intel iops item "
    "joy kern kernel keys knob knobs label laptop last late latency level lever libvirt light "
    "limit line lines link list load lock login logs longest loop lost luck machine main major map "
    "mapped margin mark mask master mean median memory meta minor mode model module modules more "
    "mount music name names network node nodes none null number nvme observer order pace page "
    "pages panic panicked part party pass passes path perf phase pilot plan player plot pool port "
    "post power prepare pressure print priority proc process profile queue quick rand rate read "
    "reader ready reclaim record recorder regressed release report reserve result results revert "
    "rich right rise rose rsync sample sampler samples sata scan sched score script scsi second "
    "seconds serial server service setup shadow shell silent size skip skips slab slow some sort "
    "spec stage stall stalled stalls standard start state status stop storm stream streams sudo "
    "suite summary swap swapin swapout sync system table tail tale task tasks temp term terminal "
    "test tested tester testing tests text thread threads time timeline timeout timer times total "
    "touch trace track true type undecided unit until update usbc used user users uuid vagrant "
    "value values variant verdict version video virt virtio vmstat wait wake warn watch wave ways "
    "well wheel will word words work worker working worst would wrap write writeback writer x86_64 "
    "year zero zone zram zswap"
)
PUBLIC, COMMON = frozenset(_PUBLIC.split()), frozenset(_COMMON.split())
# Home folders of services.
SYSTEM_HOMES = ("/usr/", "/var/", "/etc/", "/run/", "/tmp/")
# Parts of version strings: 6.12.117+deb13-cloud-amd64, 7.3-rc7, 6.18.4-200.fc43.x86_64
VERSIONED = re.compile(r"(?:v|rc|deb|bpo|fc|el|ubuntu|sid|pve|lp|gcc|kvm|vm|cpu|pc)?[0-9._+~-]*")


@dataclass(frozen=True)
class Secrets:
    """Names to hide: of hosts, of users (with their full names), of home folders."""

    hosts: frozenset[str] = field(default_factory=frozenset)
    users: frozenset[str] = field(default_factory=frozenset)
    homes: frozenset[str] = field(default_factory=frozenset)


def is_public(name: str) -> bool:
    """Whether the name is not a secret."""
    return name.strip("().<>").lower() in PUBLIC or not re.search(r"[^\W\d_]", name)


def is_searchable(name: str) -> bool:
    """Whether every word that equals the name can be replaced, whatever its context."""
    lower = name.lower()
    return (
        not is_public(name)
        and len(lower) >= SHORTEST
        and lower not in COMMON
        and lower.rstrip("s") not in COMMON
        and not VERSIONED.fullmatch(lower)
    )


def own_secrets() -> Secrets:
    """The names of this machine and of the bundle's creator, also through sudo."""
    host = socket.gethostname()
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    homes = {os.environ.get("HOME", "")}
    with suppress(KeyError, OSError):  # a user ID without an entry has no name to hide
        users.add(getpass.getuser())
    for user in set(users) - {""}:
        try:
            entry = pwd.getpwnam(user)
        except (KeyError, ValueError):
            continue
        homes.add(entry.pw_dir)
        full = entry.pw_gecos.split(",")[0].strip()
        if " " in full:  # "Anna Example"; a single word may be anything
            users.add(full)
    short = host.split(".")[0]
    return Secrets(
        frozenset({host, short} - {""}),
        frozenset(users - {""}),
        frozenset(home for home in homes if _is_home(home)),
    )


def _is_home(home: str) -> bool:
    """Whether the path is a user's home: /root is, but /tmp (in a container) is not."""
    return home == "/root" or (len(Path(home).parts) > 2 and not home.startswith(SYSTEM_HOMES))
