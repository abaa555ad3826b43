# SPDX-License-Identifier: GPL-2.0-or-later
"""Sums made in the kernel by BPF programs (docs/TRACING.md)."""
