# SPDX-License-Identifier: GPL-2.0-or-later
"""Log-likelihoods of kernels that share one unknown level, and one unknown share of failed runs."""

import math

import numpy as np

from bisection.evidence import Builds, Floats

LEVELS = 2.0  # width of a level's flat prior, in natural logarithms
PRIOR = 0.5  # the share of failing runs has the prior Beta(1/2, 1/2)
LOG_GAMMA = np.array([math.lgamma(count + PRIOR) for count in range(2000)])
LOG_FACTORIAL = np.array([math.lgamma(count + 2 * PRIOR) for count in range(2000)])


def sums(builds: Builds, precision: Floats, means: Floats) -> Floats:
    """Sums of precision * mean^power over the kernels up to each one: power x setting x kernel."""
    return np.stack([np.cumsum(precision * means**power, axis=1) for power in range(3)])


def level(sums: Floats) -> Floats:
    """The log-likelihood of means that share one level; 0 without any mean. sums: power x …"""
    zeroth, first, second = sums
    known = zeroth > 0
    safe = np.where(known, zeroth, 1.0)
    logs: Floats = -0.5 * (second - first**2 / safe + np.log(safe))
    return np.where(known, logs + 0.5 * math.log(2 * math.pi) - math.log(LEVELS), 0.0)


def failures(failed: Floats, ended: Floats) -> Floats:
    """The log-likelihood of these counts of failed and ended runs, with one share of failures."""
    bad, good = failed.astype(np.int64), ended.astype(np.int64)
    logs: Floats = LOG_GAMMA[bad] + LOG_GAMMA[good] - LOG_FACTORIAL[bad + good]
    logs = logs - 2 * LOG_GAMMA[0] + LOG_FACTORIAL[0]
    return logs
