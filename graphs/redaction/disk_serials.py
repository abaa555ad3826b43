# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules for serial numbers of disks and other devices, as kernels, udev and tools write them."""

import re
from functools import partial

from graphs.redaction.rules import rule, secret
from graphs.redaction.spelling import AFTER, BEFORE, HEX

UARTS = ("8250", "16550", "115200", "230400", "460800", "921600")  # chips, and their speeds


def serial(match: re.Match[str]) -> str | None:
    """The match, if it has a digit and is not a UART's name ("Serial: 8250/16550 driver")."""
    number = secret(match)
    is_driver = number.islower() and match.string.startswith(
        ": ", match.end()
    )  # "serial: cp210x: "
    return number if re.search("[0-9]", number) and number not in UARTS and not is_driver else None


_serials = partial(rule, "serial", known=serial, learn=True)
SERIALS = (
    rule("serial", "by-id/", r"by-id/([\w.:+=@-]{1,255})"),
    rule(
        "serial",
        "x2did-",
        r"by\\{1,2}x2did-([\w.:+=@\\-]{1,255}?)(?=\.(?:device|swap|mount)\b|\s|$)",
    ),
    _serials("", rf"{BEFORE}(?:wwn-|naa\.|eui\.|t10\.)((?:0x)?\w{{8,255}})"),
    _serials(
        "",
        rf"(?:{BEFORE}"
        r"serial[ _-]?(?:number|num|no|nr)?\.?[\"']?\t{0,4}[ ]{0,4}(?:[:=]|\bis\b)"
        r"|\bs/n[:=]?|\bserial(?:[ _]?(?:number|no\.?)|#:?)|\bSN[:=#]"
        r"|\b(?:service|asset)[ _-]?tag[\"']?[:=]?"
        r"|\b(?:imei|imsi|iccid|meid)[\"']?[:= ]"
        r"|\b(?:wwn|wwid|nguid|id_serial(?:_short)?)[\"']?[:=])"
        rf"[ \t]{{0,4}}[\"']?([^\W_][\w.+-]{{2,253}}[^\W_]){AFTER}(?!/)",
        flags=re.IGNORECASE,
    ),
    _serials(
        "serial",
        # Only unmistakable numbers: not "serial ttyUSB0", "serial console1".
        rf"(?i:\bserial)[ \t]{{1,4}}[\"']?"
        rf"(0x{HEX}{{4,16}}|(?=[A-Z_-]{{0,64}}[0-9])[A-Z0-9][A-Z0-9_-]{{4,62}}[A-Z0-9]"
        rf"|{HEX}{{8,32}}){AFTER}(?![/:.-]\w)",
    ),
    _serials(
        "",
        rf"\b(?:wwn|wwid|nguid|eui(?:-?64)?|naa|cid(?=[^\w\n]{{1,3}}{HEX}{{16}}))"
        rf"[\"']?[ \t:=]{{1,3}}[\"']?"
        rf"((?:0x)?{HEX}{{8,32}}|{HEX}{{8}}-[0-9A-Fa-f-]{{8,27}}){AFTER}",
        flags=re.IGNORECASE,
    ),
    # libata's line about a disk: a firmware's name has at most 8 characters, a serial number more.
    _serials(
        "ata",
        r"\bATA(?:PI)?-[0-9]{1,2}: [^,\n\"'\[\]{}<>]{1,60},(?: ?[\w.+-]{1,8},)? ?"
        rf"((?=[A-Z_-]{{0,64}}[0-9])[A-Z0-9][A-Z0-9_-]{{8,64}}){AFTER}",
    ),
    _serials("wd-", rf"{BEFORE}(WD-[A-Z0-9]{{8,16}}){AFTER}"),
    _serials(
        "-",
        rf"{BEFORE}(?:ata|scsi|nvme|usb|mmc|virtio|sas)-(?:\w[\w.+-]{{0,100}}_)?"
        rf"((?=[A-Z]{{0,64}}[0-9])[A-Z0-9]{{8,64}}|3{HEX}{{15,32}}){AFTER}",
    ),
)
# A serial number after a disk's model, in a value that is only a model: it is longer than a model
# number, and mostly digits.
IN_MODEL = rule(
    "serial",
    "",
    r"[0-9].{0,80}[ _]((?=(?:[A-Z]{0,16}[0-9]){6})[A-Z0-9]{12,32})\s{0,32}$",
    serial,
    learn=True,
)
