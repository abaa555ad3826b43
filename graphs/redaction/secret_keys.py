# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys of JSON, TOML and a kernel's .config whose values are secrets, whatever they look like."""

import re
from functools import lru_cache

from graphs.redaction.ipv4 import is_address
from graphs.redaction.paths import COMMAND, ELSEWHERE, KEPT_FILE, OF_FILES, RESULTS, WHOLE
from graphs.redaction.secret_names import is_public

KEYS = {
    kind: re.compile(pattern, re.IGNORECASE)
    for kind, pattern in {
        "host": r"(?:host|node|computer|domain)_?name|fqdn|CONFIG_DEFAULT_HOSTNAME",
        "user": r"(?:sudo_)?user(?:_?name)?|login|logname|owner",
        "serial": r"(?:.{0,64}_)?serial(?:_?(?:number|short|no))?|wwn|wwid|eui|nguid|sn"
        r"|(?:service|asset)_?tag|imei",
        "uuid": r".{0,64}uuid|(?:machine|boot)_id|fsid",
        "ip": r"(?:.{0,64}_)?(?:ip|ipv4|ip_?addr|addr|(?:ip_?)?address|gateway|gw|router|server"
        r"|peer|host|nameservers?|dns|client)",
        "mac": r".{0,64}mac(?:_?addr(?:ess)?)?|.{0,64}(?:hw|perm|ether|ll)_?addr(?:ess)?|bssid",
        "ssid": r"e?ssid",
        "secret": r".{0,64}(?:passw(?:or)?d|passphrase|psk|token|secret"
        r"|(?:api|access|private|auth)_?key)|CONFIG_BUILD_SALT",
        "iqn": r"iqn|(?:host|sub|sys)?nqn|initiator(?:_?name)?",
        "label": r"(?:fs|part|volume|disk)_?label",
        "path": "|".join((*WHOLE, *RESULTS)).replace("-", "_")
        + "|artist|album|track|cwd|working_directory",
    }.items()
}
# Keys whose value may be a user's file: then its folder is a secret.
FOLDERS = re.compile("|".join((*OF_FILES, "spec", "image")).replace("-", "_"), re.IGNORECASE)
FOLDER = re.compile(rf"({ELSEWHERE}/[^\n<>,]{{1,4000}}?)(?=/[^/\n,]{{1,255}}(?:,|$))")
_BARE_MAC = re.compile(r"(?:[0-9a-f]{2}[:.-]?){6,20}", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9][0-9.]{0,16}[\w.+~-]{0,64}")
_KEPT = re.compile(rf"(/.{{1,4000}})/{KEPT_FILE}", re.DOTALL)


@lru_cache(maxsize=4096)
def _kinds(key: str) -> tuple[str, ...]:
    return tuple(kind for kind, pattern in KEYS.items() if pattern.fullmatch(key))


def kind_of(value: str, key: str) -> str:
    """The kind of secret of a value, by its key; '' if the key has no kind or it is public."""
    for kind in _kinds(key):
        if kind == "ip" and not is_address(value):
            continue
        if kind == "mac" and not _BARE_MAC.fullmatch(value.strip()):
            continue
        public = kind in ("host", "user") and is_public(value)
        # The salt of Debian's kernels is their version, which is public.
        public |= key == "CONFIG_BUILD_SALT" and _VERSION.fullmatch(value) is not None
        return "" if public else kind
    return ""


def folders_of(value: str, key: str) -> list[str]:
    """The folders of a value that is a user's file, or a command with such files, by its key."""
    if not key or not (key.lower() == COMMAND or FOLDERS.fullmatch(key)):
        return []
    words = re.split(r"[\s=]+", value) if key.lower() == COMMAND else [value]
    return [match[1] for word in words if (match := FOLDER.match(word))]


def kept_file(path: str) -> str:
    """The part of a secret path that is kept: its file name, if it reveals nothing."""
    match = _KEPT.fullmatch(path)
    return path[len(match[1]) :] if match else ""
