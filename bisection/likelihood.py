# SPDX-License-Identifier: GPL-2.0-or-later
"""The likelihood of kernels that have one level and one share of failed runs, both not known."""

import math

import numpy as np

from bisection.evidence import Builds, Floats

LEVELS = 2.0  # the width of a level's flat prior, in logarithms
PRIOR = 0.5  # Beta(1/2, 1/2), of the share of runs that fail
LOG_GAMMA = np.array([math.lgamma(count + PRIOR) for count in range(2000)])
LOG_FACTORIAL = np.array([math.lgamma(count + 2 * PRIOR) for count in range(2000)])


def sums(builds: Builds, precision: Floats, means: Floats) -> Floats:
    """Over the kernels up to each: power x setting x kernel."""
    return np.stack([np.cumsum(precision * means**power, axis=1) for power in range(3)])


def level(sums: Floats) -> Floats:
    """The logarithm, of means with one level; 0 of none. sums: power x …"""
    zero, one, two = sums
    known = zero > 0
    safe = np.where(known, zero, 1.0)
    found: Floats = -0.5 * (two - one**2 / safe + np.log(safe))
    return np.where(known, found + 0.5 * math.log(2 * math.pi) - math.log(LEVELS), 0.0)


def failures(failed: Floats, ended: Floats) -> Floats:
    """The logarithm, of so many runs that failed and that ended, with one share."""
    bad, good = failed.astype(np.int64), ended.astype(np.int64)
    found: Floats = LOG_GAMMA[bad] + LOG_GAMMA[good] - LOG_FACTORIAL[bad + good]
    found = found - 2 * LOG_GAMMA[0] + LOG_FACTORIAL[0]
    return found
