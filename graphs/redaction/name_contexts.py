# SPDX-License-Identifier: GPL-2.0-or-later
"""Contexts in which a word is the name of a host or a user."""

import re
from collections.abc import Iterator

from graphs.redaction.domains import PUBLIC_DOMAINS
from graphs.redaction.spelling import NAME, plain_name

FOLDERS = (
    r"(?:bin|boot|dev|etc|home|lib\w{0,8}|media|mnt|opt|proc|root|run|s?bin|srv|sys|tmp|usr|var)"
)
# Volume groups that installers name after the host: NAME-vg by Debian, fedora_NAME by others.
_DOUBLED = r"[^\W_](?:[\w.]|--){0,254}?"  # a name in the spelling of device-mapper
_UNIT = r"[^\W_](?:[\w.]|\\{1,2}x2d){0,254}?"  # the same in the name of a systemd unit
_BRANDS = r"(?:fedora|rhel|centos|almalinux|rocky|ol|cl|cs)_"
_IS = r"(?:[ ]?=>[ ]?|[=:][ ]?|[ ](?=[\"']))"
_CALLS = r"[\w./()-]{1,64}(?:\[\d{1,8}\])?:"  # a program that writes to a syslog
_BUILDER = rf"Linux version \S{{1,128}} \((?![\w.+-]{{1,64}}@{PUBLIC_DOMAINS}\))"
_PERSON = r"[\w.+-]{0,63}\w"

# Group 1 is the name.
CONTEXTS = tuple(
    (kind, hint, re.compile(pattern, re.MULTILINE))
    for kind, hint, pattern in (
        ("host", "name", rf"(?i:\b(?:host[_-]?|node)name)[\"']?{_IS}[\"']?({NAME})"),
        ("host", "hostname", rf"(?i:\bhostname) (?:set )?to [<\"']?({NAME})"),
        ("host", "hostname", rf"(?:\bset-hostname|--hostname) [\"']?({NAME})"),
        (
            "host",
            "",
            rf"^(?:<\d{{1,3}}>)?[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d ({NAME}) {_CALLS}",
        ),
        (
            "host",
            "",
            rf"^\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9.,+Z:-]{{0,24}} ({NAME}) {_CALLS}",
        ),
        ("host", "login", rf"^({NAME}) login:"),
        ("host", "ip=", rf"\bip=(?:[^\s:\[]{{0,64}}:){{4}}({NAME})"),
        ("host", "linux version", rf"{_BUILDER}[\w.+-]{{1,64}}@({NAME})\)"),
        ("user", "linux version", rf"{_BUILDER}([\w.+-]{{1,64}})@"),
        ("host", "linux ", rf"\bLinux ({NAME}) \d{{1,2}}\.\d{{1,3}}\S{{0,100}} #\d"),
        ("host", "mapper/", rf"mapper/({_DOUBLED})--vg-\w"),
        ("host", "mapper/", rf"mapper/{_BRANDS}({_DOUBLED})-[^\W_]"),
        (
            "host",
            "x2dvg",
            rf"\bmapper-({_UNIT})(?:\\{{1,2}}x2d){{2}}vg\\{{1,2}}x2d",
        ),
        ("host", "/", r"/dev/([^\W_][\w.-]{0,254}?)-vg/\w"),
        ("host", "/", rf"/dev/{_BRANDS}([^\W_][\w.-]{{0,254}}?)/\w"),
        ("host", "rd.lvm.", r"\brd\.lvm\.(?:lv|vg)=([^\W_][\w.-]{0,254}?)-vg\b"),
        ("host", "rd.lvm.", rf"\brd\.lvm\.(?:lv|vg)={_BRANDS}({NAME})"),
        ("host", "volume group", r"(?i:volume group) [\"']?([^\W_][\w.-]{0,254}?)-vg\b"),
        ("user", "", rf"\b(?:SUDO_USER|LOGNAME|USER(?:NAME)?|user(?:name)?|login)=[\"']?({NAME})"),
        ("host", "rhost=", rf"\brhost=({NAME})"),
        ("user", "=", rf"\b(?:ruser|logname)=({NAME})"),
        ("user", "password for", rf"\bpassword for user ({NAME})"),
        ("user", "opened for", rf"\bopened for user ({NAME})"),
        ("user", "session", rf"\b[Ss]ession [\w-]{{1,16}} of [Uu]ser ({NAME})"),
        (
            "user",
            " for ",
            rf"\b(?:Accepted|Failed) [\w-]{{1,32}} for (?:invalid user )?({NAME}) from",
        ),
        ("user", "acct=", rf"\bacct=\"({NAME})\""),
        ("user", "uid=", rf"\b[A-Z]{{0,8}}UID=\"({NAME})\""),
        ("user", ") cmd (", rf"\(({NAME})\) CMD \("),
        ("user", "(to ", rf"\bsu(?:\[\d{{1,8}}\])?: \(to {NAME}\) ({NAME}) on "),
        ("user", "login on", rf"\bLOGIN ON \w{{1,16}} BY ({NAME})"),
        ("user", "unix-user:", rf"\bunix-user:({NAME})"),
        ("user", ":/", rf"^({NAME}):[x*!]:\d{{1,10}}:\d{{1,10}}:"),
        ("user", "sudo", rf"\bsudo(?:\[\d{{1,8}}\])?: {{1,8}}({NAME}) :"),
        ("user", "/home/", rf"/home/({NAME})"),
        ("user", "/users/", rf"/Users/({NAME})"),
        ("user", "users\\", rf"\b[A-Z]:\\{{1,2}}Users\\{{1,2}}({NAME})"),
        ("user", "/media/", rf"/media/({NAME})/"),
        ("user", "/mail/", rf"/var/(?:spool/)?mail/({NAME})"),
        ("user", "/cron", rf"/var/spool/cron/(?:crontabs/)?({NAME})"),
        ("user", "~", r"(?<![\w.+~-])~([a-z_][\w-]{0,31})/"),
        # Shares of CIFS and NFS. A latency log spells each backslash twice.
        ("host", "\\\\", rf"(?<!\\)\\{{2,4}}(?!x[0-9a-f]{{2}}\\)({NAME})\\{{1,2}}[\w$]"),
        (
            "host",
            "//",
            rf"(?<![\w:/.*~-])//(?!{PUBLIC_DOMAINS}/)(?!{FOLDERS}/)({NAME})/[\w$]",
        ),
        ("host", "nfs", rf"\b(?:nfsroot=|(?i:nfs4?: server ))(?!{PUBLIC_DOMAINS}\b)({NAME})"),
        (
            "host",
            ":/",
            rf"(?:^|[ \t=,])({NAME}):/(?:export|srv|nfs|vol(?:ume)?\d{{0,2}})/",
        ),
        ("host", "to host", rf"\bconnect to host ({NAME}) port"),
        ("user", "@", rf"(?<![\w.+@-])({_PERSON})@(?:{NAME}):[/~\w]"),
        ("host", "@", rf"(?<![\w.+@-]){_PERSON}@(?!{PUBLIC_DOMAINS}\b)({NAME}):[/~\w]"),
        ("user", "@", rf"\b(?:ssh|scp|sftp|rsync|mosh) (?:-\w{{1,8}} )?({_PERSON})@"),
        ("user", "@", rf"(?<![\w.+@-])({_PERSON})@{NAME}: Permission denied"),
        ("host", "@", rf"(?<![\w.+@-]){_PERSON}@({NAME}): Permission denied"),
        ("user", "@", rf"\[({_PERSON})@{NAME} [\w~./-]{{1,64}}\][#$]"),
        ("host", "@", rf"\[{_PERSON}@({NAME}) [\w~./-]{{1,64}}\][#$]"),
        ("host", "@", rf"://[^/\s'\"<>]{{1,255}}@(?!{PUBLIC_DOMAINS}\b)({NAME})"),
        ("host", "://", rf"\b(?:rsync|ssh|sftp|nfs|smb|cifs)://(?!{PUBLIC_DOMAINS}\b)({NAME})"),
    )
)


def named(text: str, lower: str) -> Iterator[tuple[str, str]]:
    """(kind, name) of each host and user that the text names; lower: the text in lower case."""
    for kind, hint, pattern in CONTEXTS:
        if hint in lower:
            for match in pattern.finditer(text):
                yield kind, plain_name(match[1])
