# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides whether dotted numbers are an IPv4 address or a version (docs/reference/redaction.md)."""

import ipaddress
import re

VERSION_BEFORE = re.compile(
    r"(?:version|ver\.?|v|debian|linux|kernel|release|rev\.?|bios|firmware|fw|driver)[ :=_-]{0,2}$",
    re.IGNORECASE,
)
# Text before four numbers that makes them an address. Otherwise they are a program's version.
ADDRESS_BEFORE = re.compile(
    r"(?:[@\[]|//|(?<![^\W_])(?:ip|ipv4|inet|from|to|src|dst|source|dest(?:ination)?|hosts?|nfs\w{0,16}"
    r"|gw|via|peers?|dns\d?|ntp|clients?|connection|lease of|ping|routers?|at|on|mask"
    r"|[a-z]{0,16}(?:addr(?:ess(?:es)?)?|servers?|gateways?)\d?)[\"']?[ :=<(\"'\[]{1,3})$",
    re.IGNORECASE,
)
# A port, a mask, or the (cut) name of a kernel thread that serves the address.
ADDRESS_AFTER = re.compile(r":[0-9]{1,5}(?![0-9.])|/[0-9]{1,2}(?![0-9.])|-m[anger]{0,6}(?![\w-])")
QUAD = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
# Further addresses in a list after an address word. Some may be replaced already.
LIST_BEFORE = re.compile(
    rf"(?:(?:{QUAD}|<ip-[0-9]{{1,9}}>)(?:/[0-9]{{1,2}})?"
    r"(?:[ ,;:]{1,3}|[ ,]{1,2}(?:and|or) )){1,8}$"
)
QEMU_NETWORK = ipaddress.IPv4Network("10.0.2.0/24")


def is_address(text: str) -> ipaddress.IPv4Address | None:
    """The IPv4 address of these four numbers, if it is a secret; else None."""
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return None
    # Not the guest's network, this machine, or a mask.
    return None if address in QEMU_NETWORK or address.packed[0] in (0, 127, 255) else address


def ipv4(match: re.Match[str]) -> str | None:
    """The matched numbers, if the text around them makes them a secret address."""
    numbers = match[0]
    address = is_address(numbers)
    if address is None:
        return None
    before = match.string[max(0, match.start() - 200) : match.start()].rpartition("\n")[2]
    after = match.string[match.end() : match.end() + 9]
    if address.is_private and not VERSION_BEFORE.search(before):
        return numbers
    if VERSION_BEFORE.search(before):
        return None
    if re.match(r"[_~+-]\w", after) and not ADDRESS_AFTER.match(after):
        return None
    listed = LIST_BEFORE.search(before)
    words = before[: listed.start()] if listed else before
    return numbers if ADDRESS_BEFORE.search(words) or ADDRESS_AFTER.match(after) else None
