# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds secrets in results, and replaces them by tokens."""
