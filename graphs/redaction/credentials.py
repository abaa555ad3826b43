# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules for passwords, tokens and keys; names of wireless networks, volumes and network disks."""

import re

from graphs.redaction.rules import rule, secret, with_digit
from graphs.redaction.secret_names import COMMON, PUBLIC
from graphs.redaction.spelling import BEFORE

# A value: text in quotes, up to the closing quote, or a word. An apostrophe inside a word does not
# end it; in JSON that was cut short quotes have a backslash.
QUOTED = r"\\?\"((?:[^\"\n\\]|\\(?!\")){1,255})|'((?:[^'\n]|'(?=\w)){1,255})"
WORD = r"([^\s\"'<>,;&()\[\]{}]{1,255})"
VALUE = rf"(?:{QUOTED}|{WORD})"
IS = r"[\"']?[ \t]{0,2}(?:=[ \t]{0,2}|:[ \t]{0,2}(?=[^\s]{4}))"
SAYING = {  # hint that a text must contain -> pattern before a password, token or key
    "pass": r"password|passwd(?!:\w)|passwort|passphrase|passcode",
    "psk": r"(?<![a-z0-9])psk",
    "token": r"token",
    "secret": r"secret",
    "key": r"(?:api|access|secret|private|(?:pre-?)?shared|auth|wep|luks)[ _.-]?key[0-9]?",
    "credential": r"credentials?",
}
SHORT_WORDS = r"(?<![a-z])(?:pass|pwd|pw)=(?=[^\s/]{0,64}[a-z])"  # but not a folder: PWD=/x
BASE64 = "[A-Za-z0-9+/]"
LABELS = frozenset({"boot-efi", "cloudimg-rootfs", "efi", "esp", "rootfs", "system-boot", "uefi"})


def _label(match: re.Match[str]) -> str | None:
    label = secret(match)
    return None if label.lower() in COMMON | PUBLIC | LABELS else label


CREDENTIALS = (
    *(
        rule("secret", hint, rf"(?:{word}){IS}{VALUE}", learn=True, flags=re.IGNORECASE)
        for hint, word in SAYING.items()
    ),
    rule(
        "secret",
        "--",
        rf"--[a-z-]{{0,32}}(?:password|passphrase|token|secret|api-key)[ \t]{{1,2}}(?!-){VALUE}",
        learn=True,
    ),
    rule("secret", "=", rf"{SHORT_WORDS}(?:{QUOTED}|(?!/){WORD})", learn=True, flags=re.IGNORECASE),
    rule("secret", "cookie: ", r"\b[Cc]ookie: (\w{1,64}=[^\n\"'<>]{1,1000})"),
    # A line of a private key.
    rule(
        "secret",
        "",
        rf"^(?=[^A-Z\n]{{0,63}}[A-Z])(?=[^a-z\n]{{0,63}}[a-z])(?=[^0-9\n]{{0,63}}[0-9])"
        rf"{BASE64}{{64,76}}={{0,2}}$",
        flags=re.MULTILINE,
    ),
    rule(
        "secret",
        "authorization",
        r"\bauthorization: ?[a-z]{1,16} ([\w.~+/=-]{4,1000})",
        flags=re.IGNORECASE,
    ),
    rule(
        "secret",
        "bearer",
        r"\bbearer[ \t]{1,2}([\w.~+/=-]{16,1000})",
        with_digit,
        flags=re.IGNORECASE,
    ),
    # Tokens with their issuer's prefix, signed tokens, and SSH keys and fingerprints.
    rule(
        "secret",
        "",
        rf"{BEFORE}(?:gh[pousr]_[A-Za-z0-9]{{16,255}}|github_pat_\w{{16,255}}"
        r"|glpat-[\w-]{16,255}|xox[abprs]-[\w-]{10,255}|A[KS]IA[A-Z0-9]{16}"
        r"|AIza[\w-]{30,60}|sk-[\w-]{20,255}|[rs]k_(?:live|test)_\w{16,255}|(?:npm|hf)_[A-Za-z0-9]{30,255}"
        r"|eyJ[\w-]{8,255}\.[\w-]{8,1000}\.[\w-]{1,255}|AAAA[BC]3N[\w+/=]{20,1000}"
        r"|SHA256:[\w+/]{43})",
        learn=True,
    ),
    rule(
        "ssid",
        "ssid",
        rf"\be?ssid[\"']?(?:[ \t]{{0,2}}[=:][ \t]{{0,2}}{VALUE}|[: ]{{1,2}}(?:{QUOTED}))",
        learn=True,
        flags=re.IGNORECASE,
    ),
    rule(
        "ssid",
        "'",
        rf"\b(?:access point|connection|network):? (?:{QUOTED})",
        learn=True,
        flags=re.IGNORECASE,
    ),
    rule("label", "label=", rf"(?<![\w-])(?:PART)?LABEL={VALUE}", _label),
    rule("label", "label/", r"by-(?:part)?label/([^\s\"'<>,;:]{1,255})", _label),
    rule(
        "label",
        "label-",
        r"by\\{1,2}x2d(?:part)?label-([\w.:+=@\\-]{1,255}?)(?=\.(?:device|swap|mount)\b|\s|$)",
        _label,
    ),
    rule("label", "label ", r"\bdevice label ([^\s\"'<>]{1,255}) devid", _label),
    rule(
        "iqn",
        "qn.",
        r"\b[in]qn\.[0-9]{4}-[0-9]{2}\.(?!org\.nvmexpress\.discovery)[\w.:-]{0,222}\w",
        flags=re.IGNORECASE,
    ),
)
