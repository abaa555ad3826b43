# SPDX-License-Identifier: GPL-2.0-or-later
"""Which names of hosts, users and homes are a secret, and how safely each can be searched for.

A name such as `anna` is replaced wherever it stands as a word. One such as `max` or `swap` would
take kernel messages with it: it is replaced only where the context says that it is a name
(`/home/max`, `USER=max`, `max@…`). `root` and `localhost` tell nobody anything and stay.
"""

import getpass
import os
import pwd
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SHORTEST = 4  # letters of a name that is searched for everywhere
_PUBLIC = (
    "root nobody none localhost localdomain guest debian ubuntu fedora linux archlinux opensuse "
    "buildd builder mockbuild lists vger daemon systemd"
)
# What the results, the report, kernels and English are written with.
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
# Homes of services.
SYSTEM_HOMES = ("/usr/", "/var/", "/etc/", "/run/", "/tmp/")
# Parts of version strings: 6.12.117+deb13-cloud-amd64, 7.3-rc7, 6.18.4-200.fc43.x86_64
VERSIONED = re.compile(r"(?:v|rc|deb|bpo|fc|el|ubuntu|sid|pve|lp|gcc|kvm|vm|cpu|pc)?[0-9._+~-]*")


@dataclass(frozen=True)
class Secrets:
    """Names to hide, as they were found: of hosts, of users (and their full names), of homes."""

    hosts: frozenset[str] = field(default_factory=frozenset)
    users: frozenset[str] = field(default_factory=frozenset)
    homes: frozenset[str] = field(default_factory=frozenset)


def is_public(name: str) -> bool:
    """Whether the name is no secret at all."""
    return name.strip("().<>").lower() in PUBLIC or not re.search(r"[^\W\d_]", name)


def is_searchable(name: str) -> bool:
    """Whether each word that equals the name can be taken for it, whatever stands around it."""
    lower = name.lower()
    return (
        not is_public(name)
        and len(lower) >= SHORTEST
        and lower not in COMMON
        and lower.rstrip("s") not in COMMON
        and not VERSIONED.fullmatch(lower)
    )


def own_secrets() -> Secrets:
    """The names of this machine and of whoever makes the bundle, also through sudo."""
    host = socket.gethostname()
    users = {os.environ.get(key, "") for key in ("USER", "LOGNAME", "SUDO_USER")}
    homes = {os.environ.get("HOME", "")}
    with suppress(KeyError, OSError):  # an ID without an entry: then there is no name to hide
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
    """Whether the path is somebody's own: /root is one, and /tmp, a container's, is none."""
    return home == "/root" or (len(Path(home).parts) > 2 and not home.startswith(SYSTEM_HOMES))
