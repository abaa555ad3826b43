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


def _same(match: re.Match[str]) -> str | None:
    return secret(match)


def _uuid(match: re.Match[str]) -> str | None:
    bare = secret(match).replace("-", "").lower()
    return bare if bare.strip("0f") else None  # none at all, or every bit


def _serial(match: re.Match[str]) -> str | None:
    found = secret(match)
    # "Serial: 8250/16550 driver" is the UART; a serial number without a digit is a word.
    return found if re.search("[0-9]", found) and found not in ("8250", "16550") else None


def _mac(match: re.Match[str]) -> str | None:
    bare = re.sub("[^0-9a-f]", "", secret(match).lower())
    return bare if bare.strip("0") and bare.strip("f") else None  # nobody, everybody


def _dotted_mac(match: re.Match[str]) -> str | None:
    # Without a letter it is a row of figures.
    return _mac(match) if re.search("[a-fA-F]", match[0]) else None


VERSION_BEFORE = re.compile(
    r"(?:version|ver\.?|v|debian|linux|kernel|release|rev\.?|bios|firmware|fw|driver)[ :=_-]{0,2}$",
    re.IGNORECASE,
)
ADDRESS_BEFORE = re.compile(
    r"(?:[@\[=/]|\b(?:ip|ipv4|addr|address|inet|from|to|src|dst|source|dest|host|server|nfs\w*|"
    r"gateway|gw|via|peer|dns|nameserver\d?|client|router|at|on|with|mask)[ :=<(\"']{1,3})$",
    re.IGNORECASE,
)
QEMU_NETWORK = ipaddress.IPv4Network("10.0.2.0/24")
LINUX_VERSION = re.compile(r"(?:2\.6|[3-9]\.\d{1,2})\.")


def _ipv4(match: re.Match[str]) -> str | None:
    found = match[0]
    try:
        address = ipaddress.IPv4Address(found)
    except ValueError:
        return None
    if address in QEMU_NETWORK or address.packed[0] in (0, 127, 255):
        return None  # this machine, a mask
    before = match.string[max(0, match.start() - 24) : match.start()]
    after = match.string[match.end() : match.end() + 2]
    if address.is_private and not VERSION_BEFORE.search(before):
        return found
    joined = before[-1:] in ("-", "_", "+") or re.match(r"[_~+-]\w", after)
    if joined or VERSION_BEFORE.search(before):
        return None
    if LINUX_VERSION.match(found) and not ADDRESS_BEFORE.search(before):
        return None
    return found


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
            r"|\bs/n[:=]?|\bserial[ _](?:number|no\.?)"
            r"|\b(?:wwn|wwid|nguid|id_serial(?:_short)?)[\"']?[:=])"
            rf"[ \t]{{0,4}}[\"']?([^\W_][\w.+-]{{2,}}[^\W_]){AFTER}(?!/)",
            re.IGNORECASE,
        ),
        _serial,
        learn=True,
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
        re.compile(r"(?<![0-9A-Za-z.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![^\W_]|\.[0-9])"),
        _ipv4,
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
    "mac": re.compile(r"mac(?:_?address)?|hwaddr", re.IGNORECASE),
    "ssid": re.compile(r"ssid", re.IGNORECASE),
}


def named(text: str, lower: str) -> Iterator[tuple[str, str]]:
    """(kind, name) of each host and user that the text names as one; lower: the text in lower."""
    for kind, hint, pattern in CONTEXTS:
        if hint in lower:
            for match in pattern.finditer(text):
                yield kind, match[1]
