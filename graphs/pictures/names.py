# SPDX-License-Identifier: GPL-2.0-or-later
"""File names of the pictures of a whole campaign; with several workloads they have its name."""

import re

from analysis.verdicts.compared import Compared
from contract.workload import DESKTOP

STEMS = ("gitk-latency", "sawtooth")  # of the sawtooth: for the desktop, for other workloads
SUFFIX = r"-[A-Za-z0-9._+-]+"
OWN = re.compile(
    rf"(gitk-latency|sawtooth)({SUFFIX})?((-smooth)?\.(gp|png)|-[0-9]+\.dat)|"
    rf"(comparison|causes|over-time)({SUFFIX})?\.png"
)


def suffixes(compared: Compared) -> list[str]:
    """The suffix of the pictures of each workload; "" if there is only one."""
    if not compared.others:
        return [""]
    listed: list[str] = []
    for place, part in enumerate(compared.each, 1):
        suffix = "-" + re.sub(r"[^A-Za-z0-9._+-]", "_", part.workload.name)
        listed.append(f"{suffix}-{place}" if suffix in listed else suffix)
    return listed


def sawtooth(desktop: bool, suffix: str) -> str:
    """The stem of the sawtooth's files; the desktop's needs no suffix."""
    return STEMS[0] if desktop else f"{STEMS[1]}{suffix}"


def of_campaign(compared: Compared) -> list[str]:
    """The possible pictures of the whole campaign, the most important first."""
    parts = list(zip(compared.each, suffixes(compared), strict=True))
    pictures = [
        f"{what}{suffix}.png"
        for _, suffix in parts
        for what in ("comparison", "causes", "over-time", "over-time-2")
    ]
    if not compared.others:
        stems = list(STEMS)
    else:
        stems = [sawtooth(part.workload.name == DESKTOP, suffix) for part, suffix in parts]
    return pictures + [f"{stem}{which}.png" for stem in stems for which in ("", "-smooth")]
