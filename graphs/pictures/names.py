# SPDX-License-Identifier: GPL-2.0-or-later
"""What the pictures of a whole campaign are called; of several workloads, with each one's name."""

import re

from analysis.verdicts.compared import Compared
from contract.workload import DESKTOP

STEMS = ("gitk-latency", "sawtooth")  # of the sawtooth: of a desktop's, of any other's
SUFFIX = r"-[A-Za-z0-9._+-]+"
OWN = re.compile(
    rf"(gitk-latency|sawtooth)({SUFFIX})?((-smooth)?\.(gp|png)|-[0-9]+\.dat)|"
    rf"(comparison|causes|over-time)({SUFFIX})?\.png"
)


def suffixes(compared: Compared) -> list[str]:
    """Of the pictures of each workload; of one it is none."""
    if not compared.others:
        return [""]
    found: list[str] = []
    for place, one in enumerate(compared.each, 1):
        suffix = "-" + re.sub(r"[^A-Za-z0-9._+-]", "_", one.workload.name)
        found.append(f"{suffix}-{place}" if suffix in found else suffix)
    return found


def sawtooth(desktop: bool, suffix: str) -> str:
    """The stem of its files; there is one desktop."""
    return STEMS[0] if desktop else f"{STEMS[1]}{suffix}"


def of_campaign(compared: Compared) -> list[str]:
    """The pictures of the whole campaign, as far as they are there, those first that say most."""
    each = list(zip(compared.each, suffixes(compared), strict=True))
    found = [
        f"{what}{suffix}.png"
        for _, suffix in each
        for what in ("comparison", "causes", "over-time", "over-time-2")
    ]
    if not compared.others:
        stems = list(STEMS)
    else:
        stems = [sawtooth(one.workload.name == DESKTOP, suffix) for one, suffix in each]
    return found + [f"{stem}{which}.png" for stem in stems for which in ("", "-smooth")]
