# SPDX-License-Identifier: GPL-2.0-or-later
"""What a secret looks like in a kernel's log, a command line or a path (docs/BUNDLE.md).

Each rule finds candidates; its `known` turns one into the form under which all its spellings are
the same secret, or None if it is none. No rule reaches over a line, a quote or a bracket, so that
what was JSON stays JSON.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from graphs.redaction.ipv4 import QUAD, ipv4

HEX = "[0-9A-Fa-f]"
# Not in the middle of a word. An underscore joins names to others (disk_host1), so it is no letter.
BEFORE, AFTER = r"(?<![^\W_])", r"(?![^\W_])"
NAME = r"[^\W_][\w.-]*[^\W_]|[^\W_]"

# The kernel's own lists and its builders; module banners name their authors with addresses.
PUBLIC_DOMAINS = (
    r"(?:[\w.-]+\.)?(?:debian\.org|kernel\.org|linux\.dev|kvack\.org|infradead\.org|redhat\.com"
    r"|ubuntu\.com|canonical\.com|fedoraproject\.org|suse\.(?:com|de|cz)|archlinux\.org|intel\.com"
    r"|freedesktop\.org|lists\.sourceforge\.net|linux\.it)"
)
FOLDERS = r"(?:bin|boot|dev|etc|home|lib\w*|media|mnt|opt|proc|root|run|s?bin|srv|sys|tmp|usr|var)"
UNITS = r"(?:service|slice|scope|socket|mount|target|timer|device|swap|path|automount)"
TOP_LEVELS = (
    r"(?:com|org|net|edu|gov|info|io|dev|eu|de|fr|uk|ch|at|nl|se|fi|dk|pl|cz|it|es|pt|ie|be|jp|in"
    r"|au|ca|us|br|local|lan|home|internal|intranet|corp|localdomain|arpa|test|example)"
)


@dataclass(frozen=True)
class Rule:
    """Group 1 of `pattern` (all of it, without groups) is a secret of this kind, if it is known."""

    kind: str
    hint: str  # a text without it, in lower case, cannot match: most logs are passed over
    pattern: re.Pattern[str]
    known: Callable[[re.Match[str]], str | None]
    learn: bool = False  # its bare form is a secret wherever else it stands


def secret(match: re.Match[str]) -> str:
    """The part of the match that is replaced."""
    return match[1] if match.re.groups else match[0]


UARTS = ("8250", "16550", "115200", "230400", "460800", "921600")  # chips, and their speeds


def _same(match: re.Match[str]) -> str | None:
    return secret(match)


def _uuid(match: re.Match[str]) -> str | None:
    bare = secret(match).replace("-", "").lower()
    return bare if bare.strip("0f") else None  # none at all, or every bit


def _serial(match: re.Match[str]) -> str | None:
    found = secret(match)
    # "Serial: 8250/16550 driver" is the UART; a serial number without a digit is a word.
    return found if re.search("[0-9]", found) and found not in UARTS else None


def _mac(match: re.Match[str]) -> str | None:
    bare = re.sub("[^0-9a-f]", "", secret(match).lower())
    return bare if bare.strip("0") and bare.strip("f") else None  # nobody, everybody


def _dotted_mac(match: re.Match[str]) -> str | None:
    # Without a letter it is a row of figures.
    return _mac(match) if re.search("[a-fA-F]", match[0]) else None


def _ipv6(match: re.Match[str]) -> str | None:
    try:
        address = ipaddress.IPv6Address(match[0])
    except ValueError:
        return None
    if address.is_unspecified or address.is_loopback:
        return None
    # `dead::beef` may well be C++.
    return address.compressed if re.search("[0-9]", match[0]) else None


EMAIL_TEXT = r"[\w.+-]*[\w+]@(?:[^\W_][\w-]*\.)+[^\W\d_]{2,24}"
RULES = (
    Rule("login", "@", re.compile(r"://([^/\s@'\"<>]+)@"), _same),
    Rule(
        "email",
        "@",
        re.compile(
            rf"(?<![\w.+-])(?![\w.+-]+@{PUBLIC_DOMAINS}(?![\w-]|\.\w))"
            rf"(?![\w.+-]+@[\w.-]+\.{UNITS}\b){EMAIL_TEXT}(?![\w-])"
        ),
        _same,
    ),
    Rule(
        "uuid",
        "-",
        re.compile(rf"{BEFORE}{HEX}{{8}}(?:-{HEX}{{4}}){{3}}-{HEX}{{12}}{AFTER}"),
        _uuid,
        learn=True,
    ),
    Rule(
        "uuid",
        "-",
        re.compile(rf"{BEFORE}[A-Za-z0-9]{{6}}(?:-[A-Za-z0-9]{{4}}){{5}}-[A-Za-z0-9]{{6}}{AFTER}"),
        _uuid,
        learn=True,
    ),
    Rule("uuid", "lvm-", re.compile(rf"LVM-([A-Za-z0-9]{{32,64}}){AFTER}"), _same, learn=True),
    Rule("uuid", "crypt-", re.compile(rf"CRYPT-[A-Z0-9]+-({HEX}{{32}}){AFTER}"), _uuid, learn=True),
    Rule(
        "uuid",
        "id",
        re.compile(
            rf"(?:uuid|fsid|\b(?:machine|boot|invocation)[-_]id)[\"']?(?:[=:][ \"']{{0,2}}|/)"
            rf"(?=[A-Fa-f-]*[0-9])({HEX}[0-9A-Fa-f-]{{2,}}{HEX}){AFTER}",
            re.IGNORECASE,
        ),
        _uuid,
    ),
    Rule("serial", "by-id/", re.compile(r"by-id/([\w.:+=@-]+)"), _same),
    Rule(
        "serial",
        "",
        re.compile(rf"{BEFORE}(?:wwn-|naa\.|eui\.|t10\.)((?:0x)?\w{{8,}})"),
        _serial,
        learn=True,
    ),
    Rule(
        "serial",
        "",
        re.compile(
            r"(?:\bserial[ _-]?(?:number|num|no|nr)?\.?[\"']?\t*[ ]{0,4}(?:[:=]|\bis\b)"
            r"|\bs/n[:=]?|\bserial[ _]?(?:number|no\.?)"
            r"|\b(?:wwn|wwid|nguid|id_serial(?:_short)?)[\"']?[:=])"
            rf"[ \t]{{0,4}}[\"']?([^\W_][\w.+-]{{2,}}[^\W_]){AFTER}(?!/)",
            re.IGNORECASE,
        ),
        _serial,
        learn=True,
    ),
    Rule(
        "serial",
        "serial",
        # Only what looks like nothing else: "serial ttyUSB0", "serial console1".
        re.compile(
            rf"(?i:\bserial)[ \t]{{1,4}}[\"']?"
            rf"(0x{HEX}{{4,16}}|(?=[A-Z_-]*[0-9])[A-Z0-9][A-Z0-9_-]{{4,}}[A-Z0-9]|{HEX}{{8,32}})"
            rf"{AFTER}(?![/:.-]\w)"
        ),
        _serial,
        learn=True,
    ),
    Rule(
        "serial",
        "",
        re.compile(
            rf"\b(?:wwn|wwid|nguid|eui(?:-?64)?|naa|cid(?=\W{{1,3}}{HEX}{{16}}))"
            rf"[\"']?[ \t:=]{{1,3}}[\"']?"
            rf"((?:0x)?{HEX}{{8,32}}|{HEX}{{8}}-[0-9A-Fa-f-]{{8,27}}){AFTER}",
            re.IGNORECASE,
        ),
        _serial,
        learn=True,
    ),
    # libata's line of a disk: a firmware's name has 8 letters at most, a serial has more.
    Rule(
        "serial",
        "ata",
        re.compile(
            r"\bATA(?:PI)?-[0-9]{1,2}: [^,\n\"'\[\]{}<>]{1,60},(?: ?[\w.+-]{1,8},)? ?"
            rf"((?=[A-Z_-]*[0-9])[A-Z0-9][A-Z0-9_-]{{8,}}){AFTER}"
        ),
        _serial,
        learn=True,
    ),
    Rule(
        "serial", "wd-", re.compile(rf"{BEFORE}(WD-[A-Z0-9]{{8,16}}){AFTER}"), _serial, learn=True
    ),
    Rule(
        "serial",
        "-",
        re.compile(
            rf"{BEFORE}(?:ata|scsi|nvme|usb|mmc|virtio|sas)-(?:\w[\w.+-]*_)?"
            rf"((?=[A-Z]*[0-9])[A-Z0-9]{{8,}}|3{HEX}{{15,32}}){AFTER}"
        ),
        _serial,
        learn=True,
    ),
    Rule(
        "mac",
        "",
        re.compile(
            rf"{BEFORE}(?:{HEX}{{2}}(?::{HEX}{{2}}){{5,19}}|{HEX}{{2}}(?:-{HEX}{{2}}){{5,19}})"
            rf"{AFTER}(?![:-]{HEX}{{2}}{AFTER})"
        ),
        _mac,
        learn=True,
    ),
    Rule(
        "mac",
        ".",
        re.compile(rf"(?<![\w.]){HEX}{{4}}\.{HEX}{{4}}\.{HEX}{{4}}(?![\w.])"),
        _dotted_mac,
        learn=True,
    ),
    Rule(
        "mac",
        "addr",
        re.compile(
            r"\b(?:bd|mac|bluetooth|hw|hardware|ethernet|station|ll)[ _-]?addr(?:ess)?[\"']?"
            rf"[ \t:=]{{1,3}}[\"']?(?:0x)?({HEX}{{12}}){AFTER}",
            re.IGNORECASE,
        ),
        _mac,
        learn=True,
    ),
    Rule("mac", "x", re.compile(rf"\b(?:en|wl|ww)x({HEX}{{12}}){AFTER}"), _mac, learn=True),
    Rule(
        "ip",
        ":",
        re.compile(
            rf"(?<![\w.])(?:{HEX}{{0,4}}:){{2,7}}(?:(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}|{HEX}{{1,4}}"
            r"|(?<=::))(?!\w|:[\w:]|\.\w)"
        ),
        _ipv6,
    ),
    Rule(
        "ip",
        ".",
        re.compile(rf"(?<![0-9A-Za-z.]){QUAD}(?![^\W_]|\.[0-9])"),
        ipv4,
    ),
    Rule(
        "ssid",
        "ssid",
        re.compile(r"\bssid(?:=|[: ]{1,2}(?=[\"']))[\"']?([^\s\"'<>,;]+)", re.IGNORECASE),
        _same,
    ),
    Rule("home", "/", re.compile(rf"/(?:home|Users)/(?:{NAME})"), _same),
    Rule("home", "/root", re.compile(r"(?<![\w./>-])/root(?![\w.-])"), _same),
)

# Where the text itself says that a word is somebody's name; group 1 is the name.
CONTEXTS = tuple(
    (kind, hint, re.compile(pattern, re.MULTILINE))
    for kind, hint, pattern in (
        ("host", "name", rf"(?i:\b(?:host_?|node)name)[\"']?[=:][ ]?[\"']?({NAME})"),
        ("host", "hostname", rf"(?i:\bhostname) (?:set )?to [<\"']?({NAME})"),
        (
            "host",
            "",
            rf"^(?:<\d+>)?[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d ({NAME}) [\w./()-]+(?:\[\d+\])?:",
        ),
        (
            "host",
            "",
            rf"^\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.,+Z:-]* ({NAME}) [\w./()-]+(?:\[\d+\])?:",
        ),
        ("host", "login", rf"^({NAME}) login:"),
        ("host", "ip=", rf"\bip=(?:[^\s:\[]*:){{4}}({NAME})"),
        (
            "host",
            "linux version",
            rf"Linux version \S+ \((?![\w.+-]+@{PUBLIC_DOMAINS}\))[\w.+-]+@({NAME})\)",
        ),
        (
            "user",
            "linux version",
            rf"Linux version \S+ \((?![\w.+-]+@{PUBLIC_DOMAINS}\))([\w.+-]+)@",
        ),
        ("user", "", rf"\b(?:SUDO_USER|LOGNAME|USER(?:NAME)?|user(?:name)?|login)=[\"']?({NAME})"),
        ("user", "opened for", rf"\bopened for user ({NAME})"),
        ("user", "sudo", rf"\bsudo(?:\[\d+\])?: +({NAME}) :"),
        ("user", "/home/", rf"/home/({NAME})"),
        ("user", "/users/", rf"/Users/({NAME})"),
        # Shares of CIFS and NFS. A latency log spells each backslash twice.
        ("host", "\\\\", rf"(?<!\\)\\{{2,4}}(?!x[0-9a-f]{{2}}\\)({NAME})\\{{1,2}}[\w$]"),
        (
            "host",
            "//",
            rf"(?<![\w:/.*~-])//(?!{PUBLIC_DOMAINS}/)(?!{FOLDERS}/)({NAME})/[\w$]",
        ),
        ("host", "nfs", rf"\b(?:nfsroot=|(?i:nfs4?: server ))(?!{PUBLIC_DOMAINS}\b)({NAME})"),
        ("user", "@", rf"(?<![\w.+@-])([\w.+-]*\w)@(?:{NAME}):[/~\w]"),
        ("host", "@", rf"(?<![\w.+@-])[\w.+-]*\w@({NAME}):[/~\w]"),
        ("host", "@", rf"://[^/\s@'\"]+@(?!{PUBLIC_DOMAINS}\b)({NAME})"),
        ("host", "://", rf"\b(?:rsync|ssh|sftp|nfs|smb|cifs)://(?!{PUBLIC_DOMAINS}\b)({NAME})"),
    )
)

# Keys of JSON and TOML whose value is a secret whatever it looks like.
KEYS = {
    "host": re.compile(r"(?:host|node)_?name|fqdn", re.IGNORECASE),
    "user": re.compile(r"(?:sudo_)?user(?:_?name)?|login|logname|owner", re.IGNORECASE),
    "serial": re.compile(r".*_?serial(?:_?(?:number|short|no))?|wwn|wwid|eui|nguid", re.IGNORECASE),
    "uuid": re.compile(r".*uuid|(?:machine|boot)_id", re.IGNORECASE),
    "ip": re.compile(
        r"(?:.*_)?(?:ip|ipv4|ip_?addr|addr|(?:ip_?)?address|gateway|gw|router|server|peer|host"
        r"|nameservers?|dns|client)",
        re.IGNORECASE,
    ),
    "mac": re.compile(r"mac(?:_?address)?|hwaddr", re.IGNORECASE),
    "ssid": re.compile(r"ssid", re.IGNORECASE),
}


def named(text: str, lower: str) -> Iterator[tuple[str, str]]:
    """(kind, name) of each host and user that the text names as one; lower: the text in lower."""
    for kind, hint, pattern in CONTEXTS:
        if hint in lower:
            for match in pattern.finditer(text):
                yield kind, match[1]
