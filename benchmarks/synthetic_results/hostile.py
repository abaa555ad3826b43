# SPDX-License-Identifier: GPL-2.0-or-later
"""What a stranger's results may hold where a page, a mail or a picture shows it.

Each text asks for `owned` to be set or made in some language; a page that runs none shows them all.
"""

SCRIPT = "</script><script>window.owned = 1</script>"
IMAGE = "\"'><img src=x onerror='window.owned = 2'>"
ESCAPES = "\x1b[31mred\x1b]0;title\x07 \x00\x08 \r\n<!--"
RIGHT_TO_LEFT = "6.12\u202e-gnp.exe\u2066 \u200b\ufeff"
SHELL = "`touch owned` $(touch owned) @x %s {{ 7*7 }} ${x} ^_\\"
UNICODE = "größer 日本語 \U0001f427 e\u0301\u0302\u0303 \u2028\u2029"
LONG = "W" * 3000
LABELS = (SCRIPT, IMAGE, ESCAPES, RIGHT_TO_LEFT, SHELL, UNICODE, LONG)


def folder_name(label: str) -> str:
    """The label as far as a folder can have it as its name."""
    return label.replace("/", "_").replace("\x00", "").strip(".")[:60]


KERN_LINES = "".join(
    f"[   {60 + n}.000001] <4> page allocation failure: order:2 {text}\n"
    for n, text in enumerate(LABELS)
)
LOG_TEXT = "pass 1 commits </script><script>window.owned = 3</script> \\x1b[31m \\xff"
FACTS = {
    "kernel": {"release": f"6.12 {SCRIPT}", "version": IMAGE, "spec": SHELL},
    "cmdline": f"root=/dev/vda {IMAGE} {ESCAPES}",
    "cpu_model": IMAGE,
    "fs": SCRIPT,
    "knobs": [{"path": f"/sys/{IMAGE}", "asked": SCRIPT, "before": ESCAPES, "read_back": LONG}],
    "append": SHELL,
    "observer_problems": [SCRIPT, UNICODE],
}
WHY = f"{SCRIPT} {ESCAPES} {RIGHT_TO_LEFT}"
CONFIG = f'CONFIG_{SCRIPT}=y\nCONFIG_LOCALVERSION="{IMAGE}"\n# CONFIG_{UNICODE} is not set\n'
