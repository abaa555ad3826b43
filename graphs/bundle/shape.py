# SPDX-License-Identifier: GPL-2.0-or-later
"""The name of a bundle, and its limits in bytes."""

NAME = "bug-report.tar.gz"
FOLDER = "bug-report"  # the archive's only top folder
LIMIT = 5_000_000  # bytes of the whole bundle
RESERVE = 150_000  # bytes reserved for report.txt, REDACTIONS.txt and MANIFEST, packed
CONFIGS = 1_000_000  # bytes for the kernels' configs, at most
PICTURES = 1_000_000  # bytes for the pictures of the whole campaign, at most
