# SPDX-License-Identifier: GPL-2.0-or-later
"""One command of a user's, from its options to the last run."""
