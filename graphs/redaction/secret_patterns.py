# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules for addresses and IDs in kernel logs, command lines and paths; and the list of rules."""

import ipaddress
import re
from functools import partial

from graphs.redaction.credentials import CREDENTIALS
from graphs.redaction.disk_serials import SERIALS
from graphs.redaction.domains import PUBLIC_DOMAINS
from graphs.redaction.ipv4 import QUAD, ipv4
from graphs.redaction.paths import HOMES, OPTIONS, PATHS
from graphs.redaction.rules import rule, secret
from graphs.redaction.spelling import AFTER, BEFORE, DASH, HEX

UNITS = r"(?:service|slice|scope|socket|mount|target|timer|device|swap|path|automount)"


def _uuid(match: re.Match[str]) -> str | None:
    bare = re.sub(rf"{DASH}|:", "", secret(match).lower())
    return bare if bare.strip("0f") else None  # not if all bits are 0, or all are 1


def _mac(match: re.Match[str]) -> str | None:
    bare = re.sub("[^0-9a-f]", "", secret(match).lower())
    return (
        bare if bare.strip("0") and bare.strip("f") else None
    )  # not the null or broadcast address


def _dotted_mac(match: re.Match[str]) -> str | None:
    # Without a letter it is a row of numbers.
    return _mac(match) if re.search("[a-fA-F]", match[0]) else None


def _ipv6(match: re.Match[str]) -> str | None:
    try:
        address = ipaddress.IPv6Address(match[0])
    except ValueError:
        return None
    if address.is_unspecified or address.is_loopback:
        return None
    # `dead::beef` may be C++.
    return address.compressed if re.search("[0-9]", match[0]) else None


_uuids = partial(rule, "uuid", known=_uuid, learn=True)
_macs = partial(rule, "mac", known=_mac, learn=True)
EMAIL = (
    rf"(?<![\w.+-])(?![\w.+-]{{1,255}}@{PUBLIC_DOMAINS}(?![\w-]|\.\w))"
    rf"(?![\w.+-]{{1,255}}@[\w.-]{{1,255}}\.{UNITS}\b)"
    r"[\w.+-]{0,254}[\w+]@(?:[^\W_][\w-]{0,62}\.){1,8}[^\W\d_]{2,24}(?![\w-])"
)
UUIDS = (
    _uuids("-", rf"{BEFORE}{HEX}{{8}}(?:{DASH}{HEX}{{4}}){{3}}{DASH}{HEX}{{12}}{AFTER}"),
    _uuids("x2d", rf"{HEX}{{8}}(?:{DASH}{HEX}{{4}}){{3}}{DASH}{HEX}{{12}}{AFTER}"),
    _uuids("-", rf"{BEFORE}[A-Za-z0-9]{{6}}(?:-[A-Za-z0-9]{{4}}){{5}}-[A-Za-z0-9]{{6}}{AFTER}"),
    rule("uuid", "lvm-", rf"LVM-([A-Za-z0-9]{{32,64}}){AFTER}", learn=True),
    _uuids("crypt-", rf"CRYPT-[A-Z0-9]{{1,16}}-({HEX}{{32}}){AFTER}"),
    # A RAID's: four groups of eight.
    _uuids(":", rf"(?<![\w:])({HEX}{{8}}(?::{HEX}{{8}}){{3}})(?![\w:])"),
    rule(
        "uuid",
        "id",
        rf"(?:uuid|fsid|\b(?:machine|boot|invocation)[-_ ]?id)[\"']?"
        r"(?:[ ]?[=:][ \"']{0,2}|/)"
        rf"(?=[A-Fa-f-]{{0,64}}[0-9])({HEX}[0-9A-Fa-f-]{{2,128}}{HEX}){AFTER}",
        _uuid,
        flags=re.IGNORECASE,
    ),
    _uuids(
        "id",
        rf"\b(?:uuid|fsid|(?:machine|boot|invocation)[-_ ]?id)[ \t]{{1,4}}[\"']?({HEX}{{32}})"
        rf"{AFTER}",
        flags=re.IGNORECASE,
    ),
    _uuids("/journal/", rf"/journal/({HEX}{{32}}){AFTER}"),
    rule(
        "uuid",
        "x2duuid-",
        rf"by\\{{1,2}}x2d(?:part)?uuid-({HEX}{{4}}{DASH}{HEX}{{4}}){AFTER}",
        _uuid,
    ),
    _uuids("disk identifier", rf"\bDisk identifier: (?:0x)?({HEX}{{8}}){AFTER}"),
)
MACS = (
    _macs(
        "",
        rf"{BEFORE}(?:{HEX}{{2}}(?::{HEX}{{2}}){{5,19}}|{HEX}{{2}}(?:-{HEX}{{2}}){{5,19}})"
        rf"{AFTER}(?![:-]{HEX}{{2}}{AFTER})",
    ),
    rule(
        "mac",
        "",
        rf"(?<![\w.-]){HEX}{{4}}(?:\.{HEX}{{4}}\.|-{HEX}{{4}}-){HEX}{{4}}(?![\w.-])(?!\\)",
        _dotted_mac,
        learn=True,
    ),
    _macs(
        "",
        r"(?:\b(?:bd|mac|bluetooth|hw|hardware|ethernet|ether|eth|station|ll|perm(?:anent)?|link)"
        r"[ _-]?addr(?:ess)?|\b(?:mac|bssid|chaddr|lladdr)|link/ether)[\"']?"
        rf"[ \t:=]{{1,3}}[\"']?(?:0x)?({HEX}{{12}}){AFTER}",
        flags=re.IGNORECASE,
    ),
    _macs("x", rf"\b(?:en|wl|ww)x({HEX}{{12}}){AFTER}"),
)
# Applied in this order: a whole path or password is replaced before secrets inside it.
FIRST_RULES = (*CREDENTIALS, *OPTIONS)
RULES = (
    *PATHS,
    rule("login", "@", r"://([^/\s'\"<>]{1,255})@"),
    rule("email", "@", EMAIL),
    *UUIDS,
    *SERIALS,
    *MACS,
    rule(
        "ip",
        ":",
        rf"(?<![\w.])(?:{HEX}{{0,4}}:){{2,7}}(?:(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}|{HEX}{{1,4}}"
        r"|(?<=::))(?!\w|:[\w:]|\.\w)",
        _ipv6,
    ),
    rule("ip", ".", rf"(?<![0-9A-Za-z.]){QUAD}(?![^\W_]|\.[0-9])", ipv4),
    *HOMES,
)
