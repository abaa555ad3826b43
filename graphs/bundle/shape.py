# SPDX-License-Identifier: GPL-2.0-or-later
"""What a bundle is called, and how many bytes of it are for what."""

NAME = "bug-report.tar.gz"
FOLDER = "bug-report"  # what everything in it lies in
LIMIT = 5_000_000  # bytes of the whole bundle
RESERVE = 150_000  # of them for report.txt, REDACTIONS.txt and MANIFEST, packed
CONFIGS = 1_000_000  # of them for the kernels' configs at most
PICTURES = 1_000_000  # of them for the pictures of the whole campaign at most
