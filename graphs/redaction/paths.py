# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules for users' folders: homes, and other places with users' files."""

import re

from graphs.redaction.rules import rule, secret
from graphs.redaction.spelling import LONGEST, NAME

# Top folders that usually contain users' files.
OWN_ROOTS = (
    r"(?:srv|mnt|media|run/media|Volumes|data[0-9]{0,2}|nas|net|export|storage|backups?|scratch"
    r"|projects?|work(?:space)?|vol(?:ume)?s?[0-9]{0,2}|pool[0-9]{0,2}|tank|shares?|archive|nfs"
    r"|afs|cifs|smb|var/(?:spool/)?mail|var/spool/cron(?:/crontabs)?|var/www"
    r"|var/lib/(?:machines|lxc|libvirt/images|AccountsService/(?:users|icons)))"
)
# Folders of the system, which are the same on every machine.
SYSTEM = r"(?:bin|boot|dev|etc|lib(?:32|64|x32)?|proc|run|sbin|sys|tmp|usr|var)"
_LETTER = r"(?:[^\s\"'<>|;,:()\[\]{}*?/\\]|\\{1,2}x[0-9A-Fa-f]{2}|\\ )"
_PART = rf"{_LETTER}{{1,{LONGEST}}}"
_VALUE = (
    r"(?:=|[ \t]{1,2})(?!-)"
    r"(?:\"([^\"\n<>]{1,1000})|'([^'\n<>]{1,1000})|([^\s\"'<>]{1,1000}))"
)
_BEGIN = r"(?<![\w./>-])"
_EQUALS = r"(?:=|[ \t]{1,2})"
_IS = rf"{_EQUALS}[\"']?"
# The suite's options whose value is a secret, and those of whose file the folder is one.
WHOLE = ("repo", "music", "tree")
RESULTS = ("out", "resume", "run-dir")
COMMAND = "daemon"
OF_FILES = (
    "kernel",
    "kernel-config",
    "machine",
    "plan",
    "device",
    "destroy-data",
    "modules",
    "patch",
    "qemu",
    "bisect-hunks",
)
# A path that is neither the system's nor below a home, where other rules apply.
ELSEWHERE = rf"(?!/{SYSTEM}/|/(?:home|Users|root)/)"
_FOLDER = rf"{ELSEWHERE}(/{_PART}(?:/{_PART}){{0,20}})(?=/{_PART})"
# A file name that reveals nothing except the kind of file.
KEPT_FILE = r"(?:bzImage|vmlinu[xz][\w.+~-]{0,100}|[\w.+-]{1,100}\.(?:toml|config))(?![\w./-])"
MOUNT_POINTS = re.compile(
    r"/(?:media/(?:cdrom|usb|floppy|dvd)[0-9]?|mnt/(?:test|root|boot|tmp))(?:/.{0,4096})?",
    re.DOTALL,
)


def _path(match: re.Match[str]) -> str | None:
    path = secret(match)
    return None if MOUNT_POINTS.fullmatch(path) else path.rstrip(".")


HOMES = (
    rule("home", "/", rf"/(?:home|Users)/(?:{NAME})"),
    rule("home", ":\\", rf"\b[A-Z]:\\{{1,2}}Users\\{{1,2}}(?:{NAME})"),
    rule("home", "/root", r"(?<![\w./>-])/root(?![\w.-])"),
    rule("home", "~", r"(?<![\w.+~-])(~[a-z_][\w-]{0,31})(?=/)"),
)
OPTIONS = (
    rule("path", "--", rf"--(?:{'|'.join(WHOLE)}){_VALUE}", learn=True),
    rule("path", "--", rf"--(?:{'|'.join(RESULTS)}){_VALUE}"),
)
PATHS = (
    # In quotes a folder may have spaces.
    rule(
        "path",
        "--",
        rf"--(?:{'|'.join(OF_FILES)}){_EQUALS}"
        rf"(?:\"(?:git:)?{ELSEWHERE}(/[^\"\n<>,]{{1,1000}})(?=/[^\"/\n<>,]{{1,255}}[\",])"
        rf"|'(?:git:)?{ELSEWHERE}(/[^'\n<>,]{{1,1000}})(?=/[^'/\n<>,]{{1,255}}[',]))",
        learn=True,
    ),
    rule(
        "path",
        "/",
        rf"(?:--(?:{'|'.join(OF_FILES)}){_EQUALS}|\b(?:modules|patch|config)=[\"']?|\bgit:){_FOLDER}",
        learn=True,
    ),
    rule("path", "--on", rf"--on{_IS}ssh:{_FOLDER}", learn=True),
    # Of a command its first word or another one.
    rule(
        "path",
        f"--{COMMAND}",
        rf"--{COMMAND}{_IS}(?:[^\n\"'<>]{{0,1000}}?[ \t=])?{_FOLDER}",
        learn=True,
    ),
    # The second of several patches, and of the two trees of --bisect-hunks.
    rule("path", ".", rf"\.(?:patch|diff) {_FOLDER}", learn=True),
    rule(
        "path",
        "--",
        rf"--bisect-hunks{_IS}[^\s<>]{{1,1000}}[ \t]{{1,2}}[\"']?{_FOLDER}",
        learn=True,
    ),
    rule(
        "path", "/", rf"{_BEGIN}(/{OWN_ROOTS}/{_PART}(?:/{_PART}){{0,20}})(?=/{KEPT_FILE})", _path
    ),
    rule(
        "path",
        "/",
        rf"(?<=\")(/{OWN_ROOTS}/[^\"\n<>]{{1,1000}})(?=\")"
        rf"|(?<=')(/{OWN_ROOTS}/[^'\n<>]{{1,1000}})(?=')",
        _path,
    ),
    rule("path", "/", rf"{_BEGIN}(/{OWN_ROOTS}/{_PART}(?:/{_PART}){{0,20}})", _path),
    # A repository on another machine (git@host:anna/notes.git).
    rule("path", ".git", r"@[\w.<>-]{1,255}:([\w./~+-]{1,255}\.git)\b"),
)
