# SPDX-License-Identifier: GPL-2.0-or-later
"""Domain names: public ones, and rules for when a name with dots is a host's."""

import re

from graphs.redaction.rules import rule

# Domains of kernel lists, builders and authors, whose addresses are in module banners.
_LISTS = (
    r"debian\.org|kernel\.org|linux\.dev|kvack\.org|infradead\.org|redhat\.com|ubuntu\.com"
    r"|canonical\.com|fedoraproject\.org|suse\.(?:com|de|cz)|archlinux\.org|intel\.com"
    r"|freedesktop\.org|lists\.sourceforge\.net|linux\.it"
)
# Sites that kernels, distributions and the suite's programs refer to.
_SITES = (
    r"github\.com|gitlab\.com|githubusercontent\.com|launchpad\.net|sourceforge\.net|gnu\.org"
    r"|qemu\.org|python\.org|pypi\.org|x\.org|gnome\.org|kde\.org|lkml\.org|lwn\.net|man7\.org"
    r"|wikipedia\.org|linuxfoundation\.org|opensuse\.org|gentoo\.org|centos\.org|almalinux\.org"
    r"|rockylinux\.org|alpinelinux\.org|nixos\.org|oracle\.com|ibm\.com|amd\.com|nvidia\.com"
    r"|arm\.com|google\.com|googlesource\.com|microsoft\.com|realtek\.com|systemd\.io|iana\.org"
    r"|wireguard\.com|samba\.org|kernelnewbies\.org|spinics\.net|rsyslog\.com|seabios\.org"
    r"|netfilter\.org|iptables\.org|smartmontools\.org|trustedcomputinggroup\.org"
)
_BELOW = r"(?:[\w.-]{1,255}\.)?"
PUBLIC_DOMAINS = rf"{_BELOW}(?:{_LISTS})"
TOP_LEVELS = (
    r"(?:com|org|net|edu|gov|info|io|dev|eu|de|fr|uk|ch|at|nl|se|fi|dk|pl|cz|it|es|pt|ie|be|jp|in"
    r"|au|ca|us|br|local|lan|home|internal|intranet|corp|localdomain|arpa|test|example|box)"
)
# A name of two words is a host's only with these endings: `nvme.io` may be anything.
_SURE_ENDS = (
    r"(?:com|org|net|edu|gov|info|eu|lan|local|home|internal|intranet|corp|localdomain|example|box)"
)
# A name of more words also with these; `.in`, `.it` and the like are words or file templates.
_ENDS = (
    r"(?:com|org|net|edu|gov|info|io|dev|eu|de|fr|uk|ch|nl|se|fi|dk|pl|cz|es|pt|ie|jp|au|ca|br"
    r"|local|lan|home|internal|intranet|corp|localdomain|arpa|test|example|box)"
)
_LABEL = r"[^\W_](?:[^\W_]|-(?=[^\W_])|--(?=[^\W_])){0,62}"
# The domain after a known host name, which is replaced with it.
DOMAIN = re.compile(rf"(?:\.[^\W_][\w-]{{0,62}}){{0,4}}\.{TOP_LEVELS}(?![\w-]|\.\w)", re.IGNORECASE)
_KNOWN_TO_ALL = re.compile(
    rf"{_BELOW}(?:{_LISTS}|{_SITES})|(?:[a-z]{{1,16}}\.){{1,2}}events\.local", re.IGNORECASE
)


def _own(match: re.Match[str]) -> str | None:
    return None if _KNOWN_TO_ALL.fullmatch(match[0]) else match[0]


# Files of a cgroup (memory.events.local) or a folder (debian/config.local) are not hosts.
FULL_NAME = rule(
    "host",
    ".",
    rf"(?<![\w.\\-])(?<!(?<!/)/)"
    rf"(?:(?:{_LABEL}\.){{2,8}}{_ENDS}|{_LABEL}\.{_SURE_ENDS})(?![\w-]|\.\w)",
    _own,
    flags=re.IGNORECASE,
)
