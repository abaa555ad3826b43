# SPDX-License-Identifier: GPL-2.0-or-later
"""hosts.json, in a campaign's folder: which host did which run."""

HOSTS_FILE = "hosts.json"
RUNS = "runs"  # its object of "VARIANT/NUMBER": host
