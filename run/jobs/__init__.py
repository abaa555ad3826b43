# SPDX-License-Identifier: GPL-2.0-or-later
"""One run as a job: what it is, how it is done, and who does it: this machine, or others."""
